"""The start: the first picture has the file, and what it can do without is not there before it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import RenderableType
from textual.app import App
from textual.screen import Screen

from app.tui.app import SOON
from app.tui.widgets.source_view import SourceView
from tests.support.headless_edit import CHANGED
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session, drive

LATER = {
    "app.editing.pipeline": "an edit",
    "app.editing.checks": "an edit",
    "app.editing.resume": "a session",
    "app.editing.apply": "an apply",
    "app.editing.patch": "an export",
    "app.watch_board": "watches",
    "app.model_jobs": "models",
    "app.tui.screens.review": "a screen",
    "app.tui.screens.choice": "a screen",
    "app.tui.screens.question": "a screen",
    "textual.widgets._data_table": "a screen",
    "textual.widgets._footer": "a widget for every key",
    "tree_sitter_python": "colours",
    "pygments.lexers": "colours",
    "pathspec": "the file picker",
    "httpx2": "another engine",
    "numpy": "the engine",
}
"""Module -> what it is for: together they cost as much as all the rest of the start."""


def test_what_the_first_picture_can_do_without_is_not_imported_for_it() -> None:
    code = (
        "import json, sys, app.ui_command, app.tui.look, app.tui.app, app.clients.choose, app.clients.child\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=True)
    modules = set(json.loads(ran.stdout))
    assert "app.tui.screens.workspace" in modules
    assert {name: why for name, why in LATER.items() if name in modules} == {}


def test_what_an_edit_needs_is_imported_right_after_it(file: Path) -> None:
    async def steps(session: Session) -> None:
        assert set(SOON) <= set(sys.modules)

    drive(ScriptedClient(""), steps, file=file)


def test_the_first_picture_has_the_file_and_its_colours_come_after_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures: list[str] = []
    colours: list[bool] = []
    display = App._display

    def seen(self: App[Any], screen: Screen[Any], renderable: RenderableType | None) -> None:
        display(self, screen, renderable)
        panes = screen.query(SourceView)
        if panes and panes.first().region:
            lines = screen._compositor.render_strips()
            pictures.append("\n".join(line.text for line in lines))
            colours.append(panes.first()._highlighter is not None)

    monkeypatch.setattr(App, "_display", seen)

    async def steps(session: Session) -> None:
        assert "def total(items):" in pictures[0] and "20 lines, utf-8, lf" in pictures[0]
        assert not colours[0] and colours[-1]
        line = session.workspace.query_one(SourceView).line_at(3, 0, 80)
        keyword = next(segment for segment in line if segment.text == "def")
        name = next(segment for segment in line if segment.text == "total")
        assert keyword.style != name.style

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)
