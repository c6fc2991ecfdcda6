"""Has the engine: loads it, lets it read, and gives it to one run after the other.

A run is `app.tui.edit_run`, imported by the first: 60 ms that the first picture need not wait for. Widgets never touch
the engine. Invariant: one call at a time has the engine, the newest; what it interrupts has stopped before it begins.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from textual.message import Message

from app.engine_client import EngineClient
from app.errors import AppError
from app.rates import last_rates
from app.tui.messages import Counted, EngineFailed, EngineReady, Warmed
from editor_engine.events import Prefill
from editor_engine.requests import CancelFlag

if TYPE_CHECKING:
    from app.editing.diff import Hunk
    from app.editing.document import Document
    from app.editing.pipeline import EditOrder, EditPlan
    from app.tui.edit_run import Planning

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

    async def warm(self, document: "Document") -> None:
        """Count the file's tokens and read it, so that the first token follows the instruction at once."""
        cancel = self._begin()
        try:
            async with self._turn:
                if cancel.is_set():
                    return
                from app.editing.warm import warm_request  # by now the engine is loaded, and the file on the screen

                request = warm_request(document)
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

    async def edit(self, document: "Document", order: "EditOrder") -> None:
        """One edit, from the order to a proposal or a sentence."""
        from app.tui.edit_run import edit_of

        await self._run(edit_of(document, order))

    async def go_on(self, plan: "EditPlan", text: str) -> None:
        """Go on with a reply that ended too early; `text` is all it said."""
        from app.tui.edit_run import going_on

        await self._run(going_on(plan, text))

    async def redo(self, plan: "EditPlan", hunk: "Hunk", note: str) -> None:
        """Do one hunk of what the plan led to anew, as the note says."""
        from app.tui.edit_run import doing_anew

        await self._run(doing_anew(plan, hunk, note))

    async def _run(self, planning: "Planning") -> None:
        from app.tui.edit_run import run

        await run(planning, self._client, self._begin(), self._turn, self._post, self._clock)

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
