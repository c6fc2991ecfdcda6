"""Runs the server from its first socket to its last: listen, load, serve, stop.

    listening sockets -> application behind its guard -> uvicorn, beside the dispatcher that loads and runs the engine

Knows signals and how things end; what is served is `application`. Invariant: however it ends, short of being killed,
the engine is idle, waiting clients were told, and no socket, thread or lock stays behind; but a library that is
loading is left to itself, on a thread named ENGINE_THREAD that whoever ends the process need not wait for.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.metadata import version
from pathlib import Path

import uvicorn

from editor_engine.server.application import Served, application
from editor_engine.server.connection import connection_class
from editor_engine.server.dispatcher import Dispatcher, Job, Progress, ServedEngine
from editor_engine.server.event_log import EventLog, UvicornLines
from editor_engine.server.guard import Guard
from editor_engine.server.listen import listening
from editor_engine.server.metrics import Metrics
from editor_engine.server.options import ServeOptions

FLUSH_S = 5
"""What answers get to leave through their sockets once the engine is idle."""


class Ending(StrEnum):
    """Why a server stopped that was not killed."""

    TERMINATED = "terminated"
    INTERRUPTED = "interrupted"
    IDLE = "idle"


@dataclass(frozen=True)
class Listening:
    """A server that clients can connect to."""

    places: list[str]
    """As `--engine` takes them: `unix:` and the path of the socket, the URL of the TCP address."""
    stop: Callable[[], object]
    """Ask it to stop, as SIGTERM does; from any thread."""


@dataclass(frozen=True)
class Hosting:
    """What is served, and what is told meanwhile."""

    model_id: str
    load: Callable[[Progress], ServedEngine]
    """Runs once, on the engine's thread."""
    log: Path | None
    """File of the log; None keeps none."""
    on_listening: Callable[[Listening], None] = lambda listening: None
    on_ready: Callable[[ServedEngine], None] = lambda engine: None
    """Told of the engine once it is loaded."""


def serve(options: ServeOptions, hosting: Hosting) -> Ending:
    """Serve until it is asked to stop or has been idle too long. Raises EngineError when it cannot begin.

    On the main thread SIGTERM, SIGHUP and SIGINT ask it to stop; a second one does not wait for what runs.
    """
    with listening(options) as sockets, contextlib.closing(EventLog(hosting.log)) as log, _uvicorn_into(log):
        return asyncio.run(_Server(options, hosting, log).run(sockets))


class _Server:
    def __init__(self, options: ServeOptions, hosting: Hosting, log: EventLog) -> None:
        self._options = options
        self._hosting = hosting
        self._log = log
        self._metrics = Metrics()
        self._dispatcher = Dispatcher(
            hosting.load, options.limits, on_ready=self._ready, on_end=self._ended, on_fault=log.fault
        )
        self._metrics.watch(self._dispatcher)
        served = Served(self._dispatcher, self._metrics, hosting.model_id, version("redraft"), int(time.time()))
        self._web = _Uvicorn(_uvicorn_config(Guard(application(served), options, log.fault), options))
        self._ending: Ending | None = None
        self._stop = asyncio.Event()

    async def run(self, sockets: list[socket.socket]) -> Ending:
        """From the first request that may come to the last answer."""
        loop = asyncio.get_running_loop()
        log = self._log  # not `self`: the loop outlives us where something global has one of its events
        loop.set_exception_handler(lambda _, context: log.fault(context.get("exception") or Exception()))
        if threading.current_thread() is threading.main_thread():  # Python lets no other thread have signals
            loop.add_signal_handler(signal.SIGTERM, self._end, Ending.TERMINATED)
            if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup means to outlive the terminal
                loop.add_signal_handler(signal.SIGHUP, self._end, Ending.TERMINATED)
            loop.add_signal_handler(signal.SIGINT, self._end, Ending.INTERRUPTED)
        engine = asyncio.create_task(self._dispatcher.run())
        http = asyncio.create_task(self._web.serve(sockets))
        try:
            await self._web.accepting(http)
            self._log.say("start", model=self._hosting.model_id)
            places = [_address(place) for place in sockets]
            stop = partial(loop.call_soon_threadsafe, self._end, Ending.TERMINATED)
            self._hosting.on_listening(Listening(places, stop))
            await self._until_stopped(engine, http)
        finally:
            self._web.should_exit = True
            await asyncio.wait([http])
            self._dispatcher.close()
        engine.result()  # raises what kept the model from being loaded
        http.result()
        assert self._ending is not None  # neither task ends by itself but with an error
        return self._ending

    async def _until_stopped(self, engine: asyncio.Task[None], http: asyncio.Task[None]) -> None:
        asked = asyncio.create_task(self._stop.wait())
        idle = asyncio.create_task(self._stop_when_idle())
        try:
            await asyncio.wait([asked, engine, http], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            idle.cancel()
        self._log.say("stop", why=self._ending or "failed")
        await self._dispatcher.stop(self._options.limits.grace_s)
        await asyncio.wait([engine])

    async def _stop_when_idle(self) -> None:
        limit = self._options.idle_s
        if limit is None:
            return
        while (left := self._dispatcher.idle_left_s(limit)) > 0:
            await asyncio.sleep(left)
        self._end(Ending.IDLE)

    def _end(self, ending: Ending) -> None:
        if self._ending is not None:  # asked twice: what is on its way is not waited for
            self._dispatcher.cut_running()
            self._web.force_exit = True
        self._ending = self._ending or ending
        self._stop.set()

    def _ready(self, engine: ServedEngine) -> None:
        self._log.say("ready", sha256=engine.info.sha256, threads=engine.info.threads, isa=engine.info.isa)
        self._hosting.on_ready(engine)

    def _ended(self, job: Job) -> None:
        now = time.monotonic()
        self._metrics.ended(job, now)
        stats = job.finished.stats if job.finished else None
        self._log.say(
            "completion",
            outcome=job.outcome,
            waited_s=(job.started_at or now) - job.queued_at,
            ran_s=now - job.started_at if job.started_at else None,
            prompt=stats and stats.prompt_tokens,
            cached=stats and stats.cached_tokens,
            output=stats and stats.output_tokens,
            drafted=stats and stats.drafted,
            accepted=stats and stats.accepted,
            passes=stats and stats.passes,
        )


class _Uvicorn(uvicorn.Server):
    """Uvicorn without its own signal handling, which ends the process by the signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def accepting(self, running: asyncio.Task[None]) -> None:
        """Wait until connections are accepted; raises what kept it from that."""
        while not self.started:
            await asyncio.sleep(0)
            if running.done():
                running.result()


def _uvicorn_config(app: Guard, options: ServeOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=connection_class(options.limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # paths come from outside
        proxy_headers=False,  # they would let a client say where it comes from
        server_header=False,
        limit_concurrency=options.limits.connections,
        timeout_keep_alive=int(options.limits.read_s),
        timeout_graceful_shutdown=FLUSH_S,
    )


@contextlib.contextmanager
def _uvicorn_into(log: EventLog) -> Iterator[None]:
    """Uvicorn logs under a name of the whole process; while we serve, that is this server's log."""
    logger = logging.getLogger("uvicorn.error")
    before = logger.handlers, logger.propagate, logger.level
    logger.handlers, logger.propagate = [UvicornLines(log)], False
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before[:2]
        logger.setLevel(before[2])


def _address(sock: socket.socket) -> str:
    name = sock.getsockname()
    if isinstance(name, str):
        return f"unix:{name}"
    return f"http://[{name[0]}]:{name[1]}" if sock.family is socket.AF_INET6 else f"http://{name[0]}:{name[1]}"
