"""The source pane: cursor, selection, the map, and files that are large or odd."""

from pathlib import Path

import pytest
from rich.cells import cell_len
from textual import events

from app.editing.figures import LineAcceptance
from app.editing.region import Region
from app.tui.widgets.source_view import SourceView
from tests.support.headless_edit import SOURCE
from tests.support.scripted_client import ScriptedClient
from tests.support.tui import NARROW, Session, drive


async def in_source(session: Session) -> SourceView:
    """The source pane, focused."""
    session.workspace.show_pane("source")
    await session.settle()
    return session.workspace.query_one(SourceView)


def rows(view: SourceView) -> list[str]:
    """What the pane shows, line by line."""
    return [view.render_line(y).text for y in range(view.scrollable_content_region.height)]


def test_lines_are_numbered_and_the_cursor_moves(file: Path) -> None:
    async def steps(session: Session) -> None:
        view = await in_source(session)
        assert rows(view)[0].startswith(' 1>  """Sums."""')
        await session.press("down", "j", "down", "up", "k", "j")
        assert rows(view)[2].startswith(" 3>")
        await session.press("G")
        assert rows(view)[19].startswith("20>")
        await session.press("g")
        assert rows(view)[0].startswith(" 1>")

    drive(ScriptedClient(""), steps, file=file)


def test_lines_are_selected_by_key(file: Path) -> None:
    async def steps(session: Session) -> None:
        view = await in_source(session)
        await session.press("down", "down", "shift+down", "shift+down", "J")
        assert view.selected_lines == Region(3, 6)
        assert [row[2] for row in rows(view)[:8]] == list("  ┃┃┃┃  ")
        await session.press("shift+up", "K")
        assert view.selected_lines == Region(3, 4)
        assert session.workspace.status.forecast.startswith("lines 3-4: about ")
        await session.press("escape")
        assert view.selected_lines is None
        assert session.workspace.status.forecast.startswith("file: about ")
        await session.press("shift+down", "down")
        assert view.selected_lines is None
        await session.press("shift+down", "d")
        assert view.selected_lines is None

    drive(ScriptedClient(""), steps, file=file)


def test_a_symbol_and_then_the_one_around_it(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n\n\nclass A:\n    y = 2\n\n    def f(self):\n        return 1\n")

    async def steps(session: Session) -> None:
        view = await in_source(session)
        await session.press("G", "s")
        assert view.selected_lines == Region(7, 8)
        await session.press("s")
        assert view.selected_lines == Region(4, 8)
        await session.press("s")
        assert view.selected_lines == Region(4, 8)
        assert session.said() == ["There is no function or class around these lines."]

    drive(ScriptedClient(""), steps, file=path)


async def move_mouse(session: Session, view: SourceView, line: int, *, button: int) -> None:
    """To a line of the pane, with a button held or none."""
    at = view.region
    session.app.post_message(events.MouseMove(None, at.x + 10, at.y + line, 0, 0, button, False, False, False))
    await session.settle()


def test_lines_are_selected_by_mouse(file: Path) -> None:
    async def steps(session: Session) -> None:
        view = await in_source(session)
        await session.pilot.mouse_down(view, offset=(10, 4))
        await move_mouse(session, view, 7, button=1)
        await session.pilot.mouse_up(view, offset=(10, 7))
        await move_mouse(session, view, 9, button=0)
        assert view.selected_lines == Region(4, 7)
        await session.pilot.click(view, offset=(10, 2))
        await session.settle()
        assert view.selected_lines is None

    drive(ScriptedClient(""), steps, file=file)


def test_a_button_that_was_let_go_outside_of_the_terminal_selects_no_more(file: Path) -> None:
    async def steps(session: Session) -> None:
        view = await in_source(session)
        await session.pilot.mouse_down(view, offset=(10, 4))
        await move_mouse(session, view, 7, button=1)
        await move_mouse(session, view, 10, button=0)
        assert view.selected_lines == Region(4, 7) and session.app.mouse_captured is None

    drive(ScriptedClient(""), steps, file=file)


def test_the_map_shows_what_was_drafted_and_what_was_rejected_and_can_go(file: Path) -> None:
    async def steps(session: Session) -> None:
        view = await in_source(session)
        view.show_acceptance({4: LineAcceptance(18, 0), 5: LineAcceptance(4, 0), 6: LineAcceptance(9, 2)}, 6)
        assert [row[2:5] for row in rows(view)[2:7]] == ["   ", " █ ", " ▂ ", "▸✗ ", "   "]
        wide = rows(view)[3]
        await session.press("h")
        assert rows(view)[3] != wide and "█" not in "".join(rows(view))
        await session.press("h")
        assert rows(view)[3] == wide

    drive(ScriptedClient(""), steps, file=file)


@pytest.mark.parametrize("size", [NARROW, (120, 40), (200, 50)])
def test_every_row_is_exactly_as_wide_as_the_pane(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "wide.py"
    path.write_text(
        "a = '日本語日本語'\n\tb = '\x1b[31m'\n" + "'" + "語" * 300 + "'\ne\u0301 = '👍🏽'\n" + "x" * 500 + "\n",
        newline="",
    )

    async def steps(session: Session) -> None:
        view = await in_source(session)
        for _ in range(4):
            width = view.scrollable_content_region.width
            assert [cell_len(row) for row in rows(view)] == [width] * len(rows(view))
            await session.press("right")
        assert view.scroll_x == 32
        await session.press("left", "left", "left", "left")
        assert view.scroll_x == 0

    drive(ScriptedClient(""), steps, file=path, size=size)


def test_only_what_is_seen_is_drawn_of_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    path.write_text("".join(f"value_{number} = {number}\n" for number in range(20_000)))

    async def steps(session: Session) -> None:
        view = await in_source(session)
        await session.press("G")
        assert rows(view)[-1].startswith("20000>")
        await session.press("pageup", "pageup", "pagedown", "g")
        assert rows(view)[0].startswith("    1>")
        assert len(view._strips) < 400

    drive(ScriptedClient(""), steps, file=path)


def test_a_line_of_ten_thousand_characters_is_drawn_in_part(tmp_path: Path) -> None:
    path = tmp_path / "long.js"
    path.write_text("x = [" + "1, " * 3_333 + "];\n" + SOURCE)

    async def steps(session: Session) -> None:
        view = await in_source(session)
        assert view.virtual_size.width > 10_000
        await session.press("right", "right")
        assert rows(view)[0].startswith(" 1>  ")
        view.scroll_to(x=10_000, animate=False)
        await session.settle()
        assert "];" in rows(view)[0]

    drive(ScriptedClient(""), steps, file=path)


def test_without_a_file_keys_do_nothing(tmp_path: Path) -> None:
    async def steps(session: Session) -> None:
        view = await in_source(session)
        await session.press("down", "G", "s", "d", "h", "shift+down", "pagedown", "right")
        assert view.selected_lines is None and not "".join(rows(view)).strip()
        await session.pilot.click(view, offset=(3, 3))

    drive(ScriptedClient(""), steps)


def test_the_line_reached_stays_in_sight_until_the_user_looks_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    path.write_text("".join(f"value_{number} = {number}\n" for number in range(1, 501)))

    async def steps(session: Session) -> None:
        view = await in_source(session)
        view.show_acceptance({}, 250)
        await session.settle()
        assert view.scroll_y == 0
        view.follow()
        view.show_acceptance({}, 251)
        await session.settle()
        assert any(row.startswith("251▸") for row in rows(view))
        await session.press("g")
        view.show_acceptance({}, 300)
        await session.settle()
        assert view.scroll_y == 0

    drive(ScriptedClient(""), steps, file=path)
