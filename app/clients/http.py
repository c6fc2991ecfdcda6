"""Any OpenAI-compatible server as an engine, `redraft serve` among them, over TCP or a unix socket.

    recognise the server -> count, or estimate -> stream the reply -> events

Knows what an engine owes its caller; dialects are `servers`, the wire is `exchange`, chunks are `chat_events`.
Invariants: a request is tried again only before its first token; a prompt that the server cut fails the run; a request
that is left or cancelled is closed, which is what stops a server.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from importlib.metadata import version
from typing import Any

from app.clients.chat_events import ChatEvents
from app.clients.exchange import Exchange, LostError, Patience, RefusedError, StoppedError
from app.clients.identity import description_of
from app.clients.in_process import app_error
from app.clients.place import Place
from app.clients.server_words import Refusal, refusal_in_stream
from app.clients.servers import Kind, Server, chat_body, counted, recognise
from app.clients.spec_counters import SpecCounters, read_counters
from app.clients.token_estimate import estimate_tokens, least_tokens
from app.engine_client import EngineDescription, TokenCounts
from app.errors import AppError, EngineUnreachableError, FileTooLongError, ModelError
from app.settings import engine_key
from editor_engine.errors import EngineError
from editor_engine.events import EngineEvent, Finished, FinishReason, Started, Stats, Text
from editor_engine.requests import CancelFlag, CompletionRequest
from editor_engine.wire import error_from_json, event_from_json

PAUSES_S = (0.5, 2.0, 8.0)
"""Before the second try and those after it, unless the server says how long to wait."""

LONGEST_WAIT_S = 60.0
"""A server that asks for more is believed, and the user told."""

_KEEP_PROMPTS = (Kind.VLLM, Kind.SGLANG, Kind.LLAMA)
"""Where a request for one token leaves the prompt in a cache, and costs nothing but time."""

_STREAM_OPTIONS = {Kind.VLLM: {"include_usage": True, "continuous_usage_stats": True}}
"""Figures in every chunk, so that a reply which is left at its anchor has some."""

Pause = Callable[[float], Awaitable[object]]


class HttpClient:
    """An `EngineClient` over a server."""

    def __init__(
        self,
        exchange: Exchange,
        model: str | None = None,
        *,
        pause: Pause = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`model` as the server names it; None takes the only one it has."""
        self._exchange = exchange
        self._model = model
        self._pause = pause
        self._clock = clock
        self._server: Server | None = None
        self._takes_predictions = True

    async def describe(self) -> EngineDescription:
        server = await self._known()
        place = self._exchange.place
        notes = []
        if self._exchange.key and place.in_the_open:
            notes.append(f"The key is sent to {place.shown} unencrypted; https would hide it.")
        if server.identity is not None:
            if server.identity.version != version("redraft"):
                notes.append(f"The server runs Redraft {server.identity.version}, this is {version('redraft')}.")
            return description_of(server.identity, f"redraft serve at {place.shown}", tuple(notes))
        if not server.capabilities.tokenise:
            notes.append("This engine does not count tokens for us; counts are estimates.")
        return EngineDescription(
            model_id=server.model,
            sha256=None,
            device=None,
            threads=None,
            exactness="not guaranteed",
            policy=None,
            context_length=server.context,
            notes=tuple(notes),
            capabilities=server.capabilities,
            reached=f"{server.kind} at {place.shown}",
        )

    async def count(self, request: CompletionRequest) -> TokenCounts:
        server = await self._known()
        counts = None
        if server.capabilities.tokenise:
            with suppress(RefusedError):  # a server may have its tokeniser switched off: the estimate remains
                counts = await counted(self._exchange, server, request)
        if counts is not None:
            return TokenCounts(*counts)
        return TokenCounts(estimate_tokens(_prompt_text(request)), estimate_tokens(request.source), estimated=True)

    async def complete(self, request: CompletionRequest, cancel: CancelFlag) -> AsyncGenerator[EngineEvent, None]:
        server = await self._known()
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()

        def halt() -> None:
            loop.call_soon_threadsafe(stop.set)

        with cancel.interrupting(halt):
            stream = self._ours(server, request, stop) if server.identity else self._theirs(server, request, stop)
            async with aclosing(stream) as events:
                async for event in events:
                    yield event

    async def close(self) -> None:
        await self._exchange.close()

    async def _known(self) -> Server:
        if self._server is None:
            try:
                self._server = await recognise(self._exchange, self._model)
            except RefusedError as error:
                raise _app_error(error.refusal) from error
        return self._server

    async def _ours(
        self, server: Server, request: CompletionRequest, stop: asyncio.Event
    ) -> AsyncGenerator[EngineEvent, None]:
        """`redraft serve` passes on its engine's own events."""
        began = self._clock()
        finished = False
        patience = Patience(self._exchange.timeouts.first)
        try:
            async with aclosing(self._chunks(server, request, stop, patience)) as chunks:
                async for chunk in chunks:
                    if "redraft" in chunk:
                        event = _event(chunk["redraft"])
                        if isinstance(event, Text):
                            patience.limit_s, patience.what = self._exchange.timeouts.between, "next token"
                        finished = isinstance(event, Finished)
                        yield event
        except StoppedError:
            # The connection is closed, so the figures of what was done are lost.
            wall = self._clock() - began
            stats = Stats(None, None, None, None, None, None, wall, None, None, None)
            yield Finished(FinishReason.CANCELLED, (), stats)
            return
        if not finished:
            raise EngineUnreachableError(f"{self._exchange.place.shown} ended its answer in the middle.")

    async def _theirs(
        self, server: Server, request: CompletionRequest, stop: asyncio.Event
    ) -> AsyncGenerator[EngineEvent, None]:
        """Another program's chunks, as events of ours."""
        counts = await self.count(request)
        yield Started(counts.prompt, None, counts.source)
        chat = ChatEvents(request, self._clock, opened=server.capabilities.prefill)
        warms = request.max_tokens == 0
        if warms and server.kind not in _KEEP_PROMPTS:
            for event in chat.finish(FinishReason.LENGTH):
                yield event
            return
        least = least_tokens(_prompt_text(request))
        before = await self._counters(server)
        patience = Patience(self._exchange.timeouts.first)
        reason = None
        try:
            async with aclosing(self._chunks(server, request, stop, patience)) as chunks:
                async for chunk in chunks:
                    for event in chat.take(chunk):
                        if not (warms and isinstance(event, Text)):
                            yield event
                    self._refuse_cut(least, chat.usage.prompt)
                    if chat.begun:
                        patience.limit_s, patience.what = self._exchange.timeouts.between, "next token"
                    if chat.over:
                        break  # leaving closes the connection, which stops the server
        except StoppedError:
            reason = FinishReason.CANCELLED
        if reason is None and not warms and chat.unfinished:
            raise EngineUnreachableError(f"The engine at {self._exchange.place.shown} {chat.unfinished}")
        if before is not None and chat.usage.drafted is None and reason is None:
            self._add_drafts(chat, before, await self._counters(server))
        for event in chat.finish(reason):
            yield event

    async def _chunks(
        self, server: Server, request: CompletionRequest, stop: asyncio.Event, patience: Patience
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of the reply, tried again while none has come and there is hope."""
        body = chat_body(server, request)
        body = {**body, "stream": True, "stream_options": _STREAM_OPTIONS.get(server.kind, {"include_usage": True})}
        if not self._takes_predictions:
            body.pop("prediction", None)
        url = f"{self._exchange.place.api}/chat/completions"
        tries = 0
        while True:
            begun = False
            try:
                async with aclosing(self._exchange.events(url, body, stop, patience)) as events:
                    async for chunk in events:
                        if chunk.get("error"):
                            raise self._failed(chunk["error"])
                        begun = True
                        yield chunk
                return
            except (LostError, RefusedError) as error:
                refusal = error.refusal if isinstance(error, RefusedError) else None
                if begun:
                    raise
                if refusal is not None and refusal.status == 400 and "prediction" in body and not refusal.too_long:
                    del body["prediction"]  # not every model takes one, and no server says so beforehand
                    self._takes_predictions = False
                    continue
                if refusal is not None and refusal.status == 400 and "max_completion_tokens" in refusal.sentence:
                    if (
                        most := body.pop("max_tokens", None)
                    ) is not None:  # OpenAI's newer models know the new name only
                        body["max_completion_tokens"] = most
                        continue
                wait = _wait_s(refusal, tries)
                if wait is None:
                    raise _app_error(refusal) if refusal else error from error
            tries += 1
            await self._unless_stopped(stop, wait)

    async def _unless_stopped(self, stop: asyncio.Event, wait_s: float) -> None:
        pause = asyncio.ensure_future(self._pause(wait_s))
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait({pause, stopping}, return_when=asyncio.FIRST_COMPLETED)
        pause.cancel()
        stopping.cancel()
        if stop.is_set():
            raise StoppedError

    def _failed(self, error: object) -> AppError:
        """An error inside a stream: our server's own, or another's."""
        if self._server is not None and self._server.identity is not None:
            return app_error(error_from_json(error))
        return _app_error(refusal_in_stream(self._exchange.place.shown, error, self._exchange.key))

    def _refuse_cut(self, least: int, read: int | None) -> None:
        """Raise when the server read far less than it was sent, as Ollama does without a word."""
        if read is not None and read < least:
            raise FileTooLongError(
                f"The engine at {self._exchange.place.shown} read {read} tokens of a prompt that has {least} at the "
                "least: it cut the prompt to its context. Give it a longer one (Ollama: OLLAMA_CONTEXT_LENGTH)."
            )

    async def _counters(self, server: Server) -> SpecCounters | None:
        if server.kind is not Kind.VLLM:
            return None
        with suppress(AppError):  # figures are a courtesy: their lack is None, not the end of an edit
            return read_counters(await self._exchange.get(f"{self._exchange.place.root}/metrics"))
        return None

    def _add_drafts(self, chat: ChatEvents, before: SpecCounters, after: SpecCounters | None) -> None:
        counts = None if after is None else after.since(before, chat.usage.output)
        if counts is not None:
            chat.with_drafts(*counts)


def http_client(place: Place, model: str | None) -> HttpClient:
    """A client over a place, with the key of the environment, which is the only place a key is taken from."""
    key = None if place.socket else engine_key()  # the socket's mode is its key
    return HttpClient(Exchange(place, key), model)


def _prompt_text(request: CompletionRequest) -> str:
    return "\n".join([*(message.content for message in request.messages), request.prefill])


def _wait_s(refusal: Refusal | None, tries: int) -> float | None:
    """How long to wait before the next try; None when there is to be none."""
    if tries >= len(PAUSES_S) or (refusal is not None and not refusal.passing):
        return None
    asked = None if refusal is None else refusal.wait_s
    wait = PAUSES_S[tries] if asked is None else asked
    return wait if wait <= LONGEST_WAIT_S else None


def _app_error(refusal: Refusal) -> AppError:
    if refusal.too_long:
        return FileTooLongError(refusal.sentence)
    if refusal.no_model:
        return ModelError(refusal.sentence)
    return EngineUnreachableError(refusal.sentence)


def _event(data: object) -> EngineEvent:
    try:
        return event_from_json(data)
    except EngineError as error:
        raise app_error(error) from error
