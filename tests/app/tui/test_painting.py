"""What one update of a reply paints, in counts: what changed, and not the screen. A key waits for every line of it."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual._styles_cache import StylesCache
from textual.screen import Screen
from textual.strip import Strip

from app.editing.figures import FigureKeeper
from app.tui.diff_painter import Painter
from app.tui.messages import EditProgress
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.source_view import SourceView
from editor_engine.events import Pass
from editor_engine.requests import CompletionRequest
from tests.support.headless_edit import CHANGED
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.stepped_client import SteppedClient
from tests.support.tui import WIDE, Session, drive

LINES = [f"value_{number} = {number}" for number in range(200)]
CHANGED_EVERY = 40
MOST_LINES = 30
"""Of an update in which nothing scrolls: six lines before and after the place in the diff, a fold, the source's lines
that were read, the status line, and what a change adds."""
MOST_DRAWN = 16
"""Rows of the diff that are drawn for an update; the others look as they did."""


def whole_lines(request: CompletionRequest) -> list[str]:
    """The file with some of its lines said otherwise, a line a token."""
    said = [f"{line} + 1" if number % CHANGED_EVERY == 20 else line for number, line in enumerate(LINES)]
    return [f"{line}\n" for line in [*said, request.stop_line]]


class Counts(Counter[str]):
    """Calls by name."""

    def of(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        """Count the calls of a method."""
        method: Callable[..., Any] = getattr(owner, name)

        def counted(*arguments: Any, **more: Any) -> Any:
            self[name] += 1
            return method(*arguments, **more)

        monkeypatch.setattr(owner, name, counted)


def test_an_update_paints_what_changed_and_lays_nothing_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for least_or_most in ("UPDATE_S", "SLOWEST_UPDATE_S"):  # updates come when the test says so
        monkeypatch.setattr(f"app.tui.edit_run.{least_or_most}", 3600.0)
    path = tmp_path / "values.py"
    path.write_text("".join(f"{line}\n" for line in LINES))
    counts = Counts()
    painted: list[int] = []
    drawn: list[int] = []
    scrolled: list[bool] = []

    async def steps(session: Session) -> None:
        assert isinstance(session.client, SteppedClient)
        workspace = session.workspace
        source, diff = workspace.query_one(SourceView), workspace.query_one(DiffView)
        keeper = FigureKeeper(lambda: 0.0)
        workspace.run_edit("Change it", None)

        async def update(texts: int) -> None:
            session.client.more.put_nowait(texts)  # type: ignore[attr-defined]
            await session.pilot.pause()
            keeper.take(Pass(texts, texts, texts, texts, "cursor", None, 1.0))
            workspace.edit_progress(EditProgress(keeper.figures(), keeper.lines()))
            await session.pilot.pause()

        await update(2)
        await session.until(lambda: diff.review is not None)
        for owner, name in ((StylesCache, "render_line"), (Painter, "_line"), (Screen, "_refresh_layout")):
            counts.of(monkeypatch, owner, name)
        for _ in range(190):
            counts["render_line"] = counts["_line"] = 0
            places = source.scroll_offset, diff.scroll_offset
            await update(1)
            painted.append(counts["render_line"])
            drawn.append(counts["_line"])
            scrolled.append((source.scroll_offset, diff.scroll_offset) != places)
        session.app.workers.cancel_all()

    drive(SteppedClient(whole_lines), steps, file=path)
    assert counts["_refresh_layout"] == 0
    still = [lines for lines, moved in zip(painted, scrolled, strict=True) if not moved]
    assert max(still) <= MOST_LINES
    assert max(painted) <= 2 * WIDE[1] + MOST_LINES
    # The source moves by half a page, the diff when a change makes it longer.
    assert sum(scrolled) < len(scrolled) / 4
    assert sorted(drawn)[len(drawn) * 9 // 10] <= MOST_DRAWN


def test_a_line_that_looks_as_before_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "values.py"
    path.write_text("".join(f"{line}\n" for line in LINES))
    counts = Counts()

    async def steps(session: Session) -> None:
        await session.ask("Change it")
        diff = session.workspace.query_one(DiffView)
        counts.of(monkeypatch, Painter, "_line")
        before = [diff.line_at(number, 0, 60) for number in range(20)]
        counts.clear()
        diff.look_changed()
        again: list[Strip] = [diff.line_at(number, 0, 60) for number in range(20)]
        assert counts["_line"] == 0
        assert all(old is new for old, new in zip(before, again, strict=True))

    drive(ScriptedClient(whole_lines), steps, file=path)


def test_moving_the_focus_makes_no_widget(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Change it")
        before, keys = list(session.workspace.walk_children()), set[str]()
        for _ in range(3):
            await session.press("f6")
            keys.add(session.shown().split("\n")[-1])
        assert len(keys) == 3
        assert list(session.workspace.walk_children()) == before

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)
