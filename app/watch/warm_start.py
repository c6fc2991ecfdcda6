"""Reads the prompt of a file that is settling, so that its edit starts with a full cache.

Knows the engine and one file at a time. Invariant: it never delays an edit of another file by more than a cancel takes,
and an error of it is not reported: the edit that follows meets the same one and says it.
"""

import asyncio
import contextlib
from collections.abc import Callable

from app.engine_client import EngineClient
from app.errors import AppError
from app.watch.job import Asked, EditLimits, warm_up
from editor_engine.requests import CancelFlag


class WarmStart:
    """At most one prompt is read in advance."""

    def __init__(self, client: EngineClient, limits: EditLimits) -> None:
        self._client = client
        self._limits = limits
        self._task: asyncio.Task[None] | None = None
        self._cancel = CancelFlag()
        self._sha256 = ""

    def begin(self, asked: Callable[[], Asked | None]) -> None:
        """Start on what is asked of a file, if anything is and the engine has nothing to read yet."""
        if self._task is not None and not self._task.done():
            return
        found = None
        with contextlib.suppress(AppError):
            found = asked()
        if found is None:
            return
        self._cancel, self._sha256 = CancelFlag(), found.document.sha256
        self._task = asyncio.ensure_future(self._read(found))

    async def use(self, sha256: str) -> None:
        """Wait until the engine is free: a file in this state is read to its end, any other is given up."""
        task = self._task
        if task is None:
            return
        if self._sha256 != sha256:
            self._cancel.set()
        await asyncio.wait([task])
        task.result()
        if self._task is task:  # a job and the end of the watch may both wait for it
            self._task = None

    def cancel(self) -> None:
        """Give up what is being read."""
        self._cancel.set()

    async def _read(self, asked: Asked) -> None:
        with contextlib.suppress(AppError):
            await warm_up(asked, self._client, self._limits, self._cancel)
