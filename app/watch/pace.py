"""The clock of a watch, and how it waits: until something happens or a time has come.

Tests give a clock of their own. Invariant: a wake-up that comes while the watch is busy ends its next wait.
"""

import asyncio
import contextlib
import time


class Pace:
    """Real time on the running event loop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> float:
        """Seconds, from an arbitrary start; never goes back."""
        return time.monotonic()

    def attach(self) -> None:
        """From here on this thread's event loop is the one that waits."""
        self._loop = asyncio.get_running_loop()

    def wake(self) -> None:
        """End the wait, from the loop's own thread."""
        self._event.set()

    def wake_from_thread(self) -> None:
        """End the wait, from any thread."""
        if self._loop is not None and not self._event.is_set():
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float | None) -> None:
        """Wait for a wake-up, at most so long; None waits for nothing else."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)
        self._event.clear()
