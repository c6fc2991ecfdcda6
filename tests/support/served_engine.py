"""A server over an engine without weights, run in a thread, and the clients that talk to it.

The engine says the last message back, word by word. Knows the server's own options and nothing of what is tested.
Invariant: the engine refuses to run two requests at once, and a server that was left has no thread of its own any more.
"""

import contextlib
import dataclasses
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2

from editor_engine.errors import EngineError
from editor_engine.events import (
    EngineEvent,
    Finished,
    FinishReason,
    Pass,
    Prefill,
    Provenance,
    Span,
    Started,
    Stats,
    Text,
)
from editor_engine.models.target import ModelInfo
from editor_engine.requests import CancelFlag, CompletionRequest
from editor_engine.server.dispatcher import Progress, ServedEngine
from editor_engine.server.options import Limits, ServeOptions
from editor_engine.server.run import Ending, Hosting, Listening, serve

MODEL = "echo"
PATIENCE_S = 30
"""A hung test fails; none waits this long."""


class EchoEngine:
    """Says the last message back; every word is a token. Waits before word `hold_at` until released or cancelled."""

    notes = ("a note",)
    info = ModelInfo("echo", "echo", "e" * 64, 64, 4096, "cpu", 1, "scalar", 1)

    def __init__(self, hold_at: int | None = None) -> None:
        self.hold_at = hold_at
        """0 waits in the prefill; None: never."""
        self.held = threading.Event()
        """A request waits."""
        self.release = threading.Event()
        self.asked: list[str] = []
        """Last messages, in the order in which they ran."""
        self.requests: list[CompletionRequest] = []
        self.cancelled: list[str] = []
        self.failure: BaseException | None = None
        """Raised by the next request, in place of its first word."""
        self._running = threading.Lock()

    def count(self, request: CompletionRequest) -> tuple[int, int]:
        return sum(len(message.content.split()) for message in request.messages), len(request.source.split())

    def complete(self, request: CompletionRequest, cancel: CancelFlag | None = None) -> Iterator[EngineEvent]:
        assert self._running.acquire(blocking=False), "two requests at once"
        try:
            yield from self._complete(request, cancel or CancelFlag())
        finally:
            self._running.release()

    def _complete(self, request: CompletionRequest, cancel: CancelFlag) -> Iterator[EngineEvent]:
        said = request.messages[-1].content
        self.asked.append(said)
        self.requests.append(request)
        prompt, source = self.count(request)
        yield Started(prompt, 0, source)
        yield Prefill(0, prompt)
        words = [word + " " for word in said.split()][: request.max_tokens]
        emitted = 0
        for at, word in enumerate([*words, ""]):
            if at == self.hold_at:
                self._wait(cancel)
            if self.failure is not None:
                failure, self.failure = self.failure, None
                raise failure
            if cancel.is_set():
                self.cancelled.append(said)
                break
            if word:
                emitted += 1
                yield Pass(1, 0, 0, 1, None, None, 0.5)
                yield Text(word, (Span(len(word), Provenance.GENERATED, None),))
        reason = FinishReason.LENGTH if emitted == request.max_tokens else FinishReason.STOP
        if cancel.is_set():
            reason = FinishReason.CANCELLED
        provenance = {Provenance.GENERATED: emitted}
        stats = Stats(prompt, 0, emitted, 0.1, 100.0, 50.0, 0.2, emitted, 0, 0, by_provenance=provenance)
        yield Finished(reason, tuple(range(emitted)), stats)

    def _wait(self, cancel: CancelFlag) -> None:
        self.held.set()
        with cancel.interrupting(self.release.set):
            assert self.release.wait(PATIENCE_S)
        self.release.clear()
        self.held.clear()


class LiveServer:
    """A server that listens."""

    def __init__(self, listening: Listening, options: ServeOptions, thread: threading.Thread) -> None:
        self.thread = thread
        self.places = listening.places
        self.stop = listening.stop
        self.options = options
        self.ending: Ending | BaseException | None = None
        """How it ended; None while it runs."""

    @property
    def url(self) -> str:
        """Of its TCP address."""
        return next(place for place in self.places if place.startswith("http"))

    def client(self, **more: Any) -> httpx2.Client:
        """A client over the unix socket where there is one, else over TCP."""
        socket = self.options.socket
        transport = None if socket is None else httpx2.HTTPTransport(uds=str(socket))
        base = self.url if socket is None else "http://localhost"
        return httpx2.Client(base_url=base, transport=transport, timeout=PATIENCE_S, trust_env=False, **more)


@contextlib.contextmanager
def live_server(
    engine: ServedEngine | Callable[[Progress], ServedEngine],
    options: ServeOptions,
    *,
    log: Path | None = None,
    ready: bool = True,
) -> Iterator[LiveServer]:
    """Serve in a thread; `ready` waits until the engine is loaded. Leaving stops the server and waits for its end."""
    listening: list[Listening] = []
    known, loaded = threading.Event(), threading.Event()

    def heard(what: Listening) -> None:
        listening.append(what)
        known.set()

    load = engine if callable(engine) else lambda progress: engine
    hosting = Hosting(MODEL, load, log, heard, lambda engine: loaded.set())
    ended: list[Ending | BaseException] = []

    def run() -> None:
        try:
            ended.append(serve(options, hosting))
        except BaseException as error:  # whoever waits must know
            ended.append(error)
        known.set()
        loaded.set()

    thread = threading.Thread(target=run, name="server")
    thread.start()
    try:
        assert known.wait(PATIENCE_S)
        if not listening:
            thread.join(PATIENCE_S)
            raise _as_error(ended[0])
        server = LiveServer(listening[0], options, thread)
        if ready:
            assert loaded.wait(PATIENCE_S)
        yield server
    finally:
        if listening and not ended:
            with contextlib.suppress(RuntimeError):  # its loop has ended by itself
                listening[0].stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the server did not stop"
    server.ending = ended[0]


def _as_error(ended: Ending | BaseException) -> BaseException:
    return ended if isinstance(ended, BaseException) else EngineError(f"The server ended: {ended}.")


def tcp(**limits: Any) -> ServeOptions:
    """A free port of loopback."""
    return ServeOptions(port=0, limits=dataclasses.replace(Limits(grace_s=1.0), **limits))


def chat(text: str, **more: object) -> dict[str, Any]:
    """The body of a completion that asks for `text`."""
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **more}


def data_of(lines: Iterator[str]) -> list[dict[str, Any]]:
    """The objects of a stream of server-sent events; the stream must end as OpenAI's do."""
    data = [line.removeprefix("data: ") for line in lines if line]
    assert data.pop() == "[DONE]"
    return [json.loads(item) for item in data]
