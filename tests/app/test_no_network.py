"""Nothing but `models pull` and an engine that was named reaches for the network, in no process of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import ExitCode
from tests.support.headless_edit import SOURCE
from tests.support.terminal import in_terminal
from tests.support.tiny_gguf import TinyShape, tiny_source

_SEAL = """
import os, socket, sys
folder = {folder!r}
open(os.path.join(folder, f"started-{{os.getpid()}}"), "w").close()
def seal(event, given):
    inet = event == "socket.__new__" and given[1] in (socket.AF_INET, socket.AF_INET6)
    far = event == "socket.connect" and not isinstance(given[1], (str, bytes))
    if inet or far or event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        with open(os.path.join(folder, "tried"), "a") as file:
            file.write(f"{{event}} {{given[1:]}} by {{sys.argv}}\\n")
        raise OSError("there is no network")
sys.addaudithook(seal)
"""

COMMANDS = {
    "edit": (("edit", "sums.py", "-i", "Do.", "--model", "tiny.gguf"), 1),
    "edit without a model": (("edit", "sums.py", "-i", "Do."), 1),
    "dry run": (("edit", "sums.py", "-i", "Do.", "--model", "tiny.gguf", "--dry-run"), 1),
    "a name of the hub": (("edit", "sums.py", "-i", "Do.", "--model", "someone/some-model"), 1),
    "watch": (("watch", "sums.py", "-i", "Do.", "--model", "tiny.gguf", "--once"), 2),
    "verify": (("verify", "--model", "tiny.gguf"), 1),
    "list": (("models", "list"), 1),
    "info": (("models", "info", "tiny.gguf"), 1),
    "info of what is not here": (("models", "info", "smollm2"), 1),
    "models verify": (("models", "verify"), 1),
    "history": (("history",), 1),
    "undo": (("undo",), 1),
    "review": (("review", "--list"), 1),
    "replay": (("bench", "replay", "--tasks", "tasks.jsonl", "--model", "tiny.gguf"), 1),
}
"""What is run, and the processes it takes at least."""


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that every Python process started in it tells of itself, and whether it tried the network."""
    seal = tmp_path / "seal"
    seal.mkdir()
    (seal / "sitecustomize.py").write_text(_SEAL.format(folder=str(seal)))
    monkeypatch.setenv("PYTHONPATH", str(seal))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "sums.py").write_text(SOURCE)
    (work / "tasks.jsonl").write_text("{}\n")
    tiny_source(shape=TinyShape(context=2048)).write(work / "tiny.gguf")
    return seal


def assert_quiet(seal: Path, processes: int) -> None:
    assert len(list(seal.glob("started-*"))) >= processes
    tried = seal / "tried"
    assert not tried.exists(), tried.read_text()


def test_the_seal_sees_what_it_should(sealed: Path) -> None:
    reach = (
        "import socket, subprocess, sys; subprocess.run([sys.executable, '-P', '-c', 'import socket; socket.socket()'])"
    )
    subprocess.run([sys.executable, "-c", reach], capture_output=True, check=True)
    assert "socket.__new__" in (sealed / "tried").read_text()
    with pytest.raises(AssertionError):
        assert_quiet(sealed, 2)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_reaches_for_nothing(sealed: Path, name: str) -> None:
    arguments, processes = COMMANDS[name]
    start = "from app.start import main; raise SystemExit(main())"
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": f"{sealed}{os.pathsep}{root}"}
    ran = subprocess.run(
        [sys.executable, "-c", start, *arguments],
        capture_output=True,
        env=environment,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert b"Traceback" not in ran.stderr
    assert ran.returncode in set(ExitCode)
    assert_quiet(sealed, processes)


def test_the_terminal_ui_reaches_for_nothing(sealed: Path) -> None:
    with in_terminal(["sums.py", "--model", "tiny.gguf"], Path.cwd()) as terminal:
        terminal.until("ready")
        terminal.press("\x11")  # ctrl+q
        assert terminal.end() == ExitCode.OK
    assert_quiet(sealed, 2)
