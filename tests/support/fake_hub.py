"""A model hub on the loopback interface, as much of it as asking for a repository and downloading its files needs.

Knows the hub's addresses and headers; nothing of what is tested. Invariant: it answers for what is in `files` only, at
one commit, and takes down what it was asked and with which token.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub:
    """One repository; tests change it while it serves."""

    def __init__(self, repository: str = "owner/tiny") -> None:
        self.repository = repository
        self.files: dict[str, bytes] = {}
        self.facts: dict[str, Any] = {"gated": False, "cardData": {"license": "apache-2.0"}}
        """Beside the names of the files, in the answer about the repository."""
        self.missing: set[str] = set()
        """Files that are told of and not handed out."""
        self.swapped: dict[str, bytes] = {}
        """Files that are other than what is told of them."""
        self.broken: dict[str, int] = {}
        """Files whose next answer ends after so many bytes, once."""
        self.stalled: dict[str, int] = {}
        """Files whose next answer stops after so many bytes, and goes on when `go_on` is set."""
        self.stopped, self.go_on = threading.Event(), threading.Event()
        self.ranges: list[str] = []
        """What was asked for by range."""
        self.takes_ranges = True
        self.requests: list[str] = []
        """`GET /path`, queries left out."""
        self.tokens: set[str | None] = set()
        self.endpoint = ""

    def downloads(self) -> list[str]:
        """Names of the files that were handed out, in order."""
        prefix = f"GET /{self.repository}/resolve/{COMMIT}/"
        return [request.removeprefix(prefix) for request in self.requests if request.startswith(prefix)]

    def about(self) -> dict[str, Any]:
        """What the hub says of the repository."""
        siblings = []
        for name, data in self.files.items():
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            large = {"lfs": {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 9}}
            is_large = name.endswith(".safetensors")
            siblings.append({"rfilename": name, "size": len(data), "blobId": blob, **(large if is_large else {})})
        return {"id": self.repository, "sha": COMMIT, "siblings": siblings, "tags": [], **self.facts}

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        """(status, body, headers) for a path."""
        if path in (f"/api/models/{self.repository}", f"/api/models/{self.repository}/revision/main"):
            return 200, json.dumps(self.about()).encode(), {"Content-Type": "application/json"}
        name = path.removeprefix(f"/{self.repository}/resolve/{COMMIT}/")
        if name not in self.files or name in self.missing:
            kind = (
                "RevisionNotFound" if "/revision/" in path else "RepoNotFound" if "/api/" in path else "EntryNotFound"
            )
            return 404, b"", {"X-Error-Code": kind}
        data = self.swapped.get(name, self.files[name])
        etag = hashlib.sha256(data).hexdigest()
        return 200, data, {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"'}


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """Serve `hub` at its `endpoint` on threads of its own, until the block is left."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requests.append(f"{self.command} {path}")
            hub.tokens.add(self.headers.get("Authorization"))
            status, data, headers = hub.answer(path)
            asked = self.headers.get("Range")
            if asked and status == 200 and hub.takes_ranges:
                hub.ranges.append(asked)
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
                headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
                status, data = 206, data[start:]
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self._send(path.rpartition("/")[2], data)

        def _send(self, name: str, data: bytes) -> None:
            if name in hub.stalled:
                count = hub.stalled.pop(name)
                self.wfile.write(data[:count])
                self.wfile.flush()
                hub.stopped.set()
                hub.go_on.wait()
                return
            self.wfile.write(data[: hub.broken.pop(name, len(data))])

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        hub.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()
