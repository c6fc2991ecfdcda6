"""Runs edits on the engine and tells the workspace what happens, at most some fifteen times a second.

The edit itself is `app.editing.pipeline`; widgets never touch the engine. Invariant: one call at a time has the engine,
the newest; what it interrupts has stopped before it begins.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

from textual.message import Message

from app.editing.again import continue_plan, redo_order
from app.editing.diff import Hunk
from app.editing.document import Document
from app.editing.figures import FigureKeeper
from app.editing.pipeline import EditOrder, EditPlan, Proposal, Replied, live_diff, plan_edit, run_edit
from app.editing.warm import warm_request
from app.engine_client import EngineClient
from app.errors import AppError
from app.rates import last_rates, remember_rates
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
from editor_engine.events import EngineEvent, Finished, Prefill, Stats
from editor_engine.requests import CancelFlag

UPDATE_S = 1 / 15
"""Least time between two updates: more is not seen, and costs the keyboard."""
SLOWEST_UPDATE_S = 0.5
"""Most time between two, on a machine that is too busy for more."""
_LATE = 4
"""An update that came late waited for the processor, as keys do: the next one waits so many times longer still."""
CLOSING_S = 1.0
"""What a run may take to stop before its engine is let go under it."""


class EditWorker:
    """One engine, one thing at a time."""

    def __init__(self, client: EngineClient, post: Callable[[Message], object], clock: Callable[[], float]) -> None:
        self._client = client
        self._post = post
        self._clock = clock
        self._cancel = CancelFlag()
        self._turn = asyncio.Lock()

    def cancel(self) -> None:
        """Ask what runs to stop. The engine is idle soon after; the run says so itself."""
        self._cancel.set()

    async def connect(self) -> None:
        """Load or reach the engine."""
        try:
            async with self._turn:
                engine = await self._client.describe()
        except AppError as error:
            self._post(EngineFailed(error))
        else:
            self._post(EngineReady(engine, last_rates(engine)))

    async def warm(self, document: Document) -> None:
        """Count the file's tokens and read it, so that the first token follows the instruction at once."""
        cancel = self._begin()
        request = warm_request(document)
        try:
            async with self._turn:
                if cancel.is_set():
                    return
                counts = await self._client.count(request)
                self._post(Counted(document, counts.prompt, counts.source, counts.estimated))
                engine = await self._client.describe()
                if not engine.capabilities.prefill or cancel.is_set():
                    return
                if engine.context_length is not None and counts.prompt >= engine.context_length:
                    return
                async with aclosing(self._client.complete(request, cancel)) as events:
                    async for event in events:
                        if isinstance(event, Prefill):
                            self._post(Warmed(document, event.done, event.total, False))
                if not cancel.is_set():
                    self._post(Warmed(document, counts.prompt, counts.prompt, True))
        except AppError as error:
            self._post(EngineFailed(error))

    async def edit(self, document: Document, order: EditOrder) -> None:
        """One edit, from the order to a proposal or a sentence."""
        await self._run(lambda: plan_edit(document, order, self._client))

    async def go_on(self, plan: EditPlan, text: str) -> None:
        """Go on with a reply that ended too early; `text` is all it said."""
        await self._run(lambda: continue_plan(plan, text, self._client))

    async def redo(self, plan: EditPlan, hunk: Hunk, note: str) -> None:
        """Do one hunk of what the plan led to anew, as the note says."""

        async def planned() -> EditPlan:
            return await plan_edit(plan.document, redo_order(plan, hunk, note), self._client)

        await self._run(planned)

    async def _run(self, make_plan: Callable[[], Awaitable[EditPlan]]) -> None:
        cancel = self._begin()
        stats: Stats | None = None
        updates = _Updates(self._post, self._clock)
        try:
            async with self._turn:
                plan = await make_plan()
                rates, live = last_rates(plan.engine), live_diff(plan)
                self._post(EditPlanned(plan, live, None if rates is None else rates.seconds(plan.budget)))
                async with aclosing(run_edit(plan, self._client, cancel, live)) as events:
                    async for event in events:
                        if isinstance(event, Replied):
                            updates.flush()
                            remember_rates(plan.engine, event.stats)
                        elif isinstance(event, Proposal):
                            self._post(EditProposed(event))
                        elif isinstance(event, EngineEvent):
                            stats = event.stats if isinstance(event, Finished) else stats
                            updates.take(event)
        except AppError as error:
            updates.flush()
            self._post(EditFailed(error, stats))
        finally:
            updates.close()

    async def close(self) -> None:
        """Stop what runs and let the engine go, also when it does not stop."""
        self._cancel.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S), self._turn:
                pass
        await self._client.close()

    def _begin(self) -> CancelFlag:
        """Interrupt what has the engine; the flag of what comes next."""
        self._cancel.set()
        self._cancel = CancelFlag()
        return self._cancel


class _Updates:
    """Gathers events and posts them together: the sooner, the less the loop that keys wait in has to do besides."""

    def __init__(self, post: Callable[[Message], object], clock: Callable[[], float]) -> None:
        self._post = post
        self._clock = clock
        self._keeper = FigureKeeper(clock)
        self._between = UPDATE_S
        self._posted = clock() - UPDATE_S
        self._due = clock()
        self._later: asyncio.TimerHandle | None = None

    def take(self, event: EngineEvent) -> None:
        self._keeper.take(event)
        if self._later is None:
            now = self._clock()
            self._due = max(now, self._posted + self._between)
            self._later = asyncio.get_running_loop().call_later(self._due - now, self._on_time)

    def _on_time(self) -> None:
        late = self._clock() - self._due
        self._between = min(max(UPDATE_S, _LATE * late), SLOWEST_UPDATE_S)
        self.flush()

    def flush(self) -> None:
        self.close()
        self._posted = self._clock()
        self._post(EditProgress(self._keeper.figures(), self._keeper.lines()))

    def close(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
