"""Lines in a frame that was made once, against Textual making it for each."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from textual._styles_cache import StylesCache
from textual.geometry import Region
from textual.strip import Strip

from app.tui.framed_lines import FramedLines
from app.tui.widgets.changed_lines import ChangedLines
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.source_view import SourceView
from tests.support.headless_edit import CHANGED
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import NARROW, Session, drive


def painted(pane: ChangedLines) -> list[Strip]:
    """The pane as it is now, and as it is made anew by Textual."""
    return pane.render_lines(pane.outer_size.region)


def by_textual(pane: ChangedLines) -> list[Strip]:
    return StylesCache().render_widget(pane, pane.outer_size.region)


def test_a_pane_looks_as_textual_would_draw_it(file: Path) -> None:
    async def steps(session: Session) -> None:
        panes = [session.workspace.query_one(SourceView), session.workspace.query_one(DiffView)]
        looks: list[list[Strip]] = []

        async def check() -> None:
            await session.pilot.pause()
            for pane in panes:
                assert isinstance(pane._styles_cache, FramedLines)
                if pane.display:
                    assert painted(pane) == by_textual(pane)
            looks.append(painted(panes[0]))

        await session.ask("Change it")
        await check()
        for key in ("f6", "f6", "f6", "down"):
            await session.press(key)
            await check()
        for theme in ("redraft-light", "ansi-dark"):
            session.app.theme = theme
            await check()
        panes[0].styles.border = ("heavy", "red")
        await check()
        panes[0].styles.padding = (1, 2)
        await check()
        await session.pilot.resize_terminal(*NARROW)
        await check()
        assert len({repr(look) for look in looks}) > 5

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)


def test_the_frame_is_made_once_for_all_lines(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()
    render_line = StylesCache.render_line

    def counted(*arguments: Any) -> Strip:
        made["frame"] += 1
        return render_line(*arguments)

    async def steps(session: Session) -> None:
        source = session.workspace.query_one(SourceView)
        await session.pilot.pause()
        source.refresh()
        painted(source)
        monkeypatch.setattr(StylesCache, "render_line", counted)
        inside = source.outer_size.region.shrink(source.gutter)
        source._styles_cache.set_dirty(Region(0, 0, inside.width, inside.height))
        source.render_lines(inside)
        assert made["frame"] <= 1
        source.refresh()
        source.render_lines(inside)
        assert made["frame"] <= 2

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)
