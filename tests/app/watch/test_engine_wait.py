"""How a watch waits for its engine, and how it stops: by a cancel, else by closing the client."""

import asyncio
from typing import Any, cast

import pytest

from app.errors import ModelError
from app.watch.engine_wait import EngineWait


class SlowClient:
    """Describes itself when told to; `deaf`: a cancel is heeded only once it has been closed."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.asked = asyncio.Event()
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.closed = asyncio.Event()
        self._deaf = deaf

    async def describe(self) -> str:
        self.asked.set()
        try:
            await asyncio.shield(self.answer)
        finally:
            if self._deaf:
                await self.closed.wait()
        return "there"

    async def close(self) -> None:
        self.closed.set()


def wait_on(client: SlowClient) -> EngineWait:
    return EngineWait(cast(Any, client))


def test_an_engine_that_comes_is_there() -> None:
    async def work() -> None:
        client = SlowClient()
        client.answer.set_result(None)
        assert cast(Any, await wait_on(client).there()) == "there"

    asyncio.run(work())


def test_what_is_the_matter_with_it_is_raised() -> None:
    async def work() -> None:
        client = SlowClient()
        client.answer.set_exception(ModelError("There is no such model."))
        await wait_on(client).there()

    with pytest.raises(ModelError, match="no such model"):
        asyncio.run(work())


@pytest.mark.parametrize("deaf", [False, True])
def test_a_stop_ends_the_wait_and_closes_a_client_that_does_not_heed_a_cancel(deaf: bool) -> None:
    async def work() -> None:
        client = SlowClient(deaf=deaf)
        wait = wait_on(client)
        there = asyncio.ensure_future(wait.there())
        await client.asked.wait()
        wait.stop()
        assert not await there
        assert client.closed.is_set() == deaf
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(work())


def test_an_error_that_comes_with_the_stop_is_no_news() -> None:
    async def work() -> None:
        client = SlowClient()
        wait = wait_on(client)
        wait.stop()
        client.answer.set_exception(ModelError("The process was closed."))
        assert not await wait.there()

    asyncio.run(work())


def test_who_leaves_the_wait_takes_it_along() -> None:
    async def work() -> None:
        client = SlowClient()
        there = asyncio.ensure_future(wait_on(client).there())
        await client.asked.wait()
        there.cancel()
        with pytest.raises(asyncio.CancelledError):
            await there
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(work())
