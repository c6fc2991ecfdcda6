"""How a watch waits for its engine, which may load for minutes, and how it stops waiting.

Knows the client and tasks, nothing of saves. Invariant: once the watch is to end, nobody waits for a load: what does
not come back from its cancel soon is freed by closing the client.
"""

import asyncio
import contextlib
from typing import TypeVar

from app.engine_client import EngineClient, EngineDescription
from app.errors import AppError

_SOON_S = 0.3
"""An engine that answers is idle by then."""

Result = TypeVar("Result")


class EngineWait:
    """The waits of one watch."""

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Nobody is to wait any more; from the loop's thread."""
        self._stopped.set()

    async def there(self) -> EngineDescription | None:
        """Wait until the engine is there; None when the watch was stopped before. Raises what describing raises."""
        described = asyncio.ensure_future(self._client.describe())
        asked = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait([described, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            if not described.done():
                await self.leave(described)
        if self._stopped.is_set():
            with contextlib.suppress(AppError, asyncio.CancelledError):
                described.result()
            return None
        return described.result()

    async def leave(self, task: "asyncio.Task[Result]") -> None:
        """Cancel what waits for the engine, and see it end."""
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=_SOON_S)
        if not done:
            await self._client.close()
            await asyncio.wait([task])
