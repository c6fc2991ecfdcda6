"""`redraft serve`: options in, the server run until it is asked to stop, exit code out.

The server is `editor_engine.server`. Invariant: with `--json`, stdout carries JSON lines only, a `start` with the
addresses as soon as a client may connect, and a `result` at the end, also after a failure; talk goes to stderr.
"""

import math
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.errors import (
    EngineUnreachableError,
    ExitCode,
    InterruptedByUserError,
    MemoryLimitError,
    UsageError,
)
from app.json_events import JsonWriter, ending_in_a_result
from app.load_flags import load_flags
from app.load_options import Given, LoadOptions
from app.paths import logs_dir, private_dir, shown
from app.settings import engine_key, load_settings
from editor_engine.errors import EngineError

if TYPE_CHECKING:  # FastAPI and the engine cost 0.8 s that `--help` must not pay
    from editor_engine.config import EngineConfig
    from editor_engine.server.dispatcher import Progress, ServedEngine
    from editor_engine.server.options import ServeOptions
    from editor_engine.server.run import Listening
    from editor_engine.store.installed import LocatedModel

MEGABYTE = 1 << 20


class Seconds(click.FloatRange):
    """A range that `nan` is outside of; every comparison with it is false, so click lets it pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a time.", param, ctx)
        return seconds


@click.command()
@click.option("--socket", type=click.Path(), metavar="PATH", help="Unix socket; by default one in the runtime folder.")
@click.option("--host", metavar="NAME", help="With --port: the address to listen on; beyond loopback a key is needed.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="TCP port, in place of the socket; 0: any.")
@load_flags()
@click.option("--isa", metavar="NAME", help="Kernel variant, such as avx2; by default the best one here.")
@click.option("--idle-timeout", type=Seconds(1), metavar="S", help="Stop after so many seconds without work.")
@click.option("--queue", type=click.IntRange(0, 10000), default=16, show_default=True, help="Requests that may wait.")
@click.option(
    "--cache-mb",
    type=click.IntRange(0),
    default=512,
    show_default=True,
    help="Memory for other conversations' prompts.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines to stdout.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def serve(
    socket: str | None,
    host: str | None,
    port: int | None,
    load: Given,
    isa: str | None,
    idle_timeout: float | None,
    queue: int,
    cache_mb: int,
    as_json: bool,
    quiet: bool,
) -> int:
    """Serve the engine to OpenAI-compatible clients, until ctrl-C, SIGTERM or the idle limit.

    Without --port it listens on a unix socket that only you can use. Over TCP, clients show the key that
    REDRAFT_ENGINE_KEY holds here as bearer token; without it, only this machine is listened to.
    """
    from editor_engine.config import socket_path
    from editor_engine.server.options import Limits, ServeOptions

    lines = JsonWriter(sys.stdout) if as_json else None
    with ending_in_a_result(lines):
        if socket == "":
            raise UsageError("--socket wants the path of a socket; it was given an empty one.")
        if host is not None and port is None:
            raise UsageError("--host is for TCP, so it needs --port.")
        options = ServeOptions(
            socket=Path(socket).absolute() if socket else (socket_path() if port is None else None),
            host=host or "127.0.0.1",
            port=port,
            key=engine_key(),  # a command line is for everybody to see
            idle_s=idle_timeout,
            limits=Limits(queue=queue),
        )
        find = partial(_find, load_settings().load.over(load), isa, cache_mb * MEGABYTE)
        _serve(options, find, lines, quiet)
    if lines:
        lines.result(outcome="unchanged", exit_code=ExitCode.OK)
    return ExitCode.OK


def _find(load: LoadOptions, isa: str | None, prefix_bytes: int) -> "tuple[EngineConfig, LocatedModel]":
    """What is loaded, and the model as clients see it. Raises EngineErrors."""
    from app.clients.in_process import locate_models

    config, located = locate_models(load)
    return replace(config, isa=isa, prefix_bytes=prefix_bytes), located


def _serve(
    options: "ServeOptions",
    find: "Callable[[], tuple[EngineConfig, LocatedModel]]",
    lines: JsonWriter | None,
    quiet: bool,
) -> None:
    """Raises AppError when it cannot begin, and when ctrl-C ended it."""
    from app.clients.in_process import app_error
    from editor_engine.engine import Engine
    from editor_engine.server.listen import KeyNeededError, ListenError
    from editor_engine.server.run import Ending, Hosting, serve

    def say(words: str) -> None:
        if not quiet:
            click.echo(f"redraft: {words}", err=True)

    def on_listening(listening: "Listening") -> None:
        places = listening.places
        say(f"listening on {', '.join(map(shown, places))}; loading {located.id}.")
        if lines:
            known = {"id": located.id, "sha256": located.sha256}
            lines.write("start", version=_version(), model=known, listening=places, pid=os.getpid())

    def on_ready(engine: "ServedEngine") -> None:
        for note in engine.notes:
            say(note)
        info = engine.info
        where = f"{info.device} ({info.isa}), {info.threads} threads"
        say(f"ready: {located.id} on {where}, context {info.context_length} tokens.")

    try:
        config, located = find()
        if located.choice is not None:
            say(located.choice)

        def load(progress: "Progress") -> "ServedEngine":
            return Engine.load(config, progress)

        log = private_dir(logs_dir()) / "serve.log"
        ending = serve(options, Hosting(located.id, load, log, on_listening, on_ready))
    except KeyNeededError as error:
        raise UsageError(str(error)) from error
    except ListenError as error:
        raise EngineUnreachableError(str(error)) from error
    except EngineError as error:
        raise app_error(error) from error
    except MemoryError as error:
        raise MemoryLimitError("The memory of this machine does not suffice for this model.") from error
    if ending is Ending.INTERRUPTED:
        raise InterruptedByUserError("Interrupted; the server has stopped.")
    say("stopped." if ending is Ending.TERMINATED else "stopped: nobody asked for anything any more.")


def _version() -> str:
    from importlib.metadata import version

    return version("redraft")
