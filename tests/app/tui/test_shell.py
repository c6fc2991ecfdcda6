"""What is typed while a screen opens or closes: it reaches that screen, or what is under it, whole and in order."""

from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from app.tui.screens.hunk_editor import HunkEditor
from app.tui.widgets.instruction_box import InstructionBox
from app.tui.widgets.text_field import TextField
from tests.support.headless_edit import CHANGED
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session, at_once, drive


def client() -> ScriptedClient:
    return ScriptedClient(fenced(CHANGED))


@pytest.mark.parametrize("opening", ["slash", "r"])
def test_letters_typed_with_the_key_of_a_dialog_are_in_its_field(file: Path, opening: str) -> None:
    async def steps(session: Session) -> None:
        await session.ask("anything")
        at_once(session, opening, *"andy")
        await session.settle()
        assert session.app.screen.query_one(Input).value == "andy"
        await session.press("escape")
        review = session.last_turn().review
        assert review is not None and review.undecided == len(review.hunks)

    drive(client(), steps, file=file)


def test_letters_typed_with_e_are_in_the_text_of_the_hunk(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("anything")
        at_once(session, *"eyes")
        await session.settle()
        assert isinstance(session.app.screen, HunkEditor)
        assert session.app.screen.query_one(TextField).document.get_line(0).startswith("yes")

    drive(client(), steps, file=file)


def test_what_is_pasted_with_the_key_of_a_dialog_is_in_its_field(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("anything")
        at_once(session, "slash", "a")
        session.app.post_message(events.Paste("bc"))
        at_once(session, "d")
        await session.settle()
        assert session.app.screen.query_one(Input).value == "abcd"

    drive(client(), steps, file=file)


def test_keys_typed_ahead_open_a_screen_answer_it_and_go_on_behind_it(file: Path) -> None:
    async def steps(session: Session) -> None:
        at_once(session, "f1", "escape", *"go on")
        await session.settle()
        assert session.app.screen is session.workspace
        assert session.workspace.query_one(InstructionBox).text == "go on"

    drive(client(), steps, file=file)


@pytest.mark.parametrize("opening", ["f1", "f7", "f9", "ctrl+p", "slash", "P", "e"])
def test_a_dialog_that_is_answered_twice_takes_no_other_screen_with_it(file: Path, opening: str) -> None:
    async def steps(session: Session) -> None:
        await session.ask("anything")
        await session.press(opening)
        dialog = session.app.screen
        assert dialog is not session.workspace
        dialog.dismiss(None)
        dialog.dismiss(None)
        await session.settle()
        assert session.app.screen is session.workspace and session.app.is_running

    drive(client(), steps, file=file)


OVER_INSTRUCTION = {
    "help": ["f1", "escape"],
    "recipes": ["f9", "escape"],
    "a recipe": ["f9", *"docstrings", "enter", "ctrl+u"],
    "palette": ["ctrl+p", "escape"],
    "settings": ["f3", "escape"],
    "files": ["ctrl+o", "escape"],
    "a file": ["ctrl+o", *"sums", "enter"],
    "models": ["f2", "escape"],
    "watches": ["ctrl+g", "escape"],
    "one over another": ["ctrl+g", "a", "escape", "escape"],
    "what a choice opens, too": ["ctrl+p", *"recipes", "enter", "escape"],
}
"""Keys that open a screen over the instruction and end it."""


@pytest.mark.parametrize("keys", OVER_INSTRUCTION.values(), ids=OVER_INSTRUCTION.keys())
def test_letters_typed_behind_the_end_of_a_screen_are_in_the_instruction(file: Path, keys: list[str]) -> None:
    async def steps(session: Session) -> None:
        session.workspace.show_pane("instruction")
        at_once(session, *keys, *"andy")
        await session.settle()
        assert session.app.screen is session.workspace
        assert session.workspace.query_one(InstructionBox).text == "andy"

    drive(client(), steps, file=file)


OVER_DIFF = {
    "find": ["slash", *"total", "enter"],
    "find given up": ["slash", *"total", "escape"],
    "find by its name": ["ctrl+p", *"find text", "enter", *"total", "enter"],
    "a hunk edited": ["e", "x", "ctrl+s"],
    "a hunk left": ["e", "x", "escape"],
    "preview": ["P", "escape"],
    "turns": ["f7", "escape"],
    "a turn": ["f7", "down", "v"],
    "quit, and stay": ["ctrl+q", "escape"],
}
"""Keys that open a screen over the diff and end it."""


@pytest.mark.parametrize("keys", OVER_DIFF.values(), ids=OVER_DIFF.keys())
def test_a_decision_typed_behind_the_end_of_a_screen_is_taken(file: Path, keys: list[str]) -> None:
    async def steps(session: Session) -> None:
        await session.ask("anything")
        at_once(session, *keys, "y")
        await session.settle()
        assert session.app.screen is session.workspace
        review = session.last_turn().review
        assert review is not None and len(review.accepted) == 1

    drive(client(), steps, file=file)
