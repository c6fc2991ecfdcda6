"""Runs the terminal UI over a scripted engine, without a terminal, and waits for what it does instead of for time.

Knows nothing of what is tested. Invariant: when `settle` returns, no worker runs and no message waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from textual import events
from textual.app import App
from textual.keys import key_to_character
from textual.pilot import Pilot
from textual.worker import WorkerFailed

from app.editing.review import Decision
from app.editing.turns import Turn
from app.engine_client import EngineClient
from app.tui.app import RedraftApp, UiOptions
from app.tui.messages import ReviewChanged
from app.tui.screens.workspace import WorkspaceScreen
from tests.support.scripted_client import ScriptedClient

WIDE, NARROW = (120, 40), (80, 24)

Steps = Callable[["Session"], Awaitable[None]]


class Session:
    """A running UI, and the keys and looks a test needs."""

    def __init__(self, app: RedraftApp, pilot: Pilot[None], client: ScriptedClient) -> None:
        self.app = app
        self.pilot = pilot
        self.client = client

    @property
    def workspace(self) -> WorkspaceScreen:
        """The workspace, on top or not."""
        return self.app.workspace

    async def settle(self) -> None:
        """Let everything that was begun come to its end."""
        for _ in range(2):  # some work begins only when the screen has been painted
            await self.until(lambda: not self.app.is_typed_to or not self.app.is_running)
            try:
                await self.app.workers.wait_for_complete()
            except WorkerFailed:
                pass  # the app says so on the screen, which is for the test to look at
            await self.pilot.pause()

    async def until(self, seen: Callable[[], bool]) -> None:
        """Let the UI go on until something is seen; a thing that never comes is a failure."""
        for _ in range(2_000):
            if seen():
                return
            await self.pilot.pause(0.005)
        raise AssertionError("it did not come to pass")

    async def press(self, *keys: str) -> None:
        """Press keys and wait for what they start."""
        await self.pilot.press(*keys)
        await self.settle()

    async def type(self, text: str) -> None:
        """Put text into the instruction box as if it were typed."""
        self.workspace.show_pane("instruction")
        await self.pilot.press(*({" ": "space", "\n": "ctrl+j"}.get(char, char) for char in text))

    async def ask(self, instruction: str) -> None:
        """Type an instruction and run it to its end."""
        await self.type(instruction)
        await self.press("enter")

    def focused(self) -> str | None:
        """Id of the focused widget of the workspace."""
        return None if self.workspace.focused is None else self.workspace.focused.id

    def last_turn(self) -> Turn:
        """The turn that is shown: the newest, unless another was chosen."""
        turns = self.workspace.turns
        assert turns is not None and turns.current is not None
        return turns.current

    async def accept_all(self) -> None:
        """Decide every hunk for it, as the review tells the workspace."""
        review = self.last_turn().review
        assert review is not None
        self.workspace.post_message(ReviewChanged(review.decide_rest(Decision.ACCEPTED)))
        await self.settle()

    async def decide(self, index: int, decision: Decision = Decision.ACCEPTED) -> None:
        """Decide one hunk."""
        review = self.last_turn().review
        assert review is not None
        self.workspace.post_message(ReviewChanged(review.decide(index, decision)))
        await self.settle()

    async def look(self) -> None:
        """Let the workspace compare the file on disk with what it read."""
        await self.workspace.look_again()
        await self.settle()

    def shown(self) -> str:
        """The screen as text, line by line."""
        return screen_text(self.app)

    def said(self) -> list[str]:
        """What was said in passing, oldest first."""
        return [note.message for note in self.app._notifications]


def at_once(session: Session, *keys: str) -> None:
    """Keys as a terminal hands them over when they came together: all before any of them is looked at."""
    for key in keys:
        name = "space" if key == " " else key
        session.app.post_message(events.Key(name, key_to_character(name)))


def screen_text(app: App[Any]) -> str:
    """What an app's screen shows, line by line."""
    width, height = app.size
    lines = app.screen._compositor.render_strips()[:height]
    return "\n".join("".join(segment.text for segment in line)[:width].rstrip() for line in lines)


def drive(
    client: ScriptedClient,
    steps: Steps,
    *,
    file: str | Path | None = None,
    size: tuple[int, int] = WIDE,
    keys: Mapping[str, str] | None = None,
    encoding: str | None = None,
    clients: list[ScriptedClient] | None = None,
    theme: str = "redraft-dark",
) -> None:
    """Open `file`, let the engine read it, and run `steps`. `clients`: the engines of later connections."""
    engines = iter([client, *(clients or ())])

    def connect(_: str | None) -> EngineClient:
        return cast(EngineClient, next(engines, client))

    async def run() -> None:
        options = UiOptions(file=None if file is None else str(file), encoding=encoding, keys=keys or {}, theme=theme)
        app = RedraftApp(options, connect)
        async with app.run_test(size=size, notifications=True) as pilot:
            session = Session(app, pilot, client)
            await session.settle()
            await steps(session)

    asyncio.run(run())
