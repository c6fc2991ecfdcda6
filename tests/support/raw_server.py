"""A server of another program that dies in the middle: byte by byte by hand, since no framework breaks off on purpose.

Knows nothing of what is tested. Invariant: it is gone when the block ends.
"""

import json
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.support.dialects import chunk, event
from tests.support.headless_edit import CHANGED

PATIENCE_S = 30


class _DiesError(Exception):
    """It was killed."""


class RawServer:
    """A vLLM without tokeniser, by hand: a whole reply, or one that stops in its middle as `ends` says.

    Once it is dead, connections are closed as soon as they have asked.
    """

    def __init__(self, ends: str, left: int, resets: bool) -> None:
        self.ends = ends
        self.left = left
        """Bytes it may still send before it dies."""
        self.resets = resets
        self.address = ""
        self.streaming = threading.Event()
        """Half of the reply was sent."""
        self.gone = threading.Event()
        """The client closed the connection."""

    def serve(self, connection: socket.socket) -> None:
        with suppress(_DiesError, ConnectionError):
            self._serve(connection)

    def _send(self, connection: socket.socket, data: bytes) -> None:
        connection.sendall(data[: self.left])
        self.left -= len(data)
        if self.left < 0:
            self.left = 0
            if self.resets:
                _reset(connection)
            raise _DiesError

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while line := stream.readline():
                path = line.split()[1].decode()
                length = 0
                while (header := stream.readline().strip()) != b"":
                    name, _, value = header.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                stream.read(length)
                if path.endswith("/chat/completions"):
                    self._stream(connection, stream)
                    return
                models = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 8192}]}
                found = path.endswith("/models")
                body = json.dumps(models if found else {"detail": "Not Found"}).encode()
                head = b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n" % (b"200 OK" if found else b"404 No", len(body))
                self._send(connection, head + body)

    def _stream(self, connection: socket.socket, stream: Any) -> None:
        reply = f"{CHANGED}```\n"
        half = len(reply) // 2
        self._send(connection, b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n")
        self._send(connection, event(chunk({"content": reply[:half]})))
        self.streaming.set()
        if self.ends == "reset":
            _reset(connection)
        elif self.ends == "waits":
            with suppress(OSError):  # a killed client resets the connection
                stream.read(1)
            self.gone.set()
        elif self.ends == "whole":
            self._send(connection, event(chunk({"content": reply[half:]}, "stop")) + event("[DONE]"))


def _reset(connection: socket.socket) -> None:
    """What closes it next is no orderly end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextmanager
def raw_server(ends: str, left: int = sys.maxsize, *, resets: bool = False) -> Iterator[RawServer]:
    """One that dies after `left` bytes; `resets`: with data of the client's unread, as the system then tells it."""
    server = RawServer(ends, left, resets)
    threads = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.address = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=server.serve, args=(connection,)))
                threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join(PATIENCE_S)
