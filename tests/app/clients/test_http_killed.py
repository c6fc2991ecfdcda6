"""Server or client killed in the middle of an edit: the file is what it was, and the next edit starts clean."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from app.errors import ExitCode
from app.paths import journal_dir
from tests.support.command_line import run_command
from tests.support.dialects import chunk, event
from tests.support.headless_edit import CHANGED, SOURCE

PATIENCE_S = 30


class RawServer:
    """A vLLM without tokeniser, by hand: a whole reply, or one that stops in its middle as `ends` says."""

    def __init__(self, ends: str) -> None:
        self.ends = ends
        self.address = ""
        self.streaming = threading.Event()
        """Half of the reply was sent."""
        self.gone = threading.Event()
        """The client closed the connection."""

    def serve(self, connection: socket.socket) -> None:
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
                connection.sendall(head + body)

    def _stream(self, connection: socket.socket, stream: Any) -> None:
        reply = f"{CHANGED}```\n"
        half = len(reply) // 2
        connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n")
        connection.sendall(event(chunk({"content": reply[:half]})))
        self.streaming.set()
        if self.ends == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif self.ends == "waits":
            with suppress(OSError):  # a killed client resets the connection
                stream.read(1)
            self.gone.set()
        elif self.ends == "whole":
            connection.sendall(event(chunk({"content": reply[half:]}, "stop")) + event("[DONE]"))


@contextmanager
def raw_server(ends: str) -> Iterator[RawServer]:
    server = RawServer(ends)
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


def untouched(file: Path) -> bool:
    """The bytes are the old ones, no temporary lies beside the file, and nothing is in the journal."""
    return (
        file.read_text() == SOURCE
        and os.listdir(file.parent) == [file.name]
        and not (journal_dir().exists() and any(path.is_file() for path in journal_dir().rglob("*")))
    )


def applied(file: Path) -> None:
    """The next edit goes through."""
    with raw_server("whole") as server:
        ran = run_command(file.parent, "edit", file.name, "-i", "Do.", "--apply", "--engine", server.address)
        assert ran.code == ExitCode.OK, ran.err
    assert file.read_text() == CHANGED


@pytest.mark.parametrize("ends", ["reset", "half"])
def test_a_server_that_dies_leaves_the_file_as_it_was(file: Path, ends: str) -> None:
    with raw_server(ends) as server:
        ran = run_command(file.parent, "edit", file.name, "-i", "Do.", "--apply", "--engine", server.address)
    assert ran.code == ExitCode.ENGINE, ran.err
    assert ("broke the connection off" if ends == "reset" else "without saying that it is whole") in ran.err
    assert untouched(file)
    applied(file)


@pytest.mark.parametrize(
    ("stop", "code"),
    [
        (lambda process: process.send_signal(signal.SIGKILL), -signal.SIGKILL),
        (lambda process: process.send_signal(signal.SIGINT), ExitCode.INTERRUPTED),
    ],
)
def test_a_client_that_is_stopped_leaves_the_file_as_it_was_and_the_server_idle(
    file: Path, stop: Callable[["subprocess.Popen[bytes]"], None], code: int
) -> None:
    with raw_server("waits") as server:
        command = [sys.executable, "-P", "-m", "app.cli", "edit", file.name, "-i", "Do.", "--apply"]
        with subprocess.Popen(
            [*command, "--engine", server.address], cwd=file.parent, stderr=subprocess.PIPE
        ) as process:
            assert server.streaming.wait(PATIENCE_S)
            stop(process)
            _, err = process.communicate(timeout=PATIENCE_S)
        assert server.gone.wait(PATIENCE_S)
    assert process.returncode == code and b"Traceback" not in err
    assert untouched(file)
    applied(file)


def test_the_key_reaches_the_server_and_no_file(file: Path) -> None:
    with raw_server("reset") as server:
        arguments = ("edit", file.name, "-i", "Do.", "--verbose", "--engine", server.address)
        ran = run_command(file.parent, *arguments, REDRAFT_ENGINE_KEY="sk-secret-1")
    assert "sk-secret-1" not in ran.err and b"sk-secret-1" not in ran.out
    homes = {Path(os.environ[f"XDG_{kind}_HOME"]) for kind in ("CONFIG", "STATE", "DATA", "CACHE")}
    written = [path for home in homes if home.exists() for path in home.rglob("*") if path.is_file()]
    assert not any(b"sk-secret-1" in path.read_bytes() for path in written)
