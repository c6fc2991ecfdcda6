"""Ctrl-C and its like at any moment of an edit's start, and after its end: the exit code, the result, one sentence.

A moment is a module that is about to be imported, in whatever thread; the signal comes there.
"""

import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import ExitCode
from tests.support.tiny_gguf import write_tiny

SOURCE = b"a = 1\r\nb = 2\n"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AT_IMPORT = """
import signal, sys
from app.start import main
class Moment:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            signal.raise_signal({number})
sys.meta_path.insert(0, Moment())
sys.exit(main())
"""
LIST = """
import sys
from app.start import main
class Moment:
    def find_spec(self, name, path=None, target=None):
        found.append(name)
found = []
sys.meta_path.insert(0, Moment())
code = main()
print(*found, file=sys.stderr)
sys.exit(code)
"""
SAID_ALL = (
    "import signal, sys; from app.start import main; code = main(); signal.raise_signal({number}); sys.exit(code)"
)
AT_EXIT = """
import atexit, signal, sys
from app.start import main
atexit.register(lambda: signal.raise_signal({number}))
sys.exit(main())
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose replies are noise, and no reply is needed."""
    return write_tiny(tmp_path / "tiny.gguf")


def edit(code: str, model: Path, way: str) -> "subprocess.CompletedProcess[bytes]":
    source = model.with_name("a.py")
    source.write_bytes(SOURCE)
    arguments = ["-", "--path", "a.py"] if way == "filter" else [str(source), *(["--json"] if way == "json" else [])]
    command = [sys.executable, "-c", code, "edit", *arguments, "-i", "x", "--model", str(model)]
    return subprocess.run(command, input=SOURCE, capture_output=True)


def assert_interrupted(ran: "subprocess.CompletedProcess[bytes]", way: str) -> None:
    said = ran.stderr.decode()
    assert ran.returncode == ExitCode.INTERRUPTED, said
    assert not any(word in said for word in ("Traceback", "ignored", "Warning")), said
    if way == "json":
        results = [line for line in map(json.loads, ran.stdout.splitlines()) if line["type"] == "result"]
        assert [(line["outcome"], line["error"]["code"]) for line in results] == [("cancelled", "interrupted")]
        return
    assert said.splitlines()[-1].lower().startswith("redraft: interrupted")
    assert said.lower().count("interrupted") == 1
    assert ran.stdout == (SOURCE if way == "filter" else b"")


def moments(model: Path) -> list[str]:
    """Every module that an edit imports, once its signals are noted, in order."""
    names = edit(LIST, model, "json").stderr.decode().split()
    assert names[0] == "app.cli" and "app.headless" in names and "editor_engine.engine" in names
    return list(dict.fromkeys(names))


def assert_any_moment_will_do(model: Path, way: str, every: int) -> None:
    for name, number in zip(moments(model)[::every], itertools.cycle(SIGNALS), strict=False):
        assert_interrupted(edit(AT_IMPORT.format(module=name, number=int(number)), model, way), way)


@pytest.mark.parametrize("way", ["json", "words", "filter"])
def test_a_signal_at_the_start_ends_it_with_its_result(model: Path, way: str) -> None:
    assert_any_moment_will_do(model, way, every=80)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["json", "words", "filter"])
def test_a_signal_at_any_moment_of_the_start_ends_it_with_its_result(model: Path, way: str) -> None:
    assert_any_moment_will_do(model, way, every=1)


@pytest.mark.parametrize("code", [SAID_ALL, AT_EXIT])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_after_the_result_changes_nothing(model: Path, number: signal.Signals, code: str) -> None:
    ran = edit(code.format(number=int(number)), model, "json")
    results = [line for line in map(json.loads, ran.stdout.splitlines()) if line["type"] == "result"]
    assert [line["exit_code"] for line in results] == [ran.returncode]
    assert ran.returncode not in (ExitCode.INTERRUPTED, -number)
    assert ran.stderr == b""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_is_ignored_stays_ignored(model: Path, number: signal.Signals) -> None:
    ignored = f"import signal; signal.signal({int(number)}, signal.SIG_IGN)\n"
    ran = edit(ignored + AT_IMPORT.format(module="app.headless", number=int(number)), model, "json")
    assert json.loads(ran.stdout.splitlines()[-1])["exit_code"] == ran.returncode != ExitCode.INTERRUPTED


@pytest.mark.parametrize("number", SIGNALS)
def test_other_commands_are_ended_before_they_begin(number: signal.Signals) -> None:
    code = AT_IMPORT.format(module="app.history_command", number=int(number))
    ran = subprocess.run([sys.executable, "-c", code, "history"], capture_output=True)
    if number == signal.SIGINT:
        assert (ran.returncode, ran.stderr.strip()) == (ExitCode.INTERRUPTED, b"redraft: interrupted.")
    else:
        assert (ran.returncode, ran.stderr) == (-number, b"")
    assert ran.stdout == b""
