"""A scripted engine that says more when it is told to, so that a test decides what is on the screen at each update.

Knows nothing of screens. Invariant: it says no token more than it was allowed.
"""

import asyncio
from collections.abc import AsyncGenerator

from editor_engine.events import EngineEvent, Text
from editor_engine.requests import CancelFlag, CompletionRequest
from tests.support.scripted_client import Reply, ScriptedClient


class SteppedClient(ScriptedClient):
    """Says as many more texts as are put into `more`."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply)
        self.more = asyncio.Queue[int]()

    async def complete(self, request: CompletionRequest, cancel: CancelFlag) -> AsyncGenerator[EngineEvent, None]:
        left = 0
        async for event in super().complete(request, cancel):
            while isinstance(event, Text) and left <= 0 and request.max_tokens:
                left += await self.more.get()
            left -= isinstance(event, Text)
            yield event
