"""The engine in this very process: tests, and `edit` when no engine is running.

A worker thread runs the engine's generator and hands each event to the event loop, so ctrl-C and cancel are seen while
a pass is running. Invariant: when the iterator is left, by any way, the engine is idle and reusable.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from app.clients.identity import description_of
from app.engine_client import EngineDescription, TokenCounts
from app.errors import (
    AppError,
    EngineUnreachableError,
    FileTooLongError,
    MemoryLimitError,
    ModelError,
    UsageError,
)
from app.load_options import LoadOptions
from editor_engine.config import ENGINE_THREAD
from editor_engine.errors import (
    ContextOverflowError,
    EngineError,
    FetchError,
    ModelFileError,
    ModelMissingError,
    OptionError,
    OutOfMemoryError,
    UnsupportedModelError,
)
from editor_engine.events import EngineEvent
from editor_engine.requests import CancelFlag, CompletionRequest
from editor_engine.wire import identity_of

if TYPE_CHECKING:  # editor_engine.engine brings numpy and the native core: 0.15 s that `--help` must not pay
    from editor_engine.config import EngineConfig
    from editor_engine.engine import Engine
    from editor_engine.store.installed import LocatedModel

Result = TypeVar("Result")

NO_MEMORY = "The memory of this machine does not suffice for this model and file."

_CAUSES: dict[type[EngineError], type[AppError]] = {
    ModelMissingError: ModelError,
    ModelFileError: ModelError,
    UnsupportedModelError: ModelError,
    FetchError: ModelError,
    OptionError: UsageError,
    OutOfMemoryError: MemoryLimitError,
    ContextOverflowError: FileTooLongError,
}


def app_error(error: EngineError) -> AppError:
    """The application's error for one of the engine's, with the same sentence."""
    for cause, target in _CAUSES.items():
        if isinstance(error, cause):
            return target(str(error))
    return EngineUnreachableError(str(error))


class InProcessClient:
    """An `EngineClient` over an engine that is loaded once, on the worker thread."""

    def __init__(self, load: "Callable[[], tuple[Engine, str]]") -> None:
        """`load` gives the engine and the id its model goes by."""
        self._load = load
        self._loaded: tuple[Engine, str] | None = None
        self._loading = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=ENGINE_THREAD)

    async def _run(self, work: "Callable[[Engine, str], Result]") -> Result:
        def call() -> Result:
            if self._loaded is None:
                self._loading = True
                try:
                    self._loaded = self._load()
                finally:
                    self._loading = False
            return work(*self._loaded)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except EngineError as error:
            raise app_error(error) from error
        except MemoryError as error:
            raise MemoryLimitError(NO_MEMORY) from error

    async def describe(self) -> EngineDescription:
        return await self._run(
            lambda engine, model_id: description_of(
                identity_of(engine.info, engine.notes, model_id, engine.choice), "in this process"
            )
        )

    async def count(self, request: CompletionRequest) -> TokenCounts:
        prompt, source = await self._run(lambda engine, _: engine.count(request))
        return TokenCounts(prompt, source)

    async def complete(self, request: CompletionRequest, cancel: CancelFlag) -> AsyncGenerator[EngineEvent, None]:
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[EngineEvent | None] = asyncio.Queue()

        def work(engine: "Engine", _: str) -> None:
            for event in engine.complete(request, cancel):
                loop.call_soon_threadsafe(events.put_nowait, event)

        running = asyncio.ensure_future(self._run(work))
        running.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await running
        finally:
            if not running.done():  # the consumer left: stop the engine, then wait until it is idle
                cancel.set()
                await asyncio.wait([running])
                running.exception()

    async def close(self) -> None:
        # Libraries take a load to its end, seconds or minutes; `app.start` lets the process end without it.
        self._thread.shutdown(wait=not self._loading, cancel_futures=True)
        self._loaded = None


def load_engine(
    options: LoadOptions, on_packed: Callable[[int, int], None] = lambda done, total: None
) -> "tuple[Engine, str]":
    """Find the models on this machine and load them; returns the engine and the id its model goes by.

    `on_packed` is told (done, total) while weights are packed, which happens once for each file. Raises EngineErrors.
    """
    # The engine brings numpy, the tokenizer library and the native core: 0.2 s that `--help` must not pay.
    from editor_engine.engine import Engine

    config, located = locate_models(options)
    engine = Engine.load(config, on_packed)
    engine.choice = located.choice
    return engine, located.id


def locate_models(options: LoadOptions) -> "tuple[EngineConfig, LocatedModel]":
    """What `load_engine` loads, and its model as the store knows it.

    Raises ModelMissingError, ModelFileError and UnsupportedModelError.
    """
    from editor_engine.store.installed import locate

    located = locate(options.model)
    draft = None if options.draft_model is None else locate(options.draft_model).path
    config = options.config(located.path, draft)
    if located.path.is_dir():  # told apart by a look at its files, which takes no longer than reading their headers
        from editor_engine.models.hf.checkpoint import open_folder

        located = replace(located, sha256=open_folder(located.path, remote_code=config.hf.remote_code).sha256)
    return config, located


def own_client(options: LoadOptions) -> InProcessClient:
    """A client over `load_engine`, called at the client's first call."""
    return InProcessClient(lambda: load_engine(options))
