"""`redraft serve` killed at any moment of its life, while it packs, loads or answers: the next start is clean.

Some kills in CI; with REDRAFT_SOAK=1 (`make soak`) 500.
"""

import http.client
import json
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from app.errors import ExitCode
from editor_engine.config import socket_path
from tests.support.forked_commands import Forks, forks
from tests.support.serving import PATIENCE_S
from tests.support.soak import SOAK
from tests.support.tiny_gguf import write_tiny

KILLS = 500 if SOAK else 10
PREPARE = """
import uvicorn.lifespan.on, uvicorn.loops.auto, uvicorn.protocols.http.auto, uvicorn.protocols.websockets.auto
import app.serve_command, app.clients.in_process, editor_engine.engine, editor_engine.server.run
"""


class Unix(http.client.HTTPConnection):
    """A connection to the server's socket."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(str(socket_path()))


def ask(tokens: int) -> int:
    """Status of one whole answer. Raises OSError and HTTPException where there is no server, or no more."""
    connection = Unix("x")
    try:
        asked = {"model": "tiny", "messages": [{"role": "user", "content": "x"}], "max_tokens": tokens}
        connection.request("POST", "/v1/chat/completions", json.dumps(asked), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


@contextmanager
def asked_all_the_time() -> Iterator[None]:
    """Somebody asks whatever server there is, again and again."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.01):  # leaves the server some of the processor
            with suppress(OSError, http.client.HTTPException):
                ask(40)

    asking = threading.Thread(target=work)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()


def lives(forked: Forks, model: Path) -> float:
    """A whole life, in order: it listens, answers, ends, and leaves no socket. Seconds until it had answered."""
    run = forked.start("serve", "--model", str(model), "--threads", "1", "--json")
    begun = time.perf_counter()
    assert json.loads(run.out.readline())["type"] == "start"
    assert ask(4) == 200
    answered = time.perf_counter() - begun
    run.kill(0, signal.SIGTERM)
    assert run.end().code == ExitCode.OK
    assert list(socket_path().parent.iterdir()) == []
    return answered


def test_a_server_killed_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    model = write_tiny(tmp_path / "tiny.gguf", seed=3)
    cache = Path(os.environ["XDG_CACHE_HOME"])
    chance = random.Random(33)

    def cached() -> list[Path]:
        return sorted(path for path in cache.rglob("*") if path.is_file())

    with forks(tmp_path, tmp_path / "run", PREPARE) as forked:
        lives(forked, model)
        ended = 0
        assert cached()
        for number in range(KILLS):
            if number % 50 == 0:  # how busy the machine is changes
                for path in cached():
                    path.unlink()
                usual = lives(forked, model)
            if chance.random() < 0.5:
                for path in cached():  # so that it packs again
                    path.unlink()
            with asked_all_the_time():
                run = forked.start("serve", "--model", str(model), "--threads", "1", "--json")
                run.kill((number + chance.random()) / KILLS * 1.5 * usual)
                ended += run.end().code == -signal.SIGKILL
            lives(forked, model)
            assert not [path for path in cached() if path.suffix in (".new", ".tmp")], "a temporary file stays"
    assert ended == KILLS
