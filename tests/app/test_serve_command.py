"""`redraft serve` as a process: starts, refuses a second one, stops in each way, and leaves nothing behind."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from editor_engine.config import socket_path
from tests.support.command_line import run_command
from tests.support.serving import PATIENCE_S, serving
from tests.support.tiny_gguf import write_tiny


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "tiny.gguf", seed=3)


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the system gives a user for sockets."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def ask(client: httpx2.Client, text: str = "Hello.", **more: object) -> httpx2.Response:
    body = {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 5, **more}
    return client.post("/v1/chat/completions", json=body)


def test_it_listens_on_the_socket_of_this_user_and_stops_at_sigterm(model: Path, runtime: Path) -> None:
    with serving("--model", model) as server:
        assert server.start["type"] == "start"
        assert server.start["pid"] == server.process.pid
        assert server.start["model"]["id"] == "tiny"
        assert server.place == f"unix:{socket_path()}"
        assert socket_path() == runtime / "redraft" / "serve.sock"
        with server.client() as client:
            assert ask(client).status_code == 200
            assert client.get("/health").json()["engine"]["model_id"] == "tiny"
        code, lines, err = server.end()
    assert code == 0
    assert [line["type"] for line in lines] == ["result"]
    assert (lines[0]["outcome"], lines[0]["exit_code"]) == ("unchanged", 0)
    assert "listening on" in err and "ready" in err and "stopped" in err
    assert list((runtime / "redraft").iterdir()) == []


def test_ctrl_c_stops_it_with_its_own_code(model: Path, runtime: Path) -> None:
    with serving("--model", model) as server:
        code, lines, _ = server.end(signal.SIGINT)
    assert (code, lines[-1]["exit_code"], lines[-1]["outcome"]) == (130, 130, "cancelled")
    assert list((runtime / "redraft").iterdir()) == []


def test_a_second_server_is_refused_with_the_process_of_the_first(model: Path, tmp_path: Path) -> None:
    with serving("--model", model) as first:
        ran = run_command(tmp_path, "serve", "--model", str(model))
        assert ran.code == 4
        assert f"process {first.process.pid}" in ran.err
        with first.client() as client:
            assert ask(client).status_code == 200


def test_after_a_kill_the_next_start_is_clean(model: Path, runtime: Path) -> None:
    with serving("--model", model) as server:
        place = Path(server.socket)
        server.process.kill()
        server.process.wait(PATIENCE_S)
        assert place.exists()
    with serving("--model", model) as server, server.client() as client:
        assert ask(client).status_code == 200
        code, _, _ = server.end()
    assert code == 0
    assert list((runtime / "redraft").iterdir()) == []


def test_a_killed_client_leaves_the_server_as_it_was(model: Path) -> None:
    child = (
        "import os, socket, sys\nsock = socket.socket(socket.AF_UNIX)\nsock.connect(sys.argv[1])\n"
        "body = sys.argv[2].encode()\n"
        "sock.sendall(b'POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/json\\r\\n'"
        "b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)\nsock.recv(1)\nos.kill(os.getpid(), 9)\n"
    )
    body = {"model": "tiny", "messages": [{"role": "user", "content": "x"}], "stream": True}
    with serving("--model", model) as server, server.client() as client:
        assert ask(client).status_code == 200
        killed = subprocess.run([sys.executable, "-c", child, server.socket, json.dumps(body)], timeout=PATIENCE_S)
        assert killed.returncode == -9
        assert ask(client).status_code == 200
        code, _, _ = server.end()
    assert code == 0


def test_it_ends_by_itself_when_nobody_asks(model: Path) -> None:
    with serving("--model", model, "--idle-timeout", "1") as server:
        code, _, err = server.end(None)
    assert code == 0
    assert "nobody asked" in err


def test_over_tcp_with_a_key_from_the_environment(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_ENGINE_KEY", "the-secret-key")
    with serving("--model", model, "--port", "0") as server, server.client() as client:
        assert server.place.startswith("http://127.0.0.1:")
        assert ask(client).status_code == 401
        client.headers["authorization"] = "Bearer the-secret-key"
        assert ask(client, "text-of-the-user").status_code == 200
        _, lines, err = server.end()
    logs = list(Path(os.environ["XDG_STATE_HOME"]).rglob("*.log*"))
    said = "".join([err, json.dumps(lines), *(path.read_text() for path in logs)])
    assert logs and "completion outcome" in said
    assert "the-secret-key" not in said and "text-of-the-user" not in said


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--host", "127.0.0.1"], 2, "--port"),
        (["--host", "0.0.0.0", "--port", "0"], 2, "REDRAFT_ENGINE_KEY"),
        (["--model", "none.gguf"], 4, "none.gguf"),
        (["--socket", "/proc/no/such/place"], 4, "socket"),
        (["--idle-timeout", "0"], 2, "idle-timeout"),
        (["--idle-timeout", "nan"], 2, "not a time"),
        (["--socket", ""], 2, "empty"),
    ],
)
def test_what_cannot_begin_is_said(model: Path, tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    ran = run_command(tmp_path, "serve", "--model", str(model), *arguments)
    assert ran.code == code
    assert words in ran.err


def test_a_failure_is_a_result_line_too(tmp_path: Path) -> None:
    ran = run_command(tmp_path, "serve", "--json", "--model", str(tmp_path / "none.gguf"))
    (line,) = ran.out.splitlines()
    result = json.loads(line)
    assert (ran.code, result["type"], result["exit_code"], result["error"]["code"]) == (4, "result", 4, "model")


def test_a_damaged_model_is_said_and_the_socket_is_gone(tmp_path: Path, runtime: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + bytes(100))
    ran = run_command(tmp_path, "serve", "--model", str(damaged))
    assert ran.code == 4
    assert "damaged.gguf" in ran.err or "model" in ran.err
    assert list((runtime / "redraft").iterdir()) == []


def test_a_folder_open_to_others_is_refused(model: Path, tmp_path: Path, runtime: Path) -> None:
    (runtime / "redraft").mkdir()
    (runtime / "redraft").chmod(0o755)
    ran = run_command(tmp_path, "serve", "--model", str(model))
    assert ran.code == 4
    assert "chmod 700" in ran.err


def test_help_is_light(tmp_path: Path) -> None:
    ran = run_command(tmp_path, "serve", "--help")
    assert ran.code == 0
    assert not {"fastapi", "uvicorn", "numpy", "pydantic"} & ran.modules


def test_an_address_that_nobody_else_may_use_is_not_left_open(model: Path) -> None:
    with serving("--model", model, "--port", "0") as server:
        port = int(server.place.rpartition(":")[2])
        code, _, _ = server.end()
    assert code == 0
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", port))
