"""Ctrl-C and its like while a model loads that would never come: `serve` and `watch` end there and leave nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import ExitCode
from app.watch.presence import watches_dir
from tests.support.tiny_gguf import write_tiny

PATIENCE_S = 60
"""A hung test fails; none waits this long."""
RUN = "import sys; from app.start import main; sys.exit(main())"
SERVE = """
import sys, threading
from editor_engine.engine import Engine
def load(*given):
    print('it is stuck', file=sys.stderr, flush=True)
    threading.Event().wait()
Engine.load = load
"""
CHILD = """
import os, sys, threading
from pathlib import Path
from app.clients.engine_process import run_process
Path({pid!r}).write_text(str(os.getpid()))
def load(packed):
    {packs} and packed(1, 10)
    threading.Event().wait()
run_process(load, int(sys.argv[1]))
"""
WATCH = """
import os, sys
from app.clients import child
class Stuck(child.ChildClient):
    def __init__(self, options, **more):
        super().__init__(options, command=[sys.executable, "-c", {code!r}, str(os.getpid())], **more)
child.ChildClient = Stuck
"""
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the system gives a user for sockets."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def ended(code: str, number: signal.Signals, *command: str, at: str) -> tuple[int, list[dict[str, object]], str]:
    """(exit code, JSON lines, stderr) of a command that gets the signal once it has said `at`."""
    running = subprocess.Popen(
        [sys.executable, "-c", code + RUN, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    said = ""
    while at not in said:
        line = running.stderr.readline()
        assert line, f"it ended before it loaded: {said}"
        said += line
    running.send_signal(number)
    out, err = running.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in err
    return running.returncode, [json.loads(line) for line in out.splitlines()], said + err


@pytest.mark.parametrize("number", SIGNALS)
def test_a_server_ends_and_its_socket_is_gone(tmp_path: Path, runtime: Path, number: signal.Signals) -> None:
    model = write_tiny(tmp_path / "tiny.gguf")
    code, lines, err = ended(SERVE, number, "serve", "--model", str(model), "--json", at="it is stuck")
    is_interrupt = number == signal.SIGINT
    assert code == (ExitCode.INTERRUPTED if is_interrupt else ExitCode.OK)
    assert (lines[-1]["type"], lines[-1]["exit_code"]) == ("result", code)
    assert ("Interrupted; the server has stopped." if is_interrupt else "stopped.") in err
    assert list((runtime / "redraft").iterdir()) == []


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize("way", ["waits for saves", "once"])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_watch_ends_and_so_does_the_process_of_its_engine(
    tmp_path: Path, number: signal.Signals, way: str, packs: bool
) -> None:
    source = tmp_path / "a.py"
    source.write_text("x = 1\n# redraft: say hello\n")
    pid = tmp_path / "pid"
    stuck = WATCH.format(code=CHILD.format(pid=str(pid), packs=packs))
    arguments = ["watch", str(source), *(["--once"] if way == "once" else [])]
    code, _, err = ended(stuck, number, *arguments, at="Packing the weights" if packs else "Loading the model")
    assert code == ExitCode.INTERRUPTED
    assert "failed" not in err
    assert source.read_text() == "x = 1\n# redraft: say hello\n"
    assert list(watches_dir().iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
