"""The watch that the UI starts itself, and looks at all others and at what waits, told as messages.

The work is `app.watch_jobs` and `app.watch_board`. Invariant: one watch of ours at a time, and when `close` returns
none runs.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from textual.message import Message

from app.editing.proposals import ProposalStore
from app.errors import AppError, InterruptedByUserError
from app.paths import proposals_dir
from app.tui.messages import WatchesSeen, WatchMark, WatchSaid
from app.watch_board import WatchBoard
from app.watch_jobs import Said, WatchOrder, run_watch


@dataclass(frozen=True)
class OwnWatch:
    """The watch that was started here."""

    order: WatchOrder
    pid: int | None
    """None while its process is being started."""


class WatchWorker:
    """Watches of this machine."""

    def __init__(self, post: Callable[[Message], object]) -> None:
        self._post = post
        self.store = ProposalStore(proposals_dir())
        self._board = WatchBoard(self.store)
        self._job: asyncio.Task[None] | None = None
        self._closing = False
        self.own: OwnWatch | None = None

    def start(self, order: WatchOrder) -> bool:
        """Start a watch; False while one of ours runs."""
        if self.own is not None:
            return False
        self.own = OwnWatch(order, None)
        self._job = asyncio.ensure_future(self._run(order))
        return True

    def stop(self) -> bool:
        """Let our watch end; False when there is none."""
        return self._job is not None and self._job.cancel()

    async def close(self) -> None:
        """Let our watch end, and wait until it has. Nobody listens any more."""
        self._closing = True
        if self._job is not None:
            self._job.cancel()
            await asyncio.wait([self._job])

    async def look(self, *, whole: bool) -> None:
        """Say the mark of the status line; `whole`: everything, too. Raises what broke our watch by a fault of ours."""
        if self._job is not None and self._job.done():
            job, self._job = self._job, None
            if not job.cancelled():
                job.result()
        try:
            self._post(WatchMark(await asyncio.to_thread(self._board.mark)))
            if whole:
                self._post(WatchesSeen(await asyncio.to_thread(self._board.look), None))
        except AppError as error:
            self._post(WatchesSeen(None, error))

    async def _run(self, order: WatchOrder) -> None:
        def began(pid: int) -> None:
            self.own = OwnWatch(order, pid)

        ended = Said("The watch has ended.")
        try:
            await run_watch(order, began, lambda said: self._post(WatchSaid(said)))
        except asyncio.CancelledError:
            ended = Said("The watch is stopped.")
            raise
        except AppError as error:
            ended = Said(str(error), failed=not isinstance(error, InterruptedByUserError))
        finally:
            self.own = None
            if not self._closing:
                self._post(WatchSaid(ended))
