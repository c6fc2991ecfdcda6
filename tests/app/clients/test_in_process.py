"""The engine behind its client: events in order, errors as the application's, and idle again however a run is left."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.clients.in_process import InProcessClient, app_error, load_engine
from app.engine_client import EngineDescription, TokenCounts
from app.errors import (
    AppError,
    EngineUnreachableError,
    ExitCode,
    FileTooLongError,
    MemoryLimitError,
    ModelError,
    UsageError,
)
from app.load_options import LoadOptions
from editor_engine import errors as engine_errors
from editor_engine.config import ENGINE_THREAD
from editor_engine.errors import (
    ContextOverflowError,
    EngineError,
    FetchError,
    ModelFileError,
    ModelMissingError,
    NumericsError,
    OptionError,
    OutOfMemoryError,
    UnsupportedModelError,
)
from editor_engine.events import EngineEvent, Finished, FinishReason, Started, Stats, Text
from editor_engine.models.target import ModelInfo
from editor_engine.requests import CancelFlag, CompletionRequest, Message
from editor_engine.store.installed import LocatedModel

REQUEST = CompletionRequest((Message("user", "Hello."),), 8)
PATIENCE_S = 30
"""A hung test fails; none waits this long."""


@dataclass
class FakeEngine:
    """Emits `count` texts; waits at text `gate_at` until it is cancelled or `gate` is opened."""

    count: int = 3
    gate_at: int | None = None
    gate: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None
    busy: bool = False
    threads: set[int] = field(default_factory=set)
    notes: tuple[str, ...] = ("a note",)
    choice: str | None = None
    info: ModelInfo = field(default_factory=lambda: ModelInfo("fake", "none", "c" * 64, 0, 4096, "cpu", 2, "scalar", 1))

    def count_tokens(self) -> tuple[int, int]:
        return 11, 7

    def complete(self, request: CompletionRequest, cancel: CancelFlag) -> Iterator[EngineEvent]:
        assert not self.busy
        self.busy = True
        self.threads.add(threading.get_ident())
        try:
            with cancel.interrupting(self.gate.set):
                yield Started(11, 0, 7)
                for number in range(self.count):
                    if number == self.gate_at:
                        self.reached.set()
                        assert self.gate.wait(PATIENCE_S)
                    if self.failure is not None:
                        raise self.failure
                    if cancel.is_set():
                        break
                    yield Text(str(number), ())
                reason = FinishReason.CANCELLED if cancel.is_set() else FinishReason.STOP
                yield Finished(reason, (), Stats(11, 0, 3, None, None, None, 0.0, 3, 0, 0))
        finally:
            self.busy = False


class Loader:
    """Gives the engine, and counts how often it was asked."""

    def __init__(self, engine: FakeEngine, failure: BaseException | None = None) -> None:
        self.engine, self.failure, self.calls = engine, failure, 0

    def __call__(self) -> Any:
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        fake = SimpleNamespace(
            complete=self.engine.complete,
            count=lambda request: self.engine.count_tokens(),
            info=self.engine.info,
            choice=None,
            notes=self.engine.notes,
        )
        return fake, "fake"


def client_of(engine: FakeEngine, failure: BaseException | None = None) -> tuple[InProcessClient, Loader]:
    loader = Loader(engine, failure)
    return InProcessClient(cast(Callable[[], Any], loader)), loader


async def collected(client: InProcessClient, cancel: CancelFlag | None = None) -> list[EngineEvent]:
    async with aclosing(client.complete(REQUEST, cancel or CancelFlag())) as events:
        return [event async for event in events]


def test_events_come_in_order_from_one_load_on_one_other_thread() -> None:
    engine = FakeEngine()
    client, loader = client_of(engine)

    async def work() -> list[EngineEvent]:
        try:
            described = await client.describe()
            assert (described.model_id, described.sha256, described.notes) == ("fake", "c" * 64, ("a note",))
            assert (described.exactness, described.context_length) == ("exact", 4096)
            assert await client.count(REQUEST) == TokenCounts(11, 7)
            await collected(client)
            return await collected(client)
        finally:
            await client.close()
            await client.close()

    events = asyncio.run(work())
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    assert [event.text for event in events if isinstance(event, Text)] == ["0", "1", "2"]
    assert loader.calls == 1
    assert len(engine.threads) == 1 and threading.get_ident() not in engine.threads


def test_nothing_is_loaded_before_it_is_needed() -> None:
    client, loader = client_of(FakeEngine())
    asyncio.run(client.close())
    assert loader.calls == 0


def test_nobody_waits_for_a_load_that_nobody_wants() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def load() -> Any:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return FakeEngine(), "fake"

    client = InProcessClient(load)

    async def leave() -> None:
        wanted = asyncio.ensure_future(client.describe())
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        wanted.cancel()
        await client.close()

    asyncio.run(leave())
    assert any(thread.name.startswith(ENGINE_THREAD) for thread in threading.enumerate())
    go_on.set()


def test_a_flag_set_meanwhile_ends_the_run() -> None:
    engine = FakeEngine(gate_at=1)
    client, _ = client_of(engine)

    async def work() -> list[EngineEvent]:
        cancel = CancelFlag()
        running = asyncio.ensure_future(collected(client, cancel))
        await asyncio.to_thread(engine.reached.wait, PATIENCE_S)
        cancel.set()
        return await running

    last = asyncio.run(work())[-1]
    assert isinstance(last, Finished) and last.reason is FinishReason.CANCELLED


@pytest.mark.parametrize("way", ["leave", "cancel the task"])
def test_a_consumer_that_leaves_stops_the_engine_which_then_serves_the_next(way: str) -> None:
    engine = FakeEngine(gate_at=1)
    client, _ = client_of(engine)

    async def left() -> None:
        async with aclosing(client.complete(REQUEST, CancelFlag())) as events:
            async for event in events:
                if isinstance(event, Text):
                    await asyncio.to_thread(engine.reached.wait, PATIENCE_S)
                    if way == "leave":
                        return
                    await asyncio.Event().wait()

    async def work() -> list[EngineEvent]:
        running = asyncio.ensure_future(left())
        await asyncio.to_thread(engine.reached.wait, PATIENCE_S)
        if way != "leave":
            running.cancel()
        await asyncio.wait([running])
        assert not engine.busy
        engine.gate_at = None
        return await collected(client)

    last = asyncio.run(work())[-1]
    assert isinstance(last, Finished) and last.reason is FinishReason.STOP


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ModelMissingError("no weights."), ModelError),
        (ModelFileError("damaged."), ModelError),
        (UnsupportedModelError("unknown."), ModelError),
        (FetchError("offline."), ModelError),
        (OutOfMemoryError("too big."), MemoryLimitError),
        (OptionError("no such device."), UsageError),
        (ContextOverflowError("too long."), FileTooLongError),
        (NumericsError("a NaN in layer 3."), EngineUnreachableError),
    ],
)
def test_errors_of_the_engine_become_the_application_s_with_the_same_sentence(
    failure: EngineError, expected: type[AppError]
) -> None:
    def check(client: InProcessClient, work: Callable[[], Any]) -> None:
        with pytest.raises(expected) as caught:
            asyncio.run(work())
        assert type(caught.value) is expected
        assert str(caught.value) == str(failure)

    loading, _ = client_of(FakeEngine(), failure)
    check(loading, loading.describe)
    running, _ = client_of(FakeEngine(failure=failure))
    check(running, lambda: collected(running))


def test_every_error_of_the_engine_has_a_place() -> None:
    for kind in vars(engine_errors).values():
        if isinstance(kind, type) and issubclass(kind, EngineError):
            found = app_error(kind("A sentence."))
            assert found.exit_code in (ExitCode.ENGINE, ExitCode.FILE, ExitCode.USAGE)


def test_memory_that_runs_out_is_said_as_such() -> None:
    client, _ = client_of(FakeEngine(failure=MemoryError()))
    with pytest.raises(MemoryLimitError, match="memory"):
        asyncio.run(collected(client))


def test_a_fault_of_the_engine_is_passed_on_as_it_is() -> None:
    client, _ = client_of(FakeEngine(failure=ZeroDivisionError("ours")))
    with pytest.raises(ZeroDivisionError):
        asyncio.run(collected(client))


@pytest.mark.parametrize("reason", [None, "it is installed and suits this machine (8.0 GB of memory)"])
def test_why_a_model_that_nobody_named_was_chosen_is_kept_with_its_engine(
    monkeypatch: pytest.MonkeyPatch, reason: str | None
) -> None:
    located = LocatedModel(Path("small.gguf"), None, "small", reason)
    monkeypatch.setattr("app.clients.in_process.locate_models", lambda options: (None, located))
    monkeypatch.setattr("editor_engine.engine.Engine.load", lambda config, on_packed: FakeEngine())
    chosen = None if reason is None else f"Model: small, {reason}."

    async def described() -> EngineDescription:
        client = InProcessClient(lambda: load_engine(LoadOptions()))
        try:
            return await client.describe()
        finally:
            await client.close()

    found = asyncio.run(described())
    assert (found.model_id, found.choice, found.notes) == ("small", chosen, ("a note",))
    assert found.told == ("a note",) if chosen is None else (chosen, "a note")
