"""The command line as a process: what it loads, where its words go, and how it ends."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from app.cli import COMMANDS, main
from app.errors import ExitCode
from app.json_events import JsonWriter
from app.paths import logs_dir
from editor_engine.models.native import load
from tests.support.command_line import run_command
from tests.support.headless_edit import CHANGED, SOURCE, Terminal, assert_interface, assert_sentence
from tests.support.tiny_gguf import GgufSource, TinyShape, tiny_source, write_tiny

SMALL = TinyShape(context=4096)
HEAVY = {"torch", "transformers", "numpy", "textual", "tree_sitter", "pygments", "tokenizers", "huggingface_hub"}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A model of random weights whose context holds the file."""
    return tiny_source(shape=SMALL).write(tmp_path / "tiny.gguf")


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("--bogus",)])
def test_help_loads_nothing_heavy(file: Path, arguments: tuple[str, ...]) -> None:
    ran = run_command(file.parent, *arguments)
    assert not HEAVY & ran.modules
    assert "app.headless" not in ran.modules and "editor_engine.engine" not in ran.modules


@pytest.mark.parametrize("command", ["edit", "models"])
def test_help_of_a_command_loads_no_engine(file: Path, command: str) -> None:
    ran = run_command(file.parent, command, "--help")
    assert ran.code == 0 and b"Usage:" in ran.out
    assert not {"torch", "transformers", "numpy", "textual", "tree_sitter"} & ran.modules


def test_help_offers_what_is_there_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = capfd.readouterr().out
    assert all(name in listed for name in COMMANDS)
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
    offered = capfd.readouterr().out
    assert "--fidelity" not in offered  # for later


def test_a_native_edit_needs_neither_torch_nor_the_network(file: Path, tiny: Path) -> None:
    arguments = ("edit", "sums.py", "-i", "Do.", "--model", str(tiny), "--threads", "1", "--json")
    open_, shut = run_command(file.parent, *arguments), run_command(file.parent, *arguments, no_network=True)
    assert "editor_engine.kernels._native" in shut.modules
    assert not {"torch", "transformers", "bitsandbytes", "textual", "huggingface_hub"} & shut.modules
    assert not shut.reached_out
    assert shut.code == open_.code
    assert said(shut.out) == said(open_.out)
    assert said(shut.out)[0]
    assert file.read_text() == SOURCE


def said(out: bytes) -> tuple[str, Any, Any]:
    """What the model wrote, how it ended, and the counts that do not hang on time."""
    lines = [json.loads(line) for line in out.splitlines()]
    assert_interface(lines, lines[-1]["exit_code"])
    text = "".join(line["text"] for line in lines if line["type"] == "text")
    stats = lines[-1]["stats"]
    return text, lines[-1]["error"], (stats["prompt_tokens"], stats["output_tokens"])


def test_an_edit_needs_no_engine_modules_of_others(file: Path) -> None:
    ran = run_command(file.parent, "edit", "sums.py", "-i", "Do.", reply=CHANGED, no_network=True)
    assert ran.code == 0
    assert b"+        return 0.0\n" in ran.out
    assert not ran.reached_out
    assert not {"torch", "transformers", "numpy", "textual"} & ran.modules


def test_apply_and_undo(file: Path) -> None:
    assert run_command(file.parent, "edit", "sums.py", "-i", "Do.", "--apply", reply=CHANGED).code == 0
    assert file.read_text() == CHANGED
    assert run_command(file.parent, "undo", "sums.py").code == 0
    assert file.read_bytes() == SOURCE.encode()


def unsupported() -> GgufSource:
    source = tiny_source()
    source.metadata["general.architecture"] = "mamba"
    return source


def test_models_that_cannot_be_used(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = write_tiny(tmp_path / "whole.gguf")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole.read_bytes()[:-4096])
    noise = tmp_path / "noise.gguf"
    noise.write_bytes(b"not a model at all\n" * 100)
    nothing = tmp_path / "nothing.gguf"
    nothing.touch()
    other = unsupported().write(tmp_path / "mamba.gguf")
    kind = tiny_source(kind="Q2_K").write(tmp_path / "q2.gguf")
    template = tiny_source()
    del template.metadata["tokenizer.chat_template"]
    bare = template.write(tmp_path / "bare.gguf")
    models: list[Path | str | None] = [
        cut,
        noise,
        nothing,
        other,
        kind,
        bare,
        tmp_path / "gone.gguf",
        tmp_path,
        "no-such-model",
        None,
    ]
    for model in models:
        check_refused(file, model, capfd)
    _, *others = load.load_native.__defaults__ or ()
    monkeypatch.setattr(load.load_native, "__defaults__", (lambda: 1000, *others))
    assert "memory" in check_refused(file, whole, capfd).lower()


def check_refused(file: Path, model: Path | str | None, capfd: pytest.CaptureFixture[str]) -> str:
    """Exit 4 with one sentence, for people and for programs."""
    options = [] if model is None else ["--model", str(model)]
    arguments = ["edit", str(file), "-i", "Do.", "--apply", *options]
    assert main(arguments) == ExitCode.ENGINE, model
    human = capfd.readouterr()
    assert human.out == ""
    (line,) = human.err.splitlines()
    assert_sentence(line)
    assert main([*arguments, "--json"]) == ExitCode.ENGINE
    machine = capfd.readouterr()
    assert machine.err == ""
    lines = [json.loads(line) for line in machine.out.splitlines()]
    assert_interface(lines, ExitCode.ENGINE)
    assert lines[-1]["outcome"] == "failed"
    assert f"redraft: {lines[-1]['error']['message']}" == line
    assert file.read_text() == SOURCE
    return line


def test_a_filter_is_silent_where_its_streams_are_one(file: Path) -> None:
    """As vim runs it: `:%!redraft edit - ...` puts whatever comes out of both streams into the buffer."""
    arguments = ("edit", "-", "-i", "Do.", "--path", "sums.py")
    data = SOURCE.encode()
    good = run_command(file.parent, *arguments, reply=CHANGED, stdin=data, joined=True)
    assert (good.code, good.out) == (0, CHANGED.encode())
    for extra, code in (
        (("--model", "no-such-model"), ExitCode.ENGINE),
        (("--lines", "1:999"), ExitCode.USAGE),
        (("--bogus",), ExitCode.USAGE),
        (("--max-deletions", "few"), ExitCode.USAGE),
    ):
        ran = run_command(file.parent, *arguments, *extra, stdin=data, joined=True)
        assert (ran.code, ran.out) == (code, data), extra
    ran = run_command(file.parent, *arguments, stdin=data, joined=True, REDRAFT_MODLE="x")
    assert (ran.code, ran.out) == (ExitCode.USAGE, data)
    apart = run_command(file.parent, *arguments, "--bogus", stdin=data)
    assert (apart.code, apart.out) == (ExitCode.USAGE, data)
    assert "--bogus" in apart.err


def test_a_person_who_mistypes_an_option_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    typed = Terminal(io.BytesIO(b"typed"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", typed)
    assert main(["edit", "-", "-i", "Do.", "--bogus"]) == ExitCode.USAGE
    assert typed.read() == "typed"
    assert "--bogus" in capfd.readouterr().err


def test_a_filter_that_meets_a_fault_of_ours_is_silent_too(file: Path) -> None:
    (file.parent / "sitecustomize.py").write_text(
        "import app.headless\n\n\ndef broken(*given):\n    raise RuntimeError('not foreseen')\n\n\n"
        "app.headless.open_bytes = broken\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    ran = run_command(
        file.parent,
        *("edit", "-", "-i", "Do."),
        stdin=SOURCE.encode(),
        joined=True,
        PYTHONPATH=os.pathsep.join([str(file.parent), root]),
    )
    assert (ran.code, ran.out) == (ExitCode.REFUSED, SOURCE.encode())


@pytest.mark.parametrize("option", ["--json", "--stdout", "--dry-run", "--quiet"])
def test_a_reader_that_leaves_causes_no_words(file: Path, option: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ran = run_command(file.parent, "edit", "sums.py", "-i", "Do.", "--quiet", option, reply=CHANGED, stdout=writer)
    os.close(writer)
    assert ran.code == ExitCode.BROKEN_PIPE
    assert "Exception ignored" not in ran.err and "internal" not in ran.err


def test_streams_that_were_closed_before_we_started(file: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "edit", str(file), "-i", "Do.", "--model", "no-such-model"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *command],
        stderr=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
        timeout=60,
    )
    assert done.returncode == ExitCode.ENGINE
    assert b"internal error" not in done.stderr


def test_a_terminal_encoding_that_lacks_a_character(file: Path) -> None:
    file.write_text("name = '漢字'\n")
    ran = run_command(
        file.parent, "edit", "sums.py", "-i", "Do.", "--dry-run", reply="", PYTHONIOENCODING="ascii", PYTHONUTF8="0"
    )
    assert ran.code == 0
    assert rb"name = '\u6f22\u5b57'" in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["edit"],
        ["edit", "sums.py"],
        ["edit", "sums.py", "-i", "x", "--bogus"],
        ["edit", "sums.py", "-i", "x", "--threads", "-1"],
        ["edit", "sums.py", "-i", "x", "--max-deletions", "-1"],
        ["edit", "sums.py", "-i", "x", "--json", "--stdout"],
        ["edit", "sums.py", "-i", "x", "--path", "y.py"],
        ["no-such-command"],
        [],
    ],
)
def test_options_that_make_no_sense(file: Path, arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == ExitCode.USAGE
    streams = capfd.readouterr()
    assert streams.out == ""
    assert streams.err


@pytest.mark.parametrize("name", ["sums[1].py", "a b.py", "*.py", "{x}.py", "ünï.py", "-dash.py", "new\nline.py"])
def test_names_are_names(file: Path, name: str) -> None:
    path = file.parent / name
    path.write_text(SOURCE)
    ran = run_command(file.parent, "edit", "-i", "Do.", "--apply", "--", name, reply=CHANGED)
    assert ran.code == 0
    assert path.read_text() == CHANGED
    assert file.read_text() == SOURCE


def test_a_name_with_stray_bytes(file: Path) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    (file.parent / name).write_text(SOURCE)
    ran = run_command(file.parent, "edit", name, "-i", "Do.", "--json", reply=CHANGED)
    assert ran.code == 0
    assert os.fsencode(json.loads(ran.out.splitlines()[0])["file"]["path"]) == b"caf\xe9.py"
    assert run_command(file.parent, "edit", name, "-i", "Do.", reply=CHANGED).code == 0


def test_a_fault_of_ours_is_one_sentence_and_a_report(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("not\nforeseen\x1b[2J")

    monkeypatch.setattr("app.headless.open_document", broken)
    assert main(["edit", str(file), "-i", "Do."]) == ExitCode.REFUSED
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(r"redraft: An internal error, RuntimeError: not\nforeseen\x1b[2J.")
    (report,) = logs_dir().iterdir()
    assert str(report) in line
    assert "Traceback" in report.read_text()
    assert report.stat().st_mode & 0o777 == 0o600


def test_a_fault_of_ours_where_no_report_can_be_written(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr("app.headless.open_document", broken)
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    assert main(["edit", str(file), "-i", "Do."]) == ExitCode.REFUSED
    assert "report could not be written" in capfd.readouterr().err


def test_ctrl_c_outside_of_an_edit(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("app.headless.open_document", interrupted)
    assert main(["edit", str(file), "-i", "Do."]) == ExitCode.INTERRUPTED
    assert capfd.readouterr().err == "redraft: Interrupted.\n"


def test_ctrl_c_stops_the_real_engine(
    file: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def write(self: JsonWriter, kind: str, **fields: object) -> None:
        plain_write(self, kind, **fields)
        if kind == "start":  # the engine has the prompt and has not read it yet
            signal.raise_signal(signal.SIGINT)

    plain_write = JsonWriter.write
    monkeypatch.setattr(JsonWriter, "write", write)
    arguments = ["edit", str(file), "-i", "Do.", "--apply", "--model", str(tiny), "--threads", "1", "--json"]
    before = threading.enumerate()
    assert main(arguments) == ExitCode.INTERRUPTED
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert_interface(lines, ExitCode.INTERRUPTED)
    assert lines[-1]["outcome"] == "cancelled"
    assert file.read_text() == SOURCE
    assert [thread.name for thread in threading.enumerate() if thread not in before] == []
