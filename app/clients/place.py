"""Where an engine is, as a user writes it: a web address, or `unix:` and the path of a socket.

Knows addresses, not servers. Invariant: a place never holds a key, so it may be shown and logged.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.errors import UsageError

_VERSIONED = re.compile(r"/v\d[^/]*(/|$)")


@dataclass(frozen=True)
class Place:
    """A server's addresses."""

    shown: str
    """As the user gave it."""
    root: str
    """Before `/v1`: where servers keep what OpenAI has no word for (health, metrics)."""
    api: str
    """What `/chat/completions` and `/models` are appended to."""
    socket: str | None = None
    """Path of a unix socket; None: TCP."""

    @property
    def is_local(self) -> bool:
        """On this machine: no proxy is between us."""
        return self.socket is not None or _is_loopback(urlsplit(self.root).hostname)

    @property
    def in_the_open(self) -> bool:
        """What is sent can be read on the way."""
        return self.root.startswith("http:") and not self.is_local


def parse_place(text: str) -> Place:
    """The place of `--engine`. Raises UsageError."""
    text = text.strip()
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        path = path[2:] if path.startswith("//") else path
        if not path.startswith("/"):
            raise UsageError(f"The engine {text!r} must be unix: and the absolute path of a socket.")
        return Place(f"unix:{path}", "http://localhost", "http://localhost/v1", path)
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"The engine {text!r} is no web address: {error}.") from error
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"The engine {text!r} must be an address such as http://localhost:8000/v1, or unix:/a/socket.")
    if parts.username is not None or parts.password is not None:
        raise UsageError("An engine's address has no name or key in it; the key goes into REDRAFT_ENGINE_KEY.")
    if parts.query or parts.fragment:
        raise UsageError(f"The engine {text!r} must not have a query or a fragment.")
    path = parts.path.rstrip("/").removesuffix("/chat/completions")  # as some guides give a server's address
    base = f"{parts.scheme}://{parts.netloc}{path}"
    if _VERSIONED.search(path):
        return Place(text, base.removesuffix("/v1"), base)
    return Place(text, base, f"{base}/v1")


def _is_loopback(host: str | None) -> bool:
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"
