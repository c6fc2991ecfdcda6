"""One engine, one thread, one request at a time: who runs, who waits, who is told to come back.

Requests run in the order in which they came. Knows events and requests, nothing of HTTP. Invariant: when a job has been
left, by any way, it neither waits nor runs, and the engine is free for the next one; every job that stays ends in
`Finished` or in one ServerFault.
"""

import asyncio
import contextlib
import math
import statistics
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any, Protocol

from editor_engine.config import ENGINE_THREAD
from editor_engine.errors import CancelledError, EngineError
from editor_engine.events import EngineEvent, Finished
from editor_engine.models.target import ModelInfo
from editor_engine.requests import CancelFlag, CompletionRequest
from editor_engine.server.faults import ServerFault, busy, fault_of, stopping, too_long
from editor_engine.server.options import Limits

_PACKED_S = 1.0
"""What a load may take to leave what it packs; a matrix takes less."""


class ServedEngine(Protocol):
    """What the server needs of `editor_engine.engine.Engine`."""

    @property
    def notes(self) -> tuple[str, ...]: ...

    @property
    def info(self) -> ModelInfo: ...

    def count(self, request: CompletionRequest) -> tuple[int, int]: ...

    def complete(self, request: CompletionRequest, cancel: CancelFlag | None = None) -> Iterator[EngineEvent]: ...


Progress = Callable[[int, int], None]
"""(done, total), in whatever unit the load counts."""


class Status(StrEnum):
    """What the server is doing."""

    LOADING = "loading"
    READY = "ready"
    BUSY = "busy"
    STOPPING = "stopping"


class Job:
    """One request on its way through the engine."""

    def __init__(self, request: CompletionRequest, queued_at: float) -> None:
        self.request = request
        self.queued_at = queued_at
        self.started_at: float | None = None
        """None: it has not run."""
        self.cancel = CancelFlag()
        self.left = False
        """Nobody listens any more."""
        self.finished: Finished | None = None
        """The engine's last word; None: not yet, or it failed."""
        self.fault: ServerFault | None = None
        """Why it ended without a result, as far as the server knows."""
        self._inbox: asyncio.Queue[EngineEvent | None] = asyncio.Queue()

    def post(self, event: EngineEvent) -> None:
        """The engine said something."""
        if isinstance(event, Finished):
            self.finished = event
        self._inbox.put_nowait(event)

    def end(self, fault: ServerFault | None = None) -> None:
        """Nothing follows; the first fault counts."""
        self.fault = self.fault or fault
        self._inbox.put_nowait(None)

    def cut(self, fault: ServerFault) -> None:
        """Stop it for a reason of the server's own."""
        self.fault = self.fault or fault
        self.cancel.set()

    @property
    def outcome(self) -> str:
        """One word for figures and logs: a fault's code, the engine's reason, or `left`."""
        if self.fault is not None:
            return self.fault.code
        return self.finished.reason.value if self.finished else "left"

    async def events(self) -> AsyncGenerator[EngineEvent, None]:
        """What the engine says, until the end or until nobody listens. Raises ServerFault."""
        while (event := await self._inbox.get()) is not None:
            if self.left:
                return
            if self.fault is None:  # after a cut the engine's own last words are of no interest
                yield event
        if self.fault is not None:
            raise self.fault


class Dispatcher:
    """The queue in front of the engine. Every method is for the event loop's thread."""

    def __init__(
        self,
        load: Callable[[Progress], ServedEngine],
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_ready: Callable[[ServedEngine], None] = lambda engine: None,
        on_end: Callable[[Job], None] = lambda job: None,
        on_fault: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """`load` runs once, on the engine's thread.

        `on_ready` is told of the engine, `on_end` of each job that leaves queue or engine, `on_fault` of what nobody
        foresaw.
        """
        self._load = load
        self._limits = limits
        self._clock = clock
        self._on_ready = on_ready
        self._on_end = on_end
        self._on_fault = on_fault
        self._waiting: deque[Job] = deque()
        self._running: Job | None = None
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._stop_asked = asyncio.Event()
        self._stopping = False
        self._recent: deque[float] = deque(maxlen=8)  # seconds that the last jobs ran, for words on when to come back
        self._engine_thread = ThreadPoolExecutor(1, ENGINE_THREAD)
        self._abandoned = False  # a load that nobody waits for any more
        self._count_thread = ThreadPoolExecutor(1, "count")
        self.engine: ServedEngine | None = None
        """None while it loads."""
        self.loading: tuple[int, int] | None = None
        """(done, total) of the load; None before the first word of it, and once it is done."""
        self._last_used = clock()  # when a request last came, ran or ended

    @property
    def status(self) -> Status:
        """One word for /health."""
        if self._stopping:
            return Status.STOPPING
        if self.engine is None:
            return Status.LOADING
        return Status.BUSY if self._running else Status.READY

    @property
    def waiting(self) -> int:
        """Jobs in the queue, the running one not counted."""
        return len(self._waiting)

    def idle_left_s(self, limit_s: float) -> float:
        """Seconds until there has been no work for `limit_s`, if none comes; a load is work."""
        if self._running or self._waiting or self.engine is None:
            return limit_s
        return self._last_used + limit_s - self._clock()

    async def run(self) -> None:
        """Load the engine, then run jobs until `stop`, which ends a load, too; raises EngineError when it fails."""
        try:
            self.engine = await self._loaded()
            self.loading = None
            if self.engine is None:
                return
            self._on_ready(self.engine)
            while not self._stopping:
                if not self._waiting:
                    self._wake.clear()
                    await self._wake.wait()
                else:
                    await self._run(self._waiting.popleft(), self.engine)
        finally:
            self._stopping = True
            self._idle.set()
            self._refuse_waiting()

    async def _loaded(self) -> ServedEngine | None:
        """The engine, or None where the server was stopped before it was there.

        One that packs weights leaves at its next word; libraries take a load to its end, for which nobody waits.
        """
        loop = asyncio.get_running_loop()

        def progress(done: int, total: int) -> None:
            if self._stopping:
                raise CancelledError("The server stops.")
            loop.call_soon_threadsafe(setattr, self, "loading", (done, total))

        loading = loop.run_in_executor(self._engine_thread, self._load, progress)
        asked = asyncio.ensure_future(self._stop_asked.wait())
        either: list[asyncio.Future[Any]] = [loading, asked]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
        if self.loading is not None and not loading.done():
            await asyncio.wait([loading], timeout=_PACKED_S)
        if not loading.done():
            self._abandoned = True
            loading.cancel()
            return None
        try:
            return loading.result()
        except CancelledError:
            return None

    async def _run(self, job: Job, engine: ServedEngine) -> None:
        loop = asyncio.get_running_loop()
        self._running = job
        job.started_at = self._last_used = self._clock()
        limit = self._limits.request_s
        deadline = loop.call_later(limit, lambda: job.cut(too_long(limit)))

        def work() -> None:
            for event in engine.complete(job.request, job.cancel):
                loop.call_soon_threadsafe(job.post, event)

        try:
            await loop.run_in_executor(self._engine_thread, work)
            job.end()
        except EngineError as error:
            job.end(fault_of(error))
        except MemoryError:
            job.end(ServerFault(503, "out_of_memory", "The memory of this machine does not suffice.", retry_after_s=5))
        except Exception as error:
            # A fault of ours in one request. The engine restores itself however a request ends, so the others go on.
            self._on_fault(error)
            job.end(ServerFault(500, "internal", "The engine failed; the server's log has the place."))
        finally:
            job.cancel.set()  # of use only where this task itself was cancelled and the engine still runs
            deadline.cancel()
            self._running = None
            self._last_used = self._clock()
            self._recent.append(self._last_used - job.started_at)
            self._on_end(job)

    @contextlib.asynccontextmanager
    async def job(self, request: CompletionRequest) -> AsyncIterator[Job]:
        """Queue the request; leaving stops it, wherever it is. Raises ServerFault when there is no place for it."""
        job = self._enter(request)
        try:
            yield job
        finally:
            self.leave(job)

    def _enter(self, request: CompletionRequest) -> Job:
        if self._stopping:
            raise stopping()
        at_once = self._running is None  # it does not wait for anybody, though it goes through the queue
        if len(self._waiting) >= self._limits.queue + at_once:
            raise busy(len(self._waiting), self._expected_wait_s())
        job = Job(request, self._clock())
        self._last_used = job.queued_at
        self._waiting.append(job)
        self._wake.set()
        return job

    def leave(self, job: Job) -> None:
        """Nobody waits for this job any more; its events end. Safe to call twice, and after its end."""
        job.left = True
        job.cancel.set()
        if job in self._waiting:
            self._waiting.remove(job)
            job.end()
            self._on_end(job)

    async def count(self, request: CompletionRequest) -> tuple[int, int]:
        """(prompt tokens, source tokens), also while another request runs. Raises ServerFault."""
        if self._stopping:
            raise stopping()
        if self.engine is None:
            raise ServerFault(503, "loading", "The model is being loaded; try again in a moment.", retry_after_s=1)
        self._last_used = self._clock()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._count_thread, self.engine.count, request)
        except EngineError as error:
            raise fault_of(error) from error

    async def stop(self, grace_s: float) -> None:
        """Refuse what waits and what comes, let the running request finish within the grace, else cut it."""
        self._stopping = True
        self._stop_asked.set()
        self._refuse_waiting()
        self._wake.set()
        cut = asyncio.get_running_loop().call_later(grace_s, self.cut_running)
        await self._idle.wait()
        cut.cancel()

    def cut_running(self) -> None:
        """Stop the running request, because the server stops."""
        if self._running is not None:
            self._running.cut(stopping())

    def close(self) -> None:
        """Let go of threads and engine. The engine must be idle: `run` has ended.

        And of whatever leads to the engine: FastAPI keeps the routes of every application for good, and they lead here.
        """
        self._engine_thread.shutdown(wait=not self._abandoned)
        self._count_thread.shutdown(wait=True)
        self.engine = None
        self._load = _closed
        self._on_ready = lambda engine: None
        self._on_end = lambda job: None
        self._on_fault = lambda error: None

    def _refuse_waiting(self) -> None:
        while self._waiting:
            job = self._waiting.popleft()
            job.end(stopping())
            self._on_end(job)

    def _expected_wait_s(self) -> int:
        usual = statistics.median(self._recent) if self._recent else 5.0
        return min(max(math.ceil(usual * (len(self._waiting) + 1)), 1), 3600)


def _closed(progress: Progress) -> ServedEngine:
    raise RuntimeError("a dispatcher that was closed loads nothing")
