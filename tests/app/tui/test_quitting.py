"""Quitting in the middle of something: what cannot be kept is asked about, and what is promised is kept."""

import asyncio
from pathlib import Path

import pytest

from app.editing.session_store import left_sessions
from app.paths import sessions_dir
from app.recall import load_recall
from app.tui.screens.hunk_editor import HunkEditor
from app.tui.screens.question import Question
from app.tui.screens.quit_dialog import QuitDialog
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.reviewed import LINES, NEW
from tests.support.reviewed import SOURCE as LONG
from tests.support.scripted_client import ScriptedClient, fenced, tokens_of
from tests.support.tui import Session, drive


def client() -> ScriptedClient:
    return ScriptedClient(fenced(CHANGED))


@pytest.mark.parametrize("answer", ["y", "ctrl+q"])
def test_hunks_of_a_reply_that_is_not_whole_are_not_promised_to_be_kept(tmp_path: Path, answer: str) -> None:
    path = tmp_path / "long.py"
    path.write_text(LONG)
    looked = asyncio.Event()
    late = len(tokens_of(NEW)) - 10
    writing = ScriptedClient(fenced(NEW), at_token={late: looked.wait})

    async def steps(session: Session) -> None:
        await session.type("Do.")
        await session.pilot.press("enter")
        await session.until(lambda: session.workspace.is_partly_written)
        await session.pilot.press("ctrl+q")
        await session.until(lambda: isinstance(session.app.screen, Question))
        assert "cannot be kept" in " ".join(session.shown().split())
        await session.pilot.press("escape")
        await session.until(lambda: session.app.screen is session.workspace)
        assert session.workspace.at_work and not session.client.closed
        await session.pilot.press("ctrl+q", answer)
        await session.until(lambda: session.client.closed)

    drive(writing, steps, file=path)
    assert path.read_text() == LONG == "".join(f"{line}\n" for line in LINES)
    assert not left_sessions().sessions


def test_what_was_changed_in_a_hunk_is_not_lost_without_a_word(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.press("e", "ctrl+q")
        assert isinstance(session.app.screen, QuitDialog)  # nothing was changed in it
        await session.press("escape")
        await session.press("x", "ctrl+q")
        assert "not taken yet" in " ".join(session.shown().split())
        await session.press("escape")
        assert isinstance(session.app.screen, HunkEditor) and session.app.screen.is_changed
        await session.press("ctrl+q", "ctrl+q")
        assert isinstance(session.app.screen, QuitDialog)
        await session.press("k")
        assert session.client.closed

    drive(client(), steps, file=file)
    assert len(left_sessions().sessions) == 1


def test_what_cannot_be_kept_keeps_the_program_until_it_is_thrown_away(file: Path) -> None:
    sessions_dir().parent.mkdir(parents=True, exist_ok=True)
    sessions_dir().write_text("a file where a folder should be")

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.press("ctrl+q", "k")
        assert not session.client.closed and session.app.screen is session.workspace
        assert session.said()[-1].startswith(str(sessions_dir())) or "sessions" in session.said()[-1]
        review = session.last_turn().review
        assert review is not None and review.undecided == 1
        await session.press("ctrl+q", "d")
        assert session.client.closed

    drive(client(), steps, file=file)
    assert file.read_text() == SOURCE


def test_an_instruction_that_was_not_run_is_there_at_the_next_start(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.type("Say it better")
        await session.press("ctrl+q")
        assert session.client.closed

    drive(client(), steps, file=file)
    assert load_recall().instructions[0] == "Say it better"


def test_a_turn_that_is_in_the_file_says_so(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.press("y", "ctrl+s", "f7")
        assert "of the file: applied" in session.shown()

    drive(client(), steps, file=file)
    assert file.read_text() == CHANGED
