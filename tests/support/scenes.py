"""Moments of the terminal UI over a scripted engine, as pictures: for README and for snapshot tests.

Knows nothing of where a picture goes. Invariant: the same scene, size and theme give the same bytes, on any machine:
the clock, the engine and the list of models are the scene's own.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

from app.engine_client import EngineClient, EngineDescription
from app.model_rows import ModelRow, model_row
from app.tui.app import RedraftApp, UiOptions
from editor_engine.events import EngineEvent, Pass, Text
from editor_engine.requests import CancelFlag, CompletionRequest
from editor_engine.store.catalogue import catalogue
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "stockroom.py"
_ASKED = "Refuse a count of zero or less in ship() and reserve()"
_OLD = "        item = self.items[sku]\n        if count > item.available:\n"
_NEW = '        if count <= 0:\n            raise ValueError("count must be positive")\n' + _OLD
_CUT = "    def release("
"""Where the file of the pictures ends: a short one is soon done."""
_MEMORY = 8 * 10**9
"""Bytes of memory of the machine in the pictures."""
_PASS_S = 0.02

Result = TypeVar("Result")


@dataclass
class Clock:
    """Seconds that pass only when the engine says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class ScenicClient(ScriptedClient):
    """Says it is a real model, takes 20 ms a pass, and stops in the middle of the second change when told to."""

    def __init__(self, reply: str, clock: Clock, *, pauses: bool) -> None:
        super().__init__(fenced(reply))
        self._clock = clock
        self._pauses = pauses
        self.passes = 0
        self.paused = asyncio.Event()

    async def describe(self) -> EngineDescription:
        return replace(await super().describe(), model_id="qwen2.5-coder-1.5b")

    async def complete(self, request: CompletionRequest, cancel: CancelFlag) -> AsyncGenerator[EngineEvent, None]:
        said = ""
        async for event in super().complete(request, cancel):
            if isinstance(event, Pass):
                self.passes += 1
                self._clock.now += _PASS_S
                event = replace(event, ms=_PASS_S * 1000)
            if isinstance(event, Text):
                said += event.text
            yield event
            if self._pauses and said.count('raise ValueError("count') == 2:
                self.paused.set()
                await asyncio.Event().wait()  # until the run is cancelled


@dataclass(frozen=True)
class Scene:
    """A moment, and how to get there."""

    name: str
    steps: Callable[[Session], Awaitable[None]]
    pauses: bool = False
    """The engine stops in the middle, and the picture is of that."""


async def _stream(session: Session) -> None:
    await session.type(_ASKED)
    await session.pilot.press("enter")
    assert isinstance(session.client, ScenicClient)
    await session.client.paused.wait()
    while session.workspace.status.figures.passes < session.client.passes:
        await session.pilot.pause()
    before = ""
    while (now := session.shown()) != before:  # scrolling follows the reply a refresh later
        before = now
        for _ in range(5):
            await session.pilot.pause()


async def _review(session: Session) -> None:
    await session.ask(_ASKED)
    await session.press("y")


async def _provenance(session: Session) -> None:
    await _review(session)
    await session.press("p")


async def _models(session: Session) -> None:
    await session.press("f2", "down")


PROVENANCE = Scene("provenance", _provenance)
SCENES = (Scene("streaming", _stream, pauses=True), Scene("review", _review), Scene("models", _models))


async def _listed(options: Sequence[str]) -> tuple[ModelRow, ...]:
    rows = [model_row(model, None, _MEMORY) for model in catalogue()]
    here = {"installed": True, "whole": True, "path": Path("/models/model.gguf")}
    return tuple(replace(row, **here) if number < 2 else row for number, row in enumerate(rows))  # type: ignore[arg-type]


def picture(scene: Scene, folder: Path, size: tuple[int, int], theme: str = "redraft-dark") -> str:
    """The scene as SVG; `folder` is where its file lies."""
    return settled(seen(scene, folder, size, theme, lambda session: session.app.export_screenshot(title="redraft")))


def seen(scene: Scene, folder: Path, size: tuple[int, int], theme: str, look: Callable[[Session], Result]) -> Result:
    """What `look` makes of the scene; `folder` is where its file lies."""
    text = EXAMPLE.read_text("utf-8").partition(_CUT)[0].rstrip() + "\n"
    (folder / EXAMPLE.name).write_text(text, "utf-8")
    clock = Clock()

    async def run() -> Result:
        client = ScenicClient(text.replace(_OLD, _NEW), clock, pauses=scene.pauses)

        def connect(_: str | None) -> EngineClient:
            return client

        app = RedraftApp(UiOptions(file=EXAMPLE.name, theme=theme), connect, clock)
        app.animation_level = "none"
        async with app.run_test(size=size, notifications=True) as pilot:
            session = Session(app, pilot, client)
            await session.settle()
            await scene.steps(session)
            result = look(session)
            if scene.pauses:
                app.workers.cancel_all()
        return result

    with patch("app.tui.model_worker.list_models", _listed):
        return asyncio.run(run())


def settled(svg: str) -> str:
    """Without the number that every picture's ids get anew."""
    return re.sub(r"terminal-\d+", "terminal", svg)


def words(svg: str) -> str:
    """The text of a picture, row by row: what changed between two of them, for a person."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text [^>]*x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', svg):
        rows.setdefault(float(y), []).append((float(x), text))
    lines = ("".join(text for _, text in sorted(row)) for _, row in sorted(rows.items()))
    return "\n".join(unescape(line).replace("\xa0", " ").rstrip() for line in lines)
