"""A whole edit as a user does it: the real program, a real small model, a real terminal."""

import sys
from pathlib import Path

import pytest

from app.editing.session_store import left_sessions
from app.paths import state_dir
from tests.support.tmux import ended, terminal

SOURCE = '''"""Sums."""


def total(items):
    result = 0
    for item in items:
        result += item
    return result


def mean(items):
    return total(items) / len(items)
'''


SCRIPTED = """
import sys
from app.tui.app import RedraftApp, UiOptions
from tests.support.scripted_client import ScriptedClient, fenced
RedraftApp(UiOptions(file=sys.argv[1]), lambda _: ScriptedClient(fenced(sys.argv[2]))).run()
"""
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "sums.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.model
def test_an_edit_is_typed_reviewed_applied_and_taken_back(source: Path, qwen05_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "app.cli", source.name, "--model", str(qwen05_path), "--threads", "2"]
    with terminal(command, source.parent, {}) as session:
        assert "def mean(items):" in session.wait_for("12 lines, utf-8, lf")
        session.type("In mean, return 0 when items is empty")
        session.wait_for("In mean, return 0 when items is empty")
        session.press("Enter")
        session.wait_for("review")
        session.press("a")
        session.wait_for(", 0 undecided")
        assert source.read_text() == SOURCE  # nothing is written before it is asked for
        session.press("C-s")
        session.wait_for("Applied to")
        assert "if not items" in source.read_text() and "def total(items):" in source.read_text()
        session.press("F10")
        session.wait_for("as it was before")
        assert source.read_text() == SOURCE
        with ended(session.pid) as gone:
            session.press("C-q")
            session.wait_for("Throw away")
            session.press("d")
            gone()
    assert left_sessions().sessions == ()


@pytest.mark.model
def test_what_is_undecided_survives_a_kill(source: Path, qwen05_path: Path) -> None:
    """The program is killed in the middle of a review; the next start offers what was decided."""
    command = [sys.executable, "-P", "-m", "app.cli", source.name, "--model", str(qwen05_path), "--threads", "2"]
    first, second = source.parent / "first", source.parent / "second"
    first.mkdir()
    second.mkdir()
    command[4] = f"../{source.name}"
    with terminal(command, first, {}) as session:
        session.wait_for("12 lines, utf-8, lf")
        session.type("In mean, return 0 when items is empty")
        session.press("Enter")
        session.wait_for("review")
        session.press("n")
        session.wait_for("rejected")
        session.kill()
    (left,) = left_sessions().sessions
    assert left.session.turns[0].proposed is not None
    with terminal(command, second, {}) as session:
        session.wait_for("Left undecided")
        session.press("Enter")
        session.wait_for("rejected")
        session.press("C-q")


def test_a_hunk_that_is_copied_is_in_the_clipboard_of_the_terminal(source: Path) -> None:
    """tmux takes what a program asks a terminal to copy; where a terminal does not, the file has it."""
    new = SOURCE.replace("result = 0", "result = 0  # größe")
    command = [sys.executable, "-c", SCRIPTED, source.name, new]
    with terminal(command, source.parent, {"PYTHONPATH": str(ROOT), "COLORTERM": "truecolor"}) as session:
        session.tmux("set-option", "-g", "set-clipboard", "on")
        session.wait_for("12 lines, utf-8, lf")
        session.type("Do")
        session.press("Enter")
        session.wait_for("1 undecided")
        session.press("o")
        session.wait_for("Copied")
        copied = (state_dir() / "copied.txt").read_text("utf-8")
        assert "+    result = 0  # größe\n" in copied and "\n-    result = 0\n" in copied
        assert session.tmux("show-buffer") == copied
        with ended(session.pid) as gone:
            session.press("C-q")
            session.wait_for("Throw away")
            session.press("d")
            gone()
