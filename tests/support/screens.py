"""Shows one screen in an application of its own, and waits for its answer instead of for time.

Knows nothing of what is tested. Invariant: when `run_screen` returns, the screen was left, or the steps were done.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from textual.app import App
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen

from tests.support.tui import screen_text


class Stage(App[None]):
    """An application around one screen, in the product's looks."""

    CSS_PATH = ["../../app/tui/redraft.tcss", "../../app/tui/screens.tcss"]  # noqa: RUF012  # as Textual declares it

    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self.shown = screen
        self.answers: list[Any] = []
        self.heard: list[Message] = []

    def on_mount(self) -> None:
        self.push_screen(self.shown, self.answers.append)


class Play:
    """A running stage."""

    def __init__(self, app: Stage, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def answers(self) -> list[Any]:
        """What the screen answered, once it was left."""
        return self.app.answers

    async def press(self, *keys: str) -> None:
        """Press keys and let what they start come to its end."""
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        """Wait until no worker runs and no message waits."""
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()
        await self.pilot.pause()

    def text(self) -> str:
        """The screen as text."""
        return screen_text(self.app)


def run_screen(
    screen: Screen[Any], steps: Callable[[Play], Awaitable[None]], size: tuple[int, int] = (80, 24)
) -> list[Any]:
    """Show the screen, run the steps; what it answered, if it was left."""

    async def run() -> list[Any]:
        app = Stage(screen)
        async with app.run_test(size=size, notifications=True) as pilot:
            play = Play(app, pilot)
            await play.settle()
            await steps(play)
        return app.answers

    return asyncio.run(run())
