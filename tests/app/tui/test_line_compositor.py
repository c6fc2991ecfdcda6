"""What is sent for a screen, kept as a terminal keeps it, against the whole screen composed anew by Textual."""

from pathlib import Path
from typing import Any

import pytest
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.geometry import Region
from textual.strip import Strip

from app.tui.line_compositor import LineCompositor
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from app.tui.widgets.source_view import SourceView
from app.tui.widgets.status_line import StatusLine
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import NARROW, WIDE, Session, drive

LINES = [f"value_{number} = 'één 漢字 {number}'" for number in range(60)]
CHANGED = "".join(f"{line}{'  # more' * (number % 30 == 20)}\n" for number, line in enumerate(LINES))


class Terminal:
    """The screen as the terminal has it after all that was sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[Strip] = []
        self.partial = 0
        display = App._display

        def shown(app: App[Any], screen: Any, renderable: Any) -> None:
            if isinstance(renderable, LayoutUpdate):
                self.lines = [Strip.join(list(pieces)) for pieces in renderable.strips]
            elif isinstance(renderable, ChopsUpdate):
                self.partial += 1
                self._take(renderable)
            display(app, screen, renderable)

        monkeypatch.setattr(App, "_display", shown)

    def _take(self, update: ChopsUpdate) -> None:
        for y, left, right in update.spans:
            sent = 0
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=True):
                if strip is not None and x < right and end > left:
                    piece, line = strip.crop(0, min(end, right) - x), self.lines[y]
                    self.lines[y] = Strip.join([line.crop(0, x), piece, line.crop(x + piece.cell_length)])
                    sent += min(end, right) - max(x, left)
            assert sent == right - left  # nothing that changed is left out

    def check(self, app: App[Any]) -> None:
        whole = app.screen._compositor.render_strips()
        assert [line.simplify() for line in self.lines] == [line.simplify() for line in whole[: len(self.lines)]]


@pytest.mark.parametrize("size", [NARROW, WIDE])
def test_the_terminal_has_what_the_whole_screen_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr("app.tui.edit_run.UPDATE_S", 0.02)
    monkeypatch.setattr("app.tui.edit_run._LATE", 0)
    terminal = Terminal(monkeypatch)
    path = tmp_path / "values.py"
    path.write_text("".join(f"{line}\n" for line in LINES))

    async def steps(session: Session) -> None:
        assert isinstance(session.workspace._compositor, LineCompositor)
        await session.ask("Change it")
        terminal.check(session.app)
        for key in (
            "f6",
            "n",
            "y",
            "down",
            "end",
            "home",
            "f1",
            "escape",
            "p",
            "v",
            "f6",
            "a",
            "漢",
            "w",
            "f3",
            "escape",
        ):
            await session.press(key)
            terminal.check(session.app)
        session.workspace.tell("A sentence that lies over both panes and goes again.")
        await session.press("f6", "pagedown")
        terminal.check(session.app)

    drive(ScriptedClient(fenced(CHANGED)), steps, file=path, size=size)
    assert terminal.partial > 10


def test_only_lines_that_changed_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "values.py"
    path.write_text("".join(f"{line}\n" for line in LINES))

    async def steps(session: Session) -> None:
        asked: list[tuple[str, Region]] = []
        for owner in (SourceView, DiffView, InstructionBox, StatusLine):

            def render_lines(self: Any, crop: Region, before: Any = owner.render_lines) -> list[Strip]:
                asked.append((self.id, crop))
                lines: list[Strip] = before(self, crop)
                return lines

            monkeypatch.setattr(owner, "render_lines", render_lines)
        workspace = session.workspace
        source, status = workspace.query_one(SourceView), workspace.query_one(StatusLine)
        source.refresh(Region(0, 3, 5, 1), Region(0, 4, 5, 1), Region(0, 9, 5, 1))
        status.refresh()
        await session.pilot.pause()
        border = 1
        width = source.outer_size.width
        assert sorted(asked, key=lambda call: (call[0] or "", call[1])) == [
            ("source", Region(0, 3 + border, width, 2)),
            ("source", Region(0, 9 + border, width, 1)),
            ("status", Region(0, 0, status.outer_size.width, 1)),
        ]

    drive(ScriptedClient(fenced(CHANGED)), steps, file=path)


def test_what_is_typed_is_painted_before_what_a_reply_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch)
    path = tmp_path / "values.py"
    path.write_text("".join(f"{line}\n" for line in LINES))

    async def steps(session: Session) -> None:
        workspace = session.workspace
        source, box = workspace.query_one(SourceView), workspace.query_one(InstructionBox)
        sent: list[set[int]] = []
        take = terminal._take

        def taken(update: ChopsUpdate) -> None:
            sent.append({y for y, _, _ in update.spans})
            take(update)

        monkeypatch.setattr(terminal, "_take", taken)
        typed = set(box.region.line_range)
        for _ in range(5):
            sent.clear()
            source.refresh(Region(0, 3, 5, 9))
            box.insert("x")
            await session.pilot.pause()
            await session.pilot.pause()
            assert sent[0] <= typed
            assert set(range(4, 13)) <= set().union(*sent[1:])  # and perhaps a cursor that blinks
            terminal.check(session.app)

    drive(ScriptedClient(fenced(CHANGED)), steps, file=path)


def test_what_waited_when_the_screen_became_smaller_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "values.py"
    path.write_text("".join(f"{line}\n" for line in LINES))

    async def steps(session: Session) -> None:
        session.workspace._compositor._dirty_regions.add(Region(0, 38, 100, 1))
        await session.pilot.resize_terminal(*NARROW)
        await session.pilot.pause()
        assert session.workspace._compositor.render_partial_update() is None
        session.workspace._compositor._dirty_regions.add(Region(0, 38, 100, 1))
        assert session.workspace._compositor.render_partial_update() is None

    drive(ScriptedClient(fenced(CHANGED)), steps, file=path)
