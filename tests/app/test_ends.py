"""How the program ends when the world around it fails: output that cannot be written, signals, odd things in the place
of files of ours."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.editing.document import open_bytes
from app.editing.journal import Journal, State
from app.editing.patch import patch_name
from app.errors import ExitCode, FileMissingError, SettingsError, UsageError
from app.paths import journal_dir, private_dir
from app.settings import load_settings
from tests.support.headless_edit import CHANGED, run_edit
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tiny_gguf import write_tiny

RUN = "import sys; from app.start import main; sys.exit(main())"


def start(*arguments: str, **streams: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", RUN, *arguments], **streams)  # type: ignore[call-overload,no-any-return]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [("--help",), ("models", "list"), ("models", "list", "--json"), ("history",)])
def test_output_that_cannot_be_written_is_one_sentence(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run([sys.executable, "-c", RUN, *arguments], stdout=full, stderr=subprocess.PIPE)
    said = ran.stderr.decode()
    if arguments == ("history",) and not said:  # an empty journal prints nothing
        assert ran.returncode == ExitCode.OK
        return
    assert ran.returncode == ExitCode.FILE
    assert said.startswith("redraft: The output cannot be written") and said.count("\n") == 1


def test_output_nobody_reads_ends_as_other_programs_do() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    running = start("--help", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    _, said = running.communicate()
    assert (running.returncode, said) == (ExitCode.BROKEN_PIPE, b"")


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_ctrl_c_in_a_load_ends_it_there(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    stuck = (
        "import signal, sys, threading, app.clients.in_process as client\n"
        "def load(*given):\n    print('loading', file=sys.stderr, flush=True)\n    threading.Event().wait()\n"
        "client.load_engine = load\n"
    )
    source = tmp_path / "a.py"
    source.write_text("x = 1\n")
    running = subprocess.Popen(
        [sys.executable, "-c", stuck + RUN, "edit", str(source), "-i", "x", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stderr is not None
    while b"loading" not in (line := running.stderr.readline()):
        assert line, "it ended before it loaded"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == ExitCode.INTERRUPTED
    assert b"Interrupted; nothing was written." in (out if arguments else err)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_export_that_is_ended_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    held = (
        "import signal, sys, editor_engine.export as export\n"
        "def write(*given):\n    print('writing', file=sys.stderr, flush=True)\n    signal.pause()\n"
        "export._write = write\n"
    )
    source, target = write_tiny(tmp_path / "tiny.gguf"), tmp_path / "out"
    running = subprocess.Popen(
        [sys.executable, "-c", held + RUN, "models", "export-hf", str(source), str(target), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stderr is not None
    while b"writing" not in (line := running.stderr.readline()):
        assert line, "it ended before it wrote"
    running.send_signal(number)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == ExitCode.INTERRUPTED and b'"cancelled"' in out
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.gguf"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_filter_that_is_ended_gives_its_text_back(number: signal.Signals) -> None:
    ready = "import app.headless as h, sys; w = h.open_bytes\n"
    hook = "def held(*given):\n    print('ready', file=sys.stderr, flush=True)\n    import signal; signal.pause()\n"
    code = ready + hook + "h.open_bytes = held\n" + RUN
    running = subprocess.Popen(
        [sys.executable, "-c", code, "edit", "-", "-i", "x", "--path", "a.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdin is not None and running.stderr is not None
    running.stdin.write(b"a = 1\r\nb = 2")
    running.stdin.close()
    assert running.stderr.readline() == b"ready\n"
    running.send_signal(number)
    running.stdin = None
    out, said = running.communicate()
    assert (running.returncode, out) == (ExitCode.INTERRUPTED, b"a = 1\r\nb = 2")
    assert said.strip() == b"redraft: interrupted."


def test_a_pipe_in_the_place_of_settings_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings.toml")
    with pytest.raises(SettingsError, match="not a regular file"):
        load_settings(tmp_path / "settings.toml", {})


def test_settings_may_have_a_byte_order_mark_and_must_be_utf8(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(b"\xef\xbb\xbfthreads = 3\n")
    assert load_settings(path, {}).load.threads == 3
    path.write_bytes(b'model = "\xff"\n')
    with pytest.raises(SettingsError, match="not UTF-8"):
        load_settings(path, {})


@pytest.mark.parametrize("text", ['[edit]\nstrict = "yes"', "[edit]\nstrict = 1", 'threads = "3"'])
def test_the_settings_file_wants_the_right_kind(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match="must be"):
        load_settings(path, {})


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_an_odd_thing_in_the_journal_is_a_damaged_entry(make: object) -> None:
    folder = private_dir(journal_dir())
    make(folder / "00000001-00000000.applied")  # type: ignore[operator]
    assert all(entry.state is State.DAMAGED for entry in Journal(folder).entries())


def test_a_patch_never_names_a_folder_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert patch_name(open_bytes(b"x\n", "../../b/a.py")) == "b/a.py"
    assert patch_name(open_bytes(b"x\n", "b/../a.py")) == "a.py"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"instruction": "\udcff"}, UsageError.exit_code),
        ({"patch": "-"}, UsageError.exit_code),
        ({"patch": "/nonexistent/x.diff"}, ExitCode.FILE),
        ({"patch": "."}, ExitCode.FILE),
    ],
)
def test_what_cannot_work_is_said_before_the_model_runs(file: Path, options: dict[str, str], code: ExitCode) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, **options)
    assert outcome.code == code
    assert not outcome.client.requests


def test_a_long_instruction_is_not_blamed_on_the_file(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED), context_length=4000), file, instruction="word " * 3000)
    assert outcome.code == ExitCode.FILE
    assert "Instruction and context files are too long" in outcome.err


def test_an_empty_name_is_no_folder() -> None:
    from app.editing.document import open_document

    with pytest.raises(FileMissingError, match="empty"):
        open_document("")
