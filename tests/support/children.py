"""A child process with the obedient engine, or with any program in its place, and what comes from it."""

import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

from app.clients.child import ChildClient
from app.engine_client import EngineClient
from app.load_options import LoadOptions
from editor_engine.events import EngineEvent
from editor_engine.requests import CancelFlag, CompletionRequest
from tests.support import obedient_engine
from tests.support.obedient_engine import PATIENCE_S

OBEDIENT = (sys.executable, obedient_engine.__file__, str(os.getpid()))
SHORT_S = 0.2
"""Grace for a child that will not obey anyway."""


def child(*, grace_s: float = PATIENCE_S, on_note: Callable[[str], None] = lambda sentence: None) -> ChildClient:
    """A child with the obedient engine."""
    return ChildClient(LoadOptions(), command=OBEDIENT, grace_s=grace_s, on_note=on_note)


def speaking(code: str, *, grace_s: float = SHORT_S, **options: Any) -> ChildClient:
    """A child that runs this Python; `order` is the first line it was sent."""
    program = f"import os, sys, time\norder = sys.stdin.readline()\n{code}"
    return ChildClient(LoadOptions(), command=[sys.executable, "-c", program], grace_s=grace_s, **options)


@asynccontextmanager
async def opened(client: EngineClient) -> AsyncGenerator[EngineClient, None]:
    """A client that is closed afterwards."""
    try:
        yield client
    finally:
        await client.close()


async def collected(
    client: EngineClient, request: CompletionRequest, cancel: CancelFlag | None = None
) -> list[EngineEvent]:
    """Every event of one request."""
    async with aclosing(client.complete(request, cancel or CancelFlag())) as events:
        return [event async for event in events]
