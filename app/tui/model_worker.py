"""Fetches and verifies models for the screens: one at a time, in the background, told as messages.

The work is `app.model_jobs`. Invariant: what is said last about a pull is how it ended, and a pull
goes on when the screen that began it is left.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

from textual.message import Message

from app.errors import AppError
from app.model_jobs import PullProgress, list_models, pull_model, verify_model
from app.tui.messages import ModelJobDone, ModelsListed, PullMoved


class ModelWorker:
    """The models of this machine."""

    def __init__(self, post: Callable[[Message], object], options: Sequence[str] = ()) -> None:
        """`options` are those of a load, as on the command line: what memory is counted for."""
        self._post = post
        self._options = options
        self._job: asyncio.Task[None] | None = None
        self.busy_with: str | None = None
        """The model that is being fetched or verified."""
        self.progress: PullProgress | None = None
        """Of the pull that runs."""

    async def list_models(self) -> None:
        """Say what there is."""
        try:
            self._post(ModelsListed(await list_models(self._options), None))
        except AppError as error:
            self._post(ModelsListed((), error))

    async def pull(self, model_id: str, *, from_index: bool, accept_licence: bool) -> None:
        """Fetch a model; goes on where an earlier pull was stopped."""

        def moved(progress: PullProgress) -> None:
            self.progress = progress
            self._post(PullMoved(model_id, progress))

        await self._run(
            model_id,
            f"{model_id} is installed and its SHA-256 is right.",
            lambda: pull_model(model_id, moved, from_index=from_index, accept_licence=accept_licence),
        )

    async def verify(self, model_id: str) -> None:
        """Hash a model again."""
        await self._run(model_id, f"{model_id} is right.", lambda: verify_model(model_id))

    def stop(self) -> bool:
        """Stop what runs; False when nothing does."""
        return self._job is not None and self._job.cancel()

    async def _run(self, model_id: str, done: str, work: Callable[[], Coroutine[object, object, None]]) -> None:
        if self._job is not None:
            self._post(ModelJobDone(model_id, f"Wait until {self.busy_with} is done, or stop it.", failed=True))
            return
        self.busy_with, self.progress = model_id, None
        job = self._job = asyncio.ensure_future(work())
        sentence, failed = done, False
        try:
            await asyncio.wait([job])
            job.result()
        except asyncio.CancelledError:
            if not job.cancelled():  # we are told to end, not the job: it must not outlive us
                job.cancel()
                await asyncio.wait([job])
                raise
            sentence, failed = f"{model_id}: stopped; the next pull goes on from here.", True
        except AppError as error:
            sentence, failed = str(error), True
        finally:
            self._job = self.busy_with = self.progress = None
        self._post(ModelJobDone(model_id, sentence, failed=failed))
        await self.list_models()
