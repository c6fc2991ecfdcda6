"""The review in the right pane: how it looks, is searched and is clicked on, whatever the text is."""

from pathlib import Path

import pytest

from app.tui.screens.preview import PreviewScreen
from app.tui.widgets.source_view import SourceView
from tests.support.reviewed import NEW, SOURCE, reviewed, view
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import NARROW, WIDE, Session, drive


def test_pending_lines_are_not_shown_as_removed(path: Path) -> None:
    shown: list[str] = []

    async def steps(session: Session) -> None:
        async def look() -> None:
            view(session).advance()
            await session.pilot.pause()
            shown.append(session.shown())
            session.workspace.worker.cancel()

        session.client.at_token = {60: look}
        await session.ask("Do.")

    drive(ScriptedClient(fenced(NEW)), steps, file=path, size=(120, 60))
    assert "not reached yet" in shown[0] and "· value_9" in shown[0]
    assert "- value_9" not in shown[0]


def test_looks_are_switched(path: Path) -> None:
    async def steps(session: Session) -> None:
        diff = view(session)
        await session.press("t")
        assert diff.is_split and "│" in session.shown()
        line = next(line for line in session.shown().split("\n") if "thirty = 30" in line or "three = 3" in line)
        assert "value_3 = 3" in line and "three = 3" in line
        await session.press("t", "p")
        assert diff.provenance and "*+ three" in session.shown()
        before = len(diff.rows)
        await session.press("enter")
        assert len(diff.rows) > before
        await session.press("W", "w")
        assert diff.wrap and not diff.words
        await session.press("W", "w", "right", "left")

    reviewed(path, steps)


def test_text_is_found(path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("slash", *"VALUE_3", "enter")
        row = view(session).row
        assert row is not None and row.text == "value_3 = 3"
        await session.press("full_stop")
        row = view(session).row
        assert row is not None and row.text != "value_3 = 3" and "value_3" in row.text
        await session.press("slash", "escape", "slash", *"nowhere", "enter")
        assert any("in none of the lines" in said for said in session.said())

    reviewed(path, steps)


def test_the_result_is_looked_at_before_it_is_written(path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("y", "P")
        assert isinstance(session.app.screen, PreviewScreen)
        source = session.app.screen.query_one(SourceView)
        assert "three = 3" in session.shown() and "value_3 = 3" not in session.shown()
        assert source.selected_lines is None
        await session.press("escape")
        assert not isinstance(session.app.screen, PreviewScreen)

    reviewed(path, steps)
    assert path.read_text() == SOURCE


@pytest.mark.parametrize("size", [NARROW, WIDE])
def test_the_preview_has_text_on_every_screen(path: Path, size: tuple[int, int]) -> None:
    async def steps(session: Session) -> None:
        await session.press("a", "P")
        assert session.app.screen.query_one(SourceView).size.height > size[1] // 2
        assert "three = 3" in session.shown()

    reviewed(path, steps, size=size)


NASTY = [
    "\x1b[31mred = '[bold]no[/bold]'",
    "\ttab\t= '日本'",
    "long = '" + "x" * 10_000 + "'",
    "rtl = '\u202e'",
    "form\x0cfeed = 1",
]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
def test_text_is_shown_as_text_whatever_it_is(path: Path, size: tuple[int, int]) -> None:
    new = SOURCE.replace("value_3 = 3\n", "".join(f"{line}\n" for line in NASTY))

    async def steps(session: Session) -> None:
        for keys in (["home"], ["t"], ["w"], ["t"], ["p"], ["w", "right", "right", "W"]):
            await session.press(*keys)
            shown = session.shown()
            assert "\x1b" not in shown and "\u202e" not in shown and "\x0c" not in shown
        await session.press("left", "left", "left", "w", "home")
        shown = session.shown()
        assert "\\x1b[31mred = '[bold]no[/bold]'" in shown.replace("\n", "")
        assert "RIGHT-TO-LEFT OVERRIDE" in shown
        await session.press("a", "ctrl+s")

    reviewed(path, steps, new, size=size)
    assert path.read_bytes() == new.encode()


def test_a_click_puts_the_cursor_there(path: Path) -> None:
    async def steps(session: Session) -> None:
        diff = view(session)
        line = next(at for at, row in enumerate(diff.rows) if row.text == "three = 3")
        await session.pilot.click("#diff", offset=(20, line + 1 - int(diff.scroll_y)))
        await session.settle()
        assert diff.cursor == line

    reviewed(path, steps)
