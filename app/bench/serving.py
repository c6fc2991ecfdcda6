"""Workload `server`: what `redraft serve` costs over the engine in this process, and how quick it is to answer.

    start      -> a server process of its own, from its start to ready, several times
    overhead   -> the same reply in this process and through the server, in turns: A B A B
    health     -> how often /health answers while a reply is decoded
    cancel     -> how long after a client has gone the engine is idle, in the prefill and while it decodes

Knows the command line and the protocol, nothing of the model. Invariant: both sides give the same token ids, or there
are no figures.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import httpx2

from app.clients.servers import Kind, Server, chat_body
from app.errors import DifferenceError, EngineUnreachableError
from app.json_process import COMMAND
from editor_engine.bench.measure import Spread
from editor_engine.events import EngineEvent, Finished, Pass, Prefill, Text
from editor_engine.requests import CompletionRequest
from editor_engine.wire import event_from_json

PATIENCE_S = 600.0
"""A server that says nothing for so long is given up."""
IDLE_S = 120
"""A server whose benchmark was killed ends by itself after so many seconds."""

Clock = Callable[[], float]
Complete = Callable[[CompletionRequest], Iterable[EngineEvent]]


@dataclass(frozen=True)
class ServerFigures:
    """What was measured; every figure with its runs."""

    start_to_listening_s: Spread
    """From the start of the process until a client can connect."""
    start_to_ready_s: Spread
    """Until the model is loaded, its packed weights being on disk."""
    in_process_ms: Spread
    """Wall time of a pass of plain decoding, in this process."""
    served_ms: Spread
    """The same reply as its client sees it, through the unix socket."""
    overhead_ms: Spread
    """The difference of neighbours in time. It holds everything, the noise of the machine too."""
    outside_in_process_ms: Spread
    """What of a pass's wall time the model's passes do not account for: events made and taken."""
    outside_served_ms: Spread
    """The same for the client of the server: events made, encoded, sent, read and decoded."""
    overhead_share: Spread
    """The difference of those two over the served wall time: the server's share of decoding, run by run."""
    health_per_s: Spread
    """Answers of /health to one client while a reply is decoded."""
    watched_ms: Spread
    """Wall time of a pass meanwhile."""
    cancel_in_prefill_ms: Spread
    """From the client's leaving until the engine is idle, as /health says."""
    cancel_in_decode_ms: Spread

    def table(self) -> str:
        """For people: one line a figure."""
        digits = {"overhead_share": 4, "health_per_s": 0}
        spreads = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return "\n".join(f"{name:<24}{spread.words(digits.get(name, 2)):>28}" for name, spread in spreads)

    def fields(self) -> dict[str, object]:
        """For programs."""
        return {field.name: getattr(self, field.name).fields() for field in fields(self)}


def measure_server(
    arguments: list[str],
    in_process: Complete,
    reply: CompletionRequest,
    long_prompt: Callable[[int], CompletionRequest],
    folder: Path,
    repeats: int,
    clock: Clock,
    progress: Callable[[str], None],
) -> ServerFigures:
    """Run all of it. `arguments` choose the model; `reply` is decoded plainly, `long_prompt` takes a while to prefill
    and begins differently for every number.

    `folder` is ours alone and takes the socket. Raises EngineUnreachableError when the server does not start,
    DifferenceError when it gives other tokens.
    """
    listening, ready = [], []
    for run in range(repeats):
        progress(f"start {run + 1} of {repeats}")
        with _server(arguments, folder, clock) as server:
            listening.append(server.listening_s)
            ready.append(server.ready_s)
    with _server(arguments, folder, clock) as server:
        pairs: list[tuple[_Paced, _Paced]] = []
        for run in range(repeats):
            progress(f"overhead {run + 1} of {repeats}")
            here, served = _paced(in_process(reply), clock), _paced(server.complete(reply), clock)
            if here.token_ids != served.token_ids:
                raise DifferenceError("The server gave other tokens than the engine in this process.")
            pairs.append((here, served))
        health, watched = [], []
        for run in range(repeats):
            progress(f"health {run + 1} of {repeats}")
            rate, paced = server.health_rate(reply, clock)
            health.append(rate)
            watched.append(paced.pass_ms)
        prefill, decode = [], []
        for run in range(repeats):
            progress(f"cancel {run + 1} of {repeats}")
            prefill.append(server.leave_at(long_prompt(run), Prefill, run, clock))
            decode.append(server.leave_at(reply, Pass, run, clock))
    return ServerFigures(
        start_to_listening_s=Spread(tuple(listening)),
        start_to_ready_s=Spread(tuple(ready)),
        in_process_ms=Spread(tuple(here.pass_ms for here, _ in pairs)),
        served_ms=Spread(tuple(served.pass_ms for _, served in pairs)),
        overhead_ms=Spread(tuple(served.pass_ms - here.pass_ms for here, served in pairs)),
        outside_in_process_ms=Spread(tuple(here.outside_ms for here, _ in pairs)),
        outside_served_ms=Spread(tuple(served.outside_ms for _, served in pairs)),
        overhead_share=Spread(tuple((served.outside_ms - here.outside_ms) / served.pass_ms for here, served in pairs)),
        health_per_s=Spread(tuple(health)),
        watched_ms=Spread(tuple(watched)),
        cancel_in_prefill_ms=Spread(tuple(prefill)),
        cancel_in_decode_ms=Spread(tuple(decode)),
    )


@dataclass(frozen=True)
class _Paced:
    pass_ms: float
    """Wall time a pass, from the first text to the end."""
    outside_ms: float
    """What of it the passes' own times leave."""
    token_ids: tuple[int, ...]


def _paced(events: Iterable[EngineEvent], clock: Clock) -> _Paced:
    began: float | None = None
    inside_ms = 0.0
    for event in events:
        if isinstance(event, Text) and began is None:
            began = clock()
        if isinstance(event, Pass):
            inside_ms += event.ms
        if isinstance(event, Finished):
            if began is None or not event.stats.passes:
                raise EngineUnreachableError("The reply has too few tokens to be measured; raise --steps.")
            wall_ms = (clock() - began) * 1000
            return _Paced(wall_ms / event.stats.passes, (wall_ms - inside_ms) / event.stats.passes, event.token_ids)
    raise EngineUnreachableError("The reply ended without its last event.")


class _Server:
    """A running `redraft serve`."""

    def __init__(self, client: httpx2.Client, model: str, listening_s: float, ready_s: float) -> None:
        self._client = client
        self._model = model
        self.listening_s = listening_s
        self.ready_s = ready_s

    def complete(self, request: CompletionRequest) -> Iterator[EngineEvent]:
        """Its events, as they come."""
        body = {**chat_body(Server(Kind.REDRAFT, self._model, None), request), "stream": True}
        with self._client.stream("POST", "/v1/chat/completions", json=body) as answer:
            for line in answer.iter_lines():
                data = line.removeprefix("data: ")
                chunk: dict[str, Any] = json.loads(data) if data and data != "[DONE]" else {}
                if "redraft" in chunk:
                    yield event_from_json(chunk["redraft"])

    def health_rate(self, request: CompletionRequest, clock: Clock) -> tuple[float, _Paced]:
        """(answers of /health per second, the reply) while the request runs."""
        replies: list[_Paced] = []
        running = threading.Thread(target=lambda: replies.append(_paced(self.complete(request), clock)))
        running.start()
        while self.status() != "busy" and running.is_alive():
            pass
        count, began = 0, clock()
        while running.is_alive():
            self.status()
            count += 1
        rate = count / (clock() - began)
        running.join()
        if not replies:
            raise EngineUnreachableError("The reply failed while /health was asked.")
        return rate, replies[0]

    def leave_at(self, request: CompletionRequest, kind: type[EngineEvent], after: int, clock: Clock) -> float:
        """Milliseconds from leaving after some events of this kind until the engine is idle."""
        events = self.complete(request)
        seen = 0
        for event in events:
            seen += isinstance(event, kind)
            if seen > 1 + after % 4:
                break
        left = clock()
        events.close()  # type: ignore[attr-defined]  # it is a generator; its connection is closed with it
        while self.status() == "busy":
            pass
        return (clock() - left) * 1000

    def status(self) -> str:
        """The word of /health."""
        return str(self._client.get("/health").json()["status"])


@contextmanager
def _server(arguments: list[str], folder: Path, clock: Clock) -> Iterator[_Server]:
    socket = folder / "s"
    command = [*COMMAND, "serve", "--json", "--quiet", "--socket", str(socket), *arguments]
    began = clock()
    with subprocess.Popen(
        [*command, "--idle-timeout", str(IDLE_S)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            start = json.loads(process.stdout.readline() or "{}")
            if start.get("type") != "start":
                said = (start.get("error") or {}).get("message", "it ended without a word.")
                raise EngineUnreachableError(f"The server did not start: {said}")
            listening_s = clock() - began
            transport = httpx2.HTTPTransport(uds=str(socket))
            with httpx2.Client(
                base_url="http://localhost", transport=transport, timeout=PATIENCE_S, trust_env=False
            ) as client:
                server = _Server(client, start["model"]["id"], listening_s, 0.0)
                while server.status() == "loading":
                    pass
                server.ready_s = clock() - began
                yield server
        finally:
            process.terminate()
            process.wait()
