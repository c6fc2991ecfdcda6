"""The worker that has the engine: what it posts and how often, and that the newest call has the engine."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

import pytest
from textual.message import Message

from app.editing.document import open_bytes
from app.editing.pipeline import EditOrder
from app.errors import EngineUnreachableError, InterruptedByUserError, UnchangedError, UsageError
from app.tui.edit_run import SLOWEST_UPDATE_S, UPDATE_S, _Updates
from app.tui.edit_worker import EditWorker
from app.tui.messages import (
    Counted,
    EditFailed,
    EditPlanned,
    EditProgress,
    EditProposed,
    EngineFailed,
    EngineReady,
    Warmed,
)
from editor_engine.events import EngineEvent, Pass, Started
from editor_engine.requests import CancelFlag, CompletionRequest
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.scripted_client import ScriptedClient, fenced

DOCUMENT = open_bytes(SOURCE.encode(), "sums.py")
ORDER = EditOrder("Do.")


def worker_of(client: ScriptedClient) -> tuple[EditWorker, list[Message]]:
    posted: list[Message] = []
    return EditWorker(client, posted.append, lambda: 0.0), posted


def kinds(posted: list[Message]) -> list[type]:
    """Kinds of messages, each run of the same kind once."""
    return [type(message) for at, message in enumerate(posted) if not at or type(posted[at - 1]) is not type(message)]


def test_updates_are_gathered_and_never_more_often_than_they_can_be_seen() -> None:
    now = [0.0]
    posted: list[Message] = []
    waits: list[tuple[float, Callable[[], None]]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def later(wait: float, call: Callable[[], None]) -> asyncio.TimerHandle:
            waits.append((wait, call))
            return asyncio.TimerHandle(0.0, call, (), loop)

        loop.call_later = later  # type: ignore[method-assign,assignment]
        updates = _Updates(posted.append, lambda: now[0])
        for _ in range(100):
            updates.take(Pass(1, 0, 0, 1, None, None, 1.0))
        assert [wait for wait, _ in waits] == [0.0] and not posted
        waits[0][1]()
        assert len(posted) == 1
        now[0] = UPDATE_S / 4
        for _ in range(100):
            updates.take(Pass(1, 0, 0, 1, None, None, 1.0))
        assert [wait for wait, _ in waits] == [0.0, UPDATE_S * 3 / 4] and len(posted) == 1
        waits[1][1]()
        now[0] = 10.0
        updates.take(Started(1, 0, 1))
        assert waits[2][0] == 0.0
        updates.close()

    asyncio.run(run())
    assert [message.figures.passes for message in posted if isinstance(message, EditProgress)] == [100, 200]


def test_updates_come_less_often_while_the_processor_is_busy() -> None:
    now = [0.0]
    waits: list[tuple[float, Callable[[], None]]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def later(wait: float, call: Callable[[], None]) -> asyncio.TimerHandle:
            waits.append((wait, call))
            return asyncio.TimerHandle(0.0, call, (), loop)

        loop.call_later = later  # type: ignore[method-assign,assignment]
        updates = _Updates(lambda message: None, lambda: now[0])
        for late in (0.0, 0.05, 10.0, 0.0, 0.0):
            updates.take(Pass(1, 0, 0, 1, None, None, 1.0))
            now[0] += waits[-1][0] + late
            waits[-1][1]()

    asyncio.run(run())
    assert [wait for wait, _ in waits] == pytest.approx([0.0, UPDATE_S, 4 * 0.05, SLOWEST_UPDATE_S, UPDATE_S])


def test_an_edit_posts_its_plan_its_progress_and_its_proposal() -> None:
    client = ScriptedClient(fenced(CHANGED))
    worker, posted = worker_of(client)
    asyncio.run(worker.edit(DOCUMENT, ORDER))
    assert kinds(posted) == [EditPlanned, EditProgress, EditProposed]
    planned, progress = posted[0], [message for message in posted if isinstance(message, EditProgress)]
    assert isinstance(planned, EditPlanned) and planned.live.share == 1.0
    assert progress[-1].figures.tokens > 100 and progress[-1].lines
    assert len(progress) < progress[-1].figures.passes / 2


def test_every_failure_is_a_message() -> None:
    def die() -> None:
        raise EngineUnreachableError("It died.")

    for client, order, error in (
        (ScriptedClient(fenced(SOURCE)), ORDER, UnchangedError),
        (ScriptedClient(fenced(CHANGED), at_token={5: die}), ORDER, EngineUnreachableError),
        (ScriptedClient(fenced(CHANGED)), EditOrder(" "), UsageError),
    ):
        worker, posted = worker_of(client)
        asyncio.run(worker.edit(DOCUMENT, order))
        assert isinstance(posted[-1], EditFailed) and isinstance(posted[-1].error, error)
        assert client.open_calls == 0
    worker, posted = worker_of(ScriptedClient("", failures={"describe": EngineUnreachableError("No.")}))
    asyncio.run(worker.connect())
    asyncio.run(worker.warm(DOCUMENT))
    assert kinds(posted) == [EngineFailed, Counted, EngineFailed]


def test_connecting_and_reading_ahead() -> None:
    client = ScriptedClient("")
    worker, posted = worker_of(client)
    asyncio.run(worker.connect())
    asyncio.run(worker.warm(DOCUMENT))
    assert kinds(posted) == [EngineReady, Counted, Warmed]
    last = posted[-1]
    assert isinstance(last, Warmed) and last.finished and last.done == last.total > 0
    small = ScriptedClient("", context_length=50)
    worker, posted = worker_of(small)
    asyncio.run(worker.warm(DOCUMENT))
    assert kinds(posted) == [Counted] and small.requests == []


@dataclass
class SlowReader(ScriptedClient):
    """Reads ahead until it is told to stop."""

    most_open: int = field(default=0)

    async def complete(self, request: CompletionRequest, cancel: CancelFlag) -> AsyncGenerator[EngineEvent, None]:
        async for event in super().complete(request, cancel):
            self.most_open = max(self.most_open, self.open_calls)
            while request.max_tokens == 0 and not cancel.is_set():
                await asyncio.sleep(0)
            yield event


def test_an_edit_stops_the_reading_ahead_and_waits_for_its_end() -> None:
    client = SlowReader(fenced(CHANGED))
    worker, posted = worker_of(client)

    async def run() -> None:
        reading = asyncio.create_task(worker.warm(DOCUMENT))
        while not client.open_calls:
            await asyncio.sleep(0)
        await asyncio.gather(worker.edit(DOCUMENT, ORDER), reading)

    asyncio.run(run())
    assert isinstance(posted[-1], EditProposed)
    assert not any(isinstance(message, Warmed) and message.finished for message in posted)
    assert client.most_open == 1


def test_cancel_ends_the_run_and_close_lets_go() -> None:
    client = ScriptedClient(fenced(CHANGED))
    worker, posted = worker_of(client)
    client.at_token[10] = worker.cancel
    asyncio.run(worker.edit(DOCUMENT, ORDER))
    assert isinstance(posted[-1], EditFailed) and isinstance(posted[-1].error, InterruptedByUserError)
    asyncio.run(worker.close())
    assert client.closed


def test_close_does_not_wait_for_an_engine_that_hangs() -> None:
    never, hangs = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        hangs.set()
        await never.wait()

    client = ScriptedClient(fenced(CHANGED), at_token={10: hang})
    worker, _ = worker_of(client)

    async def run() -> None:
        running = asyncio.create_task(worker.edit(DOCUMENT, ORDER))
        await hangs.wait()
        await worker.close()
        assert client.closed and not running.done()
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(run())
    assert client.open_calls == 0
