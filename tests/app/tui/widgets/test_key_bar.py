"""The last line of the screen: never cut, the keys that work where the focus is, and a click presses one."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.tui.screens.help import HelpScreen
from app.tui.widgets.key_bar import Key, KeyBar, fitting
from tests.support.headless_edit import CHANGED
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import NARROW, WIDE, Session, drive

KEYS = st.lists(
    st.builds(
        Key,
        st.uuids().map(str),
        st.text("abc", min_size=1, max_size=4),
        st.text("abc", max_size=9),
        st.integers(1, 7),
        st.booleans(),
    ),
    max_size=12,
)


def last_line(session: Session) -> str:
    return session.shown().split("\n")[-1]


@settings(derandomize=True, deadline=None)
@given(keys=KEYS, width=st.integers(0, 120))
def test_what_stays_fits_keeps_its_order_and_is_needed_most(keys: list[Key], width: int) -> None:
    kept = fitting(keys, width)
    assert [key for key in keys if key in kept] == list(kept)
    used = sum(key.width for key in kept)
    assert used <= width or len(kept) <= 1
    gone = [key for key in keys if key not in kept]
    if gone:
        assert kept and min(key.rank for key in gone) >= max(key.rank for key in kept)
        assert used + min(gone, key=lambda key: key.rank).width > width


@pytest.mark.parametrize("size", [NARROW, WIDE])
@pytest.mark.parametrize("pane", ["instruction", "source", "diff"])
def test_the_line_is_whole_and_has_what_a_pane_needs_most(file: Path, size: tuple[int, int], pane: str) -> None:
    needed = {"instruction": "enter Run", "source": "^s Apply", "diff": "y Accept"}

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        session.workspace.show_pane(pane)
        await session.settle()
        line = last_line(session)
        assert needed[pane] in line.replace("⏎", "enter") and "f1 Help" in line and "^q Quit" in line
        labels = {binding.binding.description for binding in session.workspace.active_bindings.values()}
        assert any(line.endswith(label) for label in labels), "the last key is cut"

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file, size=size)


def test_the_line_says_the_users_own_keys(file: Path) -> None:
    async def steps(session: Session) -> None:
        assert "f12 Help" in last_line(session)

    drive(ScriptedClient(""), steps, file=file, keys={"help": "f12"})


def test_a_click_presses_the_key(file: Path) -> None:
    async def steps(session: Session) -> None:
        at = last_line(session).index("f1 Help")
        await session.pilot.click(KeyBar, offset=(at + 3, 0))
        await session.settle()
        assert isinstance(session.app.screen, HelpScreen)
        await session.press("escape")
        await session.pilot.click(KeyBar, offset=(WIDE[0] - 1, 0))  # beside every key
        await session.settle()
        assert session.app.screen is session.workspace

    drive(ScriptedClient(""), steps, file=file)
