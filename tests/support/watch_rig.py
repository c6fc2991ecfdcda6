"""A real watch on real files, with a scripted engine and a clock that stands still until a test moves it.

Nothing here sleeps: a test waits for turns of the watch, and knows that the system's events have come when those of a
file written after them have (they come in order). Invariant: a rig that is left has no thread, task or descriptor.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from app.editing.journal import Journal
from app.editing.proposals import ProposalStore, StoredProposal
from app.errors import AppError, ExitCode
from app.paths import journal_dir, proposals_dir
from app.watch.events import WatchEvent
from app.watch.inotify import FolderEvent, InotifySource
from app.watch.options import WatchOptions
from app.watch.pace import Pace
from app.watch.watcher import Watcher
from editor_engine.events import EngineEvent, Finished, FinishReason, Prefill, Started, Stats
from editor_engine.requests import CancelFlag, CompletionRequest
from tests.support.scripted_client import ScriptedClient, prompt_tokens, tokens_of
from tests.support.soak import SOAK

Event = TypeVar("Event", bound=WatchEvent)

_PATIENCE_S = 600.0 if SOAK else 20.0
"""A watch that does not do what a test waits for fails it after so long; a full burst may take minutes."""


class StillPace(Pace):
    """A clock that a test moves."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 1000.0
        self.turned = asyncio.Event()
        """Set whenever the watch has nothing more to do."""
        self.stirred = asyncio.Event()
        """Set whenever anything has happened that a test may wait for."""

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self.wake()

    async def wait(self, seconds: float | None) -> None:
        self.turned.set()
        self.stirred.set()
        if seconds is None or seconds > 0:
            await super().wait(None)


class HeardSource(InotifySource):
    """The real thing; remembers the names it has told of."""

    def __init__(self, wake: Callable[[], None]) -> None:
        super().__init__(wake)
        self.heard: set[str] = set()

    def drain(self) -> list[FolderEvent]:
        found = super().drain()
        self.heard.update(event.name for event in found)
        return found


def hello(source: str) -> str:
    """An edit: a greeting at the end."""
    return f"{source}print('hello')\n"


def edit_with(change: Callable[[str], str]) -> Callable[[CompletionRequest], Iterable[str]]:
    """The reply of a model that makes this change to the file."""
    return lambda request: tokens_of(f"{change(request.source)}{request.stop_line}\n")


@dataclass
class WatchClient(ScriptedClient):
    """A scripted engine that takes down what it only had to read."""

    warmed: list[CompletionRequest] = field(default_factory=list)
    held: bool = False
    """While true, no edit gets further than its start, unless it is cancelled."""
    on_step: Callable[[], object] = bool
    """Called at every event of a completion."""

    async def complete(self, request: CompletionRequest, cancel: CancelFlag) -> AsyncGenerator[EngineEvent, None]:
        if request.max_tokens:
            async with aclosing(super().complete(request, cancel)) as events:
                async for event in events:
                    self.on_step()
                    yield event
                    while self.held and not cancel.is_set():
                        await asyncio.sleep(0)
            return
        self.warmed.append(request)
        count = prompt_tokens(request)
        yield Started(count, 0, len(tokens_of(request.source)))
        yield Prefill(count, count)
        yield Finished(FinishReason.LENGTH, (), Stats(count, 0, 0, None, 400.0, None, 0.5, 0, 0, 0))

    def edited(self) -> list[str]:
        """The sources of the edits that were run, in order."""
        return [request.source for request in self.requests]


@dataclass
class Rig:
    """A running watch and what it said."""

    root: Path
    watcher: Watcher
    client: WatchClient
    pace: StillPace
    store: ProposalStore
    journal: Journal
    source: HeardSource | None
    events: list[WatchEvent]
    running: "asyncio.Task[ExitCode]"
    _numbers: Any = field(default_factory=itertools.count)

    def of(self, kind: type[Event]) -> list[Event]:
        """What it said of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, happened: Callable[[], bool]) -> None:
        """Let everything else go on until something has happened, without moving the clock."""
        async with asyncio.timeout(_PATIENCE_S):
            while not happened():
                if self.running.done():
                    self.running.result()
                    raise AssertionError("the watch has ended")
                await self.pace.stirred.wait()
                self.pace.stirred.clear()

    async def heard(self) -> None:
        """Every event of what was done so far has been taken in."""
        if self.source is None:
            return
        source, name = self.source, f"heard-{next(self._numbers)}.tmp"
        (self.root / name).touch()
        await self.until(lambda: name in source.heard)
        (self.root / name).unlink()

    async def idle(self) -> None:
        """Nothing runs and nothing waits that may run."""
        await self.until(lambda: self.watcher.status.state == "idle")

    async def settle(self, seconds: float = 0.25) -> None:
        """Everything done so far, and what came of it, has settled and was worked off."""
        await self.heard()
        while True:
            self.pace.turned.clear()
            self.pace.advance(seconds)
            await self.until(lambda: self.pace.turned.is_set() and self.watcher.status.state in ("idle", "settling"))
            await self.heard()
            if self.watcher.status.state == "idle":
                return
            seconds = 0.25

    def proposals(self) -> list[StoredProposal]:
        return self.store.entries()

    async def ended(self) -> ExitCode | AppError:
        """The watch has ended by itself: its exit code, or what ended it."""
        async with asyncio.timeout(_PATIENCE_S):
            try:
                return await self.running
            except AppError as error:
                return error


@asynccontextmanager
async def watching(
    root: Path,
    client: WatchClient,
    *,
    paths: Iterable[Path] | None = None,
    wait: bool = True,
    source: Callable[[Callable[[], None]], HeardSource] = HeardSource,
    **options: Any,
) -> AsyncIterator[Rig]:
    """A watch on `root`, ready and idle."""
    events: list[WatchEvent] = []
    pace = StillPace()
    store, journal = ProposalStore(proposals_dir()), Journal(journal_dir())
    given = WatchOptions(tuple(str(path) for path in (paths or [root])), **options)
    sources: list[HeardSource] = []

    def listening(wake: Callable[[], None]) -> HeardSource:
        sources.append(source(wake))
        return sources[-1]

    def listen(event: WatchEvent) -> None:
        events.append(event)
        pace.stirred.set()

    client.on_step = pace.stirred.set
    watcher = Watcher(given, client, store, journal, listen, pace, listening)
    heard = sources[0] if sources else None
    running = asyncio.ensure_future(watcher.run())
    running.add_done_callback(lambda _: pace.stirred.set())
    rig = Rig(root, watcher, client, pace, store, journal, heard, events, running)
    try:
        if wait:
            await rig.until(pace.turned.is_set)
            await rig.idle()
        yield rig
    finally:
        watcher.stop()
        with suppress(AppError):  # what ended a watch early is for the test to look at
            await asyncio.wait_for(rig.running, _PATIENCE_S)
    assert client.open_calls == 0
