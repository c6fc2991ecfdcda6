"""Choosing from a list: letters narrow it, enter takes the marked row, escape none, and text stays text."""

import asyncio
import threading
from collections.abc import Sequence

from textual import events
from textual.widgets import Input

from app.tui.screens.choice import Choice, ChoiceScreen
from tests.support.screens import Play, run_screen

WORDS = ["alpha", "beta", "gamma", "[bold]delta[/]", "\x1b[31mred"]


def rows(query: str) -> Sequence[Choice[str]]:
    return [Choice(word, word, "hint") for word in WORDS if query in word]


def test_enter_takes_the_first_and_the_arrows_another() -> None:
    async def first(play: Play) -> None:
        await play.press("enter")

    async def third(play: Play) -> None:
        await play.press("down", "down", "down", "up", "enter")

    assert run_screen(ChoiceScreen("Words", rows), first) == ["alpha"]
    assert run_screen(ChoiceScreen("Words", rows), third) == ["gamma"]


def test_the_mark_stops_at_both_ends() -> None:
    async def steps(play: Play) -> None:
        await play.press("up", "pagedown", "pagedown", "down", "enter")

    assert run_screen(ChoiceScreen("Words", rows), steps) == [WORDS[-1]]


def test_letters_narrow_and_nothing_left_takes_nothing() -> None:
    async def steps(play: Play) -> None:
        await play.press("g")
        assert "alpha" not in play.text() and "gamma" in play.text()
        await play.press("z", "enter", "down", "up")
        assert play.answers == []
        await play.press("escape")

    assert run_screen(ChoiceScreen("Words", rows), steps) == [None]


def test_rows_are_text_and_never_markup() -> None:
    async def steps(play: Play) -> None:
        assert "[bold]delta[/]" in play.text()
        assert "\\x1b[31mred" in play.text() and "\x1b" not in play.text()

    run_screen(ChoiceScreen("Words", rows), steps)


def test_a_late_answer_never_replaces_a_newer_one() -> None:
    """The first question is answered only after the second one was."""
    first_asked, let_go = threading.Event(), threading.Event()

    def slowly(query: str) -> Sequence[Choice[str]]:
        if query == "a":
            first_asked.set()
            let_go.wait(10)
        return [Choice(f"rows of {query}", query)]

    async def steps(play: Play) -> None:
        await play.pilot.press("a")
        assert first_asked.wait(10)
        await play.pilot.press("b")
        let_go.set()
        await play.settle()
        assert isinstance(play.app.shown, ChoiceScreen)
        assert [choice.value for choice in play.app.shown.choices] == ["ab"]

    run_screen(ChoiceScreen("Words", slowly, slow=True), steps)


def test_enter_takes_a_row_of_what_was_typed_before_it_however_long_that_takes() -> None:
    asked, let_go = threading.Event(), threading.Event()

    def slowly(query: str) -> Sequence[Choice[str]]:
        if query:
            asked.set()
            let_go.wait(10)
        return [Choice(f"rows of {query}", query)]

    async def steps(play: Play) -> None:
        await play.settle()
        play.app.post_message(events.Key("a", "a"))
        play.app.post_message(events.Key("enter", None))
        await asyncio.to_thread(asked.wait, 10)
        assert play.answers == []
        let_go.set()
        await play.settle()

    assert run_screen(ChoiceScreen("Words", slowly, slow=True), steps) == ["a"]


def test_the_mark_stays_on_its_row_while_the_list_grows() -> None:
    words = ["beta", "delta"]

    async def steps(play: Play) -> None:
        await play.press("down")
        words[:] = ["alpha", "beta", "gamma", "delta"]
        assert isinstance(play.app.shown, ChoiceScreen)
        play.app.shown.list_again()
        await play.press("enter")

    assert run_screen(ChoiceScreen("Words", lambda query: [Choice(word, word) for word in words]), steps) == ["delta"]


def test_a_click_takes_a_row() -> None:
    async def steps(play: Play) -> None:
        assert play.app.screen.query_one(Input).has_focus
        await play.pilot.click("OptionList", offset=(2, 1))
        await play.settle()

    assert run_screen(ChoiceScreen("Words", rows), steps) == ["beta"]
