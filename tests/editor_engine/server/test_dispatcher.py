"""The queue by itself: order, places, what is told of jobs, and when there is nothing to do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from editor_engine.errors import EngineError, ModelFileError, RequestError
from editor_engine.events import EngineEvent, Finished
from editor_engine.requests import CompletionRequest, Message
from editor_engine.server.dispatcher import Dispatcher, Job, Status
from editor_engine.server.faults import ServerFault
from editor_engine.server.options import Limits
from tests.support.served_engine import EchoEngine


def request(text: str = "one two") -> CompletionRequest:
    return CompletionRequest((Message("user", text),), 10)


class Rig:
    """A dispatcher over an echo engine, with a clock of its own and the words it said."""

    def __init__(self, engine: EchoEngine, **limits: Any) -> None:
        self.now = 0.0
        self.ended: list[Job] = []
        self.faults: list[BaseException] = []
        self.dispatcher = Dispatcher(
            lambda progress: engine,
            Limits(**limits),
            clock=lambda: self.now,
            on_end=self.ended.append,
            on_fault=self.faults.append,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Dispatcher]:
        task = asyncio.create_task(self.dispatcher.run())
        try:
            yield self.dispatcher
        finally:
            await self.dispatcher.stop(0)
            await task
            self.dispatcher.close()

    async def ask(self, text: str = "one two") -> list[EngineEvent]:
        async with self.dispatcher.job(request(text)) as job:
            return [event async for event in job.events()]


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await work()

    asyncio.run(limited())


def test_jobs_run_in_order_and_are_told_of() -> None:
    engine = EchoEngine()
    rig = Rig(engine)

    async def work() -> None:
        async with rig.running() as dispatcher:
            replies = await asyncio.gather(*(rig.ask(f"request {number}") for number in range(5)))
            assert dispatcher.status is Status.READY
        assert all(isinstance(events[-1], Finished) for events in replies)

    run(work)
    assert engine.asked == [f"request {number}" for number in range(5)]
    assert [job.outcome for job in rig.ended] == ["stop"] * 5
    assert rig.faults == []


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [(RequestError("No."), "request"), (MemoryError(), "out_of_memory"), (KeyError("words"), "internal")],
)
def test_a_failure_ends_one_job_and_no_other(failure: BaseException, outcome: str) -> None:
    engine = EchoEngine()
    rig = Rig(engine)

    async def work() -> None:
        async with rig.running():
            engine.failure = failure
            with pytest.raises(ServerFault) as caught:
                await rig.ask()
            assert caught.value.code == outcome
            await rig.ask()

    run(work)
    assert [job.outcome for job in rig.ended] == [outcome, "stop"]
    assert rig.faults == ([failure] if outcome == "internal" else [])


def test_a_job_that_is_left_while_it_waits_gives_its_place_up() -> None:
    engine = EchoEngine(hold_at=0)
    rig = Rig(engine, queue=1)

    async def work() -> None:
        async with rig.running() as dispatcher:
            first = asyncio.create_task(rig.ask("first"))
            while not engine.held.is_set():
                await asyncio.sleep(0)
            async with dispatcher.job(request("second")) as second:
                with pytest.raises(ServerFault) as full:
                    await rig.ask("third")
                assert full.value.status_code == 429
                dispatcher.leave(second)
                assert [event async for event in second.events()] == []
                assert dispatcher.waiting == 0
                dispatcher.leave(second)
            engine.hold_at = None
            first.cancel()
            with suppress(asyncio.CancelledError):
                await first
            await rig.ask("fourth")

    run(work)
    assert engine.asked == ["first", "fourth"]
    assert [job.outcome for job in rig.ended] == ["left", "cancelled", "stop"]


def test_when_to_come_back_follows_from_how_long_requests_take() -> None:
    engine = EchoEngine()
    rig = Rig(engine, queue=0)

    async def work() -> None:
        async with rig.running():
            engine_complete = engine.complete

            def slow(*args: Any) -> Iterator[EngineEvent]:
                rig.now += 12.5
                yield from engine_complete(*args)

            engine.complete = slow  # type: ignore[method-assign]
            await rig.ask()
            engine.hold_at = 0
            first = asyncio.create_task(rig.ask())
            while not engine.held.is_set():
                await asyncio.sleep(0)
            with pytest.raises(ServerFault) as full:
                await rig.ask()
            assert full.value.headers == {"retry-after": "13"}
            first.cancel()

    run(work)


def test_idle_is_measured_from_the_last_work() -> None:
    rig = Rig(EchoEngine())

    async def work() -> None:
        assert rig.dispatcher.idle_left_s(10) == 10  # a load is work
        async with rig.running() as dispatcher:
            await rig.ask()
            rig.now = 100.0
            await rig.ask()
            rig.now = 107.0
            assert dispatcher.idle_left_s(10) == 3
            await dispatcher.count(request())
            assert dispatcher.idle_left_s(10) == 10

    run(work)


def test_a_load_that_fails_is_raised_and_waiting_jobs_are_told() -> None:
    def load(progress: object) -> EchoEngine:
        raise ModelFileError("Damaged.")

    async def work() -> None:
        dispatcher = Dispatcher(load, Limits())
        async with dispatcher.job(request()) as job:
            with pytest.raises(ModelFileError):
                await dispatcher.run()
            with pytest.raises(ServerFault) as told:
                _ = [event async for event in job.events()]
            assert told.value.code == "stopping"
        with pytest.raises(ServerFault):
            async with dispatcher.job(request()):
                pass
        dispatcher.close()

    run(work)


def test_counts_are_refused_while_it_loads_and_when_the_engine_refuses() -> None:
    engine = EchoEngine()

    def refuse(request: CompletionRequest) -> tuple[int, int]:
        raise EngineError("No.")

    async def work() -> None:
        rig = Rig(engine)
        with pytest.raises(ServerFault) as loading:
            await rig.dispatcher.count(request())
        assert loading.value.status_code == 503
        async with rig.running() as dispatcher:
            await rig.ask()
            assert await dispatcher.count(request("a b c")) == (3, 0)
            engine.count = refuse  # type: ignore[method-assign]
            with pytest.raises(ServerFault):
                await dispatcher.count(request())

    run(work)


def test_the_first_reason_a_job_was_ended_for_counts() -> None:
    job = Job(request(), 0.0)
    assert job.outcome == "left"
    job.cut(ServerFault(504, "time_limit", "Cut."))
    job.end(ServerFault(500, "other", "Later."))
    assert job.outcome == "time_limit"
    assert job.cancel.is_set()
