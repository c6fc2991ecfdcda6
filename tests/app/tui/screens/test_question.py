"""Small dialogs: escape changes nothing, text is text, and the answer reaches who asked."""

from pathlib import Path

import pytest

from app.tui.screens.question import Ask, Question
from tests.support.scripted_client import ScriptedClient
from tests.support.tui import Session, drive


@pytest.mark.parametrize(
    ("keys", "answer"),
    [(["y"], True), (["n"], False), (["escape"], False), (["enter"], False), (["left", "enter"], True)],
)
def test_a_question_has_two_answers(file: Path, keys: list[str], answer: bool) -> None:
    async def steps(session: Session) -> None:
        answers: list[bool | None] = []
        session.app.push_screen(Question("Really [b]do[/b] it?\x1b[31m", "Do it", "Leave it"), answers.append)
        await session.settle()
        assert "Really [b]do[/b] it?\\x1b[31m" in session.shown() and "Leave it" in session.shown()
        await session.press(*keys)
        assert answers == [answer]

    drive(ScriptedClient(""), steps, file=file)


@pytest.mark.parametrize(("keys", "answer"), [(["enter"], "old"), (["!", "enter"], "old!"), (["escape"], None)])
def test_one_line_of_text(file: Path, keys: list[str], answer: str | None) -> None:
    async def steps(session: Session) -> None:
        answers: list[str | None] = []
        session.app.push_screen(Ask("A note for hunk [1]", "old"), answers.append)
        await session.settle()
        assert "A note for hunk [1]" in session.shown()
        await session.press("end", *keys)
        assert answers == [answer]

    drive(ScriptedClient(""), steps, file=file)
