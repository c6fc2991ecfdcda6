"""`redraft [FILE]`: what starts the terminal UI, what stops it before it starts, and how it ends."""

import re
from pathlib import Path

import pytest

from app.cli import main
from app.errors import ExitCode
from app.paths import settings_file
from app.ui_command import _for_picked, origins
from tests.support.command_line import run_command
from tests.support.terminal import in_terminal


def test_without_a_terminal_the_ways_that_need_none_are_named(file: Path) -> None:
    for arguments in ((), ("sums.py",), ("--model", "x", "sums.py")):
        ran = run_command(file.parent, *arguments)
        assert ran.code == ExitCode.USAGE and ran.out == b""
        assert "needs a terminal" in ran.err and "redraft edit FILE -i TEXT" in ran.err
        assert "textual" not in ran.modules


def test_a_command_that_is_mistyped_is_no_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eidt", "sums.py"]) == ExitCode.USAGE
    assert "did you mean `redraft edit`?" in capsys.readouterr().err
    file.with_name("eidt").write_text("x\n")
    assert main(["eidt"]) == ExitCode.USAGE
    assert "needs a terminal" in capsys.readouterr().err


def test_two_files_are_one_too_many(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sums.py", "other.py"]) == ExitCode.USAGE
    assert "unexpected extra argument" in capsys.readouterr().err


def test_help_has_the_options_of_the_ui(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert "[FILE]" in said and "Options of the terminal UI:" in said and "--no-mouse" in said


def test_a_file_that_cannot_be_opened_is_said_before_the_screen(file: Path) -> None:
    with in_terminal(["missing.py"], file.parent) as terminal:
        assert terminal.end() == ExitCode.FILE
        assert "redraft: missing.py does not exist." in terminal.text
        assert b"\x1b[?1049h" not in terminal.painted


def test_keys_that_make_no_sense_are_said_before_the_screen(file: Path) -> None:
    settings_file().parent.mkdir(parents=True)
    settings_file().write_text('[keys]\nretry = "f6"\n')
    with in_terminal(["sums.py"], file.parent) as terminal:
        assert terminal.end() == ExitCode.USAGE
        assert "keys.retry: f6 is the key of next_pane already" in terminal.text
        assert b"\x1b[?1049h" not in terminal.painted


def test_the_ui_in_a_terminal_without_a_model(file: Path) -> None:
    """The file is there, the engine is not, and it says so; the terminal is as it was afterwards."""
    with in_terminal(["--no-mouse", "sums.py"], file.parent) as terminal:
        terminal.until("spread")
        terminal.until("no engine")
        assert b"\x1b[?1000h" not in terminal.painted
        terminal.press("\x11")  # ctrl+q
        assert terminal.end() == ExitCode.OK
        assert b"\x1b[?1049h" in terminal.painted and b"\x1b[?1049l" in terminal.painted
        assert "Traceback" not in terminal.text


def kinds_of_colour(painted: bytes) -> set[str]:
    """Of the colours that were sent: true ones, of a palette of 256, of the terminal's sixteen."""
    kinds = set()
    for styles in re.findall(rb"\x1b\[([\d;]*)m", painted):
        numbers = iter(styles.decode().split(";"))
        for number in numbers:
            if number in ("38", "48"):
                true = next(numbers) == "2"
                kinds.add("truecolor" if true else "256")
                for _ in range(3 if true else 1):
                    next(numbers)
            elif re.fullmatch(r"(3|4|9|10)[0-7]", number):
                kinds.add("16")
    return kinds


@pytest.mark.parametrize(
    ("variables", "kinds"),
    [
        ({"COLORTERM": "truecolor"}, {"truecolor"}),
        ({"COLORTERM": ""}, {"256"}),
        ({"COLORTERM": "", "COLORFGBG": "0;15"}, {"256"}),
        ({"COLORTERM": "truecolor", "REDRAFT_COLOURS": "16"}, {"16"}),
        ({"COLORTERM": "truecolor", "REDRAFT_COLOURS": "none"}, set()),
        ({"COLORTERM": "truecolor", "NO_COLOR": "1"}, set()),
        ({"COLORTERM": "truecolor", "NO_COLOR": ""}, {"truecolor"}),
    ],
)
def test_no_more_colours_are_sent_than_the_terminal_has(
    file: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], kinds: set[str]
) -> None:
    for name in ("NO_COLOR", "COLORFGBG", "REDRAFT_COLOURS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with in_terminal(["sums.py"], file.parent) as terminal:
        terminal.until("no engine")
        terminal.press("\x11")  # ctrl+q
        assert terminal.end() == ExitCode.OK
    assert kinds_of_colour(terminal.painted) == kinds


def test_the_ui_ends_when_its_terminal_is_gone(file: Path) -> None:
    with in_terminal(["sums.py"], file.parent) as terminal:
        terminal.until("no engine")
        terminal.hang_up()
        assert terminal.process.wait(timeout=60) == ExitCode.BROKEN_PIPE


def test_consent_to_run_code_is_for_the_model_it_was_given_for() -> None:
    load = {"model": "first", "remote_code": True, "quantise": "nf4", "threads": 2}
    assert _for_picked(load, "picked") == {"model": "picked", "quantise": "nf4", "threads": 2}


def test_what_was_given_is_told_by_its_setting_and_its_option() -> None:
    assert origins({"model": "smollm2", "threads": 2}, "http://localhost:1/v1", True, None) == {
        "model": ("smollm2", "--model"),
        "threads": (2, "--threads"),
        "engine.url": ("http://localhost:1/v1", "--engine"),
        "edit.draft": (False, "--no-draft"),
    }
    assert origins({}, None, None, True) == {"edit.strict": (True, "--strict")}
