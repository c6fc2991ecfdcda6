"""The local engine in a child process: the terminal UI and watch keep painting while it computes.

Starts at the first call or by `start`, dies with this process, and is started once more within a call when it crashed
before the call had an answer. Knows the orders of `engine_process`; the pipe itself is `child_pipe`.
Invariant: events and errors are those of the engine in process; when the iterator of `complete` is left, by any way,
the engine is idle or its process is gone.
"""

import asyncio
import itertools
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from app.clients.child_pipe import Answer, ChildPipe, Death, Silence
from app.clients.identity import description_of
from app.clients.in_process import app_error
from app.engine_client import EngineDescription, TokenCounts
from app.errors import AppError, EngineUnreachableError
from app.load_options import LoadOptions
from app.paths import logs_dir, private_dir
from editor_engine.errors import EngineError, ProtocolError
from editor_engine.events import EngineEvent
from editor_engine.requests import CancelFlag, CompletionRequest
from editor_engine.wire import error_from_json, event_from_json, identity_from_json, request_to_json

GRACE_S = 3.0
"""What the process may take to obey before it is ended. A pass takes well under a second."""

SILENCE = Silence()

KEPT_LOGS = 8

_NUMBERS = itertools.count(1)


class _DiedError(Exception):
    """The process ended before the answer did; the text says how."""


class ChildClient:
    """An `EngineClient` over an engine process of its own."""

    def __init__(
        self,
        options: LoadOptions,
        *,
        on_note: Callable[[str], None] = lambda sentence: None,
        command: Sequence[str] = (),
        grace_s: float = GRACE_S,
        silence: Silence = SILENCE,
    ) -> None:
        """`options` as `own_client`. `on_note` hears, on a thread of ours, how loading goes and why a process was
        started again. `command`, `grace_s` and `silence` are for tests.
        """
        # -P: the folder the user works in may have an `app` of its own.
        ours = [sys.executable, "-P", "-m", "app.clients.engine_process", str(os.getpid()), options.to_json()]
        self._command = list(command) or ours
        self._on_note = on_note
        self._grace_s = grace_s
        self._silence = silence
        self._pipe: ChildPipe | None = None
        self._told: ChildPipe | None = None
        """The process whose end has been told."""
        self._notes: list[str] = []
        self._closed = False

    def start(self) -> None:
        """Start the process and let it load, without waiting. Raises EngineUnreachableError when it cannot start."""
        self._running().begin(next(_NUMBERS), {"do": "describe"}, lambda answer: None)

    async def describe(self) -> EngineDescription:
        answer = await self._answer({"do": "describe"})
        try:
            identity = identity_from_json(answer.get("identity"))
        except EngineError as error:
            raise app_error(error) from error
        return description_of(identity, "in a child process", tuple(self._notes))

    async def count(self, request: CompletionRequest) -> TokenCounts:
        answer = await self._answer({"do": "count", "request": request_to_json(request)})
        counts = answer.get("counts")
        if not (isinstance(counts, list) and len(counts) == 2 and all(type(count) is int for count in counts)):
            raise app_error(ProtocolError("The engine's process counted in a way that cannot be read."))
        return TokenCounts(*counts)

    async def complete(self, request: CompletionRequest, cancel: CancelFlag) -> AsyncGenerator[EngineEvent, None]:
        # A flag that is set already travels with the order: a cancel sent after it may find the work begun.
        order = {"do": "complete", "request": request_to_json(request), "cancelled": cancel.is_set()}
        async with aclosing(self._answers(order, cancel)) as answers:
            async for answer in answers:
                if "event" in answer:
                    yield _event(answer["event"])

    async def close(self) -> None:
        self._closed = True
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            await asyncio.to_thread(pipe.end)

    async def _answer(self, order: dict[str, Any]) -> dict[str, Any]:
        async with aclosing(self._answers(order, CancelFlag())) as answers:
            async for answer in answers:
                return answer
        raise EngineUnreachableError("The engine's process ended its answer without giving one.")

    async def _answers(self, order: dict[str, Any], cancel: CancelFlag) -> AsyncGenerator[dict[str, Any], None]:
        """Answers to an order; a process that crashes before the first of them is started once more."""
        heard = False
        for is_last in (False, True):
            try:
                async with aclosing(self._asked(self._running(), order, cancel)) as answers:
                    async for answer in answers:
                        heard = True
                        yield answer
                return
            except _DiedError as died:
                sentence = f"The engine's process stopped: {died}."
                self._told = self._pipe
                if heard or is_last or cancel.is_set() or self._closed:
                    raise EngineUnreachableError(f"{sentence} The next edit starts another one.") from died
                self._note(f"{sentence} It was started again.")

    async def _asked(
        self, pipe: ChildPipe, order: dict[str, Any], cancel: CancelFlag
    ) -> AsyncGenerator[dict[str, Any], None]:
        loop = asyncio.get_running_loop()
        answers: asyncio.Queue[Answer] = asyncio.Queue()
        number = next(_NUMBERS)

        def stop() -> None:
            pipe.cancel(number)
            loop.call_soon_threadsafe(loop.call_later, self._grace_s, give_up)

        def give_up() -> None:
            if not over:
                pipe.kill(f"it did not stop within {self._grace_s:.0f} s when asked to")

        def hear(answer: Answer) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(answers.put_nowait, answer)

        over = False
        pipe.begin(number, order, hear)
        try:
            with cancel.interrupting(stop):
                while not over:
                    answer = await self._next(pipe, answers)
                    over = isinstance(answer, Death) or "event" not in answer
                    yield _checked(answer)
        finally:
            if not over:  # the consumer left: stop the engine, then wait until it is idle or gone
                stop()
                while not over:
                    answer = await answers.get()
                    over = isinstance(answer, Death) or "event" not in answer

    async def _next(self, pipe: ChildPipe, answers: "asyncio.Queue[Answer]") -> Answer:
        """The next answer; a process that hangs is ended, which is an answer, too."""
        while True:
            left_s = pipe.left_s(self._silence)
            with suppress(TimeoutError):
                # After the limit one moment more: we may have been stopped ourselves, with its answers in the pipe.
                return await asyncio.wait_for(answers.get(), max(left_s, self._grace_s))
            if left_s <= 0 and pipe.left_s(self._silence) <= 0:
                pipe.kill("it hung: it said nothing for too long")

    def _running(self) -> ChildPipe:
        if self._closed:
            raise EngineUnreachableError("The engine was closed.")
        if self._pipe is not None and self._pipe.dead is None:
            return self._pipe
        if self._pipe is not None and self._pipe.dead is not None:
            self._pipe.end()  # returns at once
            if self._pipe is not self._told:
                self._note(f"The engine's process stopped: {self._pipe.dead.reason}. It was started again.")
        try:
            self._pipe = ChildPipe(self._command, self._log(), self._on_note, self._grace_s)
        except OSError as error:
            raise EngineUnreachableError(f"The engine's process cannot be started: {error.strerror}.") from error
        return self._pipe

    def _log(self) -> Path | None:
        try:
            folder = private_dir(logs_dir())
            with suppress(FileNotFoundError):  # another front end prunes, too
                _prune(folder.glob("engine-*.log"))
        except (AppError, OSError) as error:
            self._note(f"The engine keeps no log: {error}")
            return None
        return folder / f"engine-{os.getpid()}-{next(_NUMBERS)}.log"

    def _note(self, sentence: str) -> None:
        self._notes.append(sentence)
        self._on_note(sentence)


def _event(data: object) -> EngineEvent:
    try:
        return event_from_json(data)
    except EngineError as error:
        raise app_error(error) from error


def _checked(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, Death):
        raise _DiedError(answer.reason)
    if "error" in answer:
        error = error_from_json(answer["error"])
        raise app_error(error) from error
    return answer


def _prune(logs: Iterable[Path]) -> None:
    """Keep the newest logs, this start's not counted in."""
    for old in sorted(logs, key=lambda path: path.stat().st_mtime)[: -KEPT_LOGS + 1]:
        old.unlink(missing_ok=True)
