"""One run of an edit, told to the workspace as messages, at most a dozen of them a second.

The half of `app.tui.edit_worker` that needs the whole edit; the edit itself is `app.editing.pipeline`. Invariant: a run
ends with one message, EditProposed or EditFailed, after the last of its progress.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from textual.message import Message

from app.editing.again import continue_plan, redo_order
from app.editing.diff import Hunk
from app.editing.document import Document
from app.editing.figures import FigureKeeper
from app.editing.pipeline import EditOrder, EditPlan, Proposal, Replied, live_diff, plan_edit, run_edit
from app.engine_client import EngineClient
from app.errors import AppError
from app.rates import last_rates, remember_rates
from app.tui.messages import EditFailed, EditPlanned, EditProgress, EditProposed
from editor_engine.events import EngineEvent, Finished, Stats
from editor_engine.requests import CancelFlag

UPDATE_S = 1 / 12
"""Least time between two updates: more is not seen, and costs the keyboard. On two processors that the engine was
using, one key in a hundred waited 53 to 68 ms at 15 a second, 41 to 47 ms at 12 (`redraft bench ui`)."""
SLOWEST_UPDATE_S = 0.5
"""Most time between two, on a machine that is too busy for more."""
_LATE = 4
"""An update that came late waited for the processor, as keys do: the next one waits so many times longer still."""

Planning = Callable[[EngineClient], Awaitable[EditPlan]]
"""How a run comes to its plan."""


def edit_of(document: Document, order: EditOrder) -> Planning:
    """One edit, from the order."""
    return lambda client: plan_edit(document, order, client)


def going_on(plan: EditPlan, text: str) -> Planning:
    """Go on with a reply that ended too early; `text` is all it said."""
    return lambda client: continue_plan(plan, text, client)


def doing_anew(plan: EditPlan, hunk: Hunk, note: str) -> Planning:
    """Do one hunk of what the plan led to anew, as the note says."""

    async def planned(client: EngineClient) -> EditPlan:
        return await plan_edit(plan.document, redo_order(plan, hunk, note), client)

    return planned


async def run(
    planning: Planning,
    client: EngineClient,
    cancel: CancelFlag,
    turn: asyncio.Lock,
    post: Callable[[Message], object],
    clock: Callable[[], float],
) -> None:
    """Wait for the engine's turn, and run to a proposal or a sentence."""
    stats: Stats | None = None
    updates = _Updates(post, clock)
    try:
        async with turn:
            plan = await planning(client)
            rates, live = last_rates(plan.engine), live_diff(plan)
            post(EditPlanned(plan, live, None if rates is None else rates.seconds(plan.budget)))
            async with aclosing(run_edit(plan, client, cancel, live)) as events:
                async for event in events:
                    if isinstance(event, Replied):
                        updates.flush()
                        remember_rates(plan.engine, event.stats)
                    elif isinstance(event, Proposal):
                        post(EditProposed(event))
                    elif isinstance(event, EngineEvent):
                        stats = event.stats if isinstance(event, Finished) else stats
                        updates.take(event)
    except AppError as error:
        updates.flush()
        post(EditFailed(error, stats))
    finally:
        updates.close()


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
