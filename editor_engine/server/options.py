"""How the server is asked to run: where it listens, whom it answers, and the limits it keeps. Light: no FastAPI."""

from dataclasses import dataclass
from pathlib import Path

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
"""Names of this machine that no other machine can reach."""


@dataclass(frozen=True)
class Limits:
    """What one client can take from the others, at most."""

    queue: int = 16
    """Requests that may wait behind the one that runs; more are told to come back."""
    body_bytes: int = 4 << 20
    """Of one request."""
    held_bytes: int = 64 << 20
    """Of all requests that are being read, wait or run; more are told to come back."""
    request_s: float = 3600.0
    """From the first pass of a request to its last; then it is cut."""
    read_s: float = 30.0
    """For a request to arrive, from its first byte (or the connection) to its last."""
    write_s: float = 60.0
    """A client that takes nothing of its answer for so long is cut off."""
    connections: int = 512
    """Open at once; more are answered 503."""
    grace_s: float = 20.0
    """What a running request gets to finish when the server is asked to stop."""


@dataclass(frozen=True)
class ServeOptions:
    """Where to listen, and for whom. At least one of `socket` and `port` is given."""

    socket: Path | None = None
    """Path of the unix socket; its folder must be ours alone. None: no unix socket."""
    host: str = "127.0.0.1"
    port: int | None = None
    """TCP port; 0 takes a free one. None: no TCP."""
    key: str | None = None
    """What clients over TCP must show as bearer token; needed to listen beyond loopback."""
    idle_s: float | None = None
    """Stop after so long without work. None: never."""
    limits: Limits = Limits()
