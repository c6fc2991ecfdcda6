"""Clients over the made-up servers of `dialects`, and one request to run through them."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

from app.clients.exchange import Exchange, Timeouts
from app.clients.http import HttpClient
from app.clients.place import parse_place
from editor_engine.events import EngineEvent, Finished, Stats, Text
from editor_engine.requests import CancelFlag, CompletionRequest, Message
from tests.support.dialects import Dialect

SOURCE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
CHANGED = SOURCE.replace("sub", "subtract")
REQUEST = CompletionRequest((Message("user", "Do it."),), 50, prefill="```\n", source=SOURCE, stop_line="```")


def client_of(dialect: Dialect, *, key: str | None = None, **timeouts: float) -> HttpClient:
    """One whose pauses pass at once; `pauses` has their seconds."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    exchange = Exchange(parse_place("http://localhost:1/v1"), key, Timeouts(**timeouts), dialect.transport())
    client = HttpClient(exchange, pause=pause)
    client.pauses = pauses  # type: ignore[attr-defined]  # for the tests that ask how long was waited
    return client


def run(client: HttpClient, work: Callable[[HttpClient], Coroutine[Any, Any, Any]]) -> Any:
    """What `work` gives; the client is closed afterwards."""

    async def closing() -> Any:
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(closing())


async def completed(client: HttpClient, request: CompletionRequest = REQUEST) -> list[EngineEvent]:
    """Every event of one request."""
    async with aclosing(client.complete(request, CancelFlag())) as events:
        return [event async for event in events]


def text_of(events: list[EngineEvent]) -> str:
    """The whole reply."""
    return "".join(event.text for event in events if isinstance(event, Text))


def stats_of(events: list[EngineEvent]) -> Stats:
    """Of the end, which must be there."""
    assert isinstance(events[-1], Finished)
    return events[-1].stats
