"""The process that `app.clients.child` starts: one engine, orders from stdin, answers to stdout, JSON line by line.

    in    {"id": 3, "do": "describe" | "count" | "complete" | "cancel", "request": {...}, "cancelled": false}
    out   {"id": 3, "identity": {...}} | {"id": 3, "counts": [prompt, source]} | {"id": 3, "event": {...}} ...
          {"id": 3, "done": true} | {"id": 3, "error": {...}} | {"note": "a sentence"}

Orders are answered one after the other; a cancel is heeded at once, whatever runs. Knows nothing of who asks.
Invariant: when stdin ends, because the parent closed it or died, this process ends within `LEAVE_S`, and at once while
it loads; nothing but answers reaches its stdout, no source text its log.
"""

import ctypes
import faulthandler
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO

from app.clients.in_process import NO_MEMORY, load_engine
from app.load_options import LoadOptions
from editor_engine.errors import CancelledError, EngineError, OutOfMemoryError, ProtocolError
from editor_engine.requests import CancelFlag
from editor_engine.wire import error_to_json, event_to_json, identity_of, identity_to_json, request_from_json

if TYPE_CHECKING:  # editor_engine.engine brings numpy and the native core: 0.15 s before the first word to the parent
    from editor_engine.engine import Engine

NICENESS = 5
"""Below the terminal that shows what this process says."""

LEAVE_S = 1.0
"""What the running pass may take after the parent has gone."""

_PR_SET_PDEATHSIG = 1

log = logging.getLogger(__name__)

OnPacked = Callable[[int, int], None]
"""Told (done, total) while weights are packed."""

Load = Callable[[OnPacked], "tuple[Engine, str]"]
"""Gives the engine and the id its model goes by; raises EngineErrors."""


class EngineProcess:
    """Answers orders from one stream on another, with an engine that is loaded at the first of them."""

    def __init__(self, load: Load, orders: BinaryIO, answers: BinaryIO) -> None:
        self._load = load
        self._loaded: tuple[Engine, str] | None = None
        self._lines = orders
        self._answers = answers
        self._orders: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._flags: dict[int, CancelFlag] = {}
        self._packing = self._leaving = False

    def run(self) -> None:
        """Answer until the orders end; whatever runs then is cancelled."""
        threading.Thread(target=self._read, name="orders", daemon=True).start()
        try:
            while (order := self._orders.get()) is not None:
                self._answer(order)
        except BrokenPipeError:
            log.info("the parent does not listen any more")

    def _read(self) -> None:
        """Sort the orders: work is queued, a cancel is done now."""
        try:
            for line in self._lines:
                order = json.loads(line)
                number = int(order["id"])
                if order["do"] != "cancel":
                    self._flags[number] = CancelFlag()
                    if order.get("cancelled") is True:
                        self._flags[number].set()
                    self._orders.put(order)
                elif flag := self._flags.get(number):
                    flag.set()
        except (ValueError, KeyError, TypeError, OSError) as error:
            log.error("an order cannot be read (%s); leaving", type(error).__name__)
        self._leaving = True
        for flag in tuple(self._flags.values()):
            flag.set()
        self._orders.put(None)
        if self._loaded is None and not self._packing:  # libraries take a load to its end, seconds or minutes
            os._exit(0)
        time.sleep(LEAVE_S)  # this thread's last act: should the engine not come to an end, the process does
        os._exit(0)

    def _answer(self, order: dict[str, Any]) -> None:
        number = int(order["id"])
        try:
            for answer in self._work(order, self._flags[number]):
                self._say(id=number, **answer)
        except EngineError as error:
            self._say(id=number, error=error_to_json(error))
        except MemoryError:
            self._say(id=number, error=error_to_json(OutOfMemoryError(NO_MEMORY)))
        except BrokenPipeError:
            raise
        except Exception as error:
            # The log gets no message: it may quote the user's file.
            log.error("%s at\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))
            sentence = f"An internal error of the engine, {type(error).__name__}: {error}."
            self._say(id=number, error=error_to_json(EngineError(sentence)))
        finally:
            del self._flags[number]

    def _work(self, order: dict[str, Any], cancel: CancelFlag) -> Iterator[dict[str, Any]]:
        engine, model_id = self._engine()
        if order["do"] == "describe":
            yield {"identity": identity_to_json(identity_of(engine.info, engine.notes, model_id, engine.choice))}
            return
        request = request_from_json(order.get("request"))
        if order["do"] == "count":
            yield {"counts": engine.count(request)}
        elif order["do"] == "complete":
            for event in engine.complete(request, cancel):
                yield {"event": event_to_json(event)}
            yield {"done": True}
        else:
            raise ProtocolError("The engine's process was given an order it does not know.")

    def _engine(self) -> "tuple[Engine, str]":
        if self._loaded is None:
            started = time.monotonic()
            self._say(note="Loading the model.")
            self._loaded = self._load(self._packed)
            seconds = time.monotonic() - started
            log.info("loaded %s in %.1f s", self._loaded[1], seconds)
            self._say(note=f"{self._loaded[1]} is loaded ({seconds:.1f} s).")
        return self._loaded

    def _packed(self, done: int, total: int) -> None:
        """A note for every tenth of the work; when the parent has gone, the work is left and leaves nothing."""
        self._packing = True
        if self._leaving:
            raise CancelledError("The parent has gone.")
        tenth = 10 * done // total
        if done and tenth != 10 * (done - 1) // total:
            self._say(note=f"Packing the weights, once for this model: {10 * tenth} %.")

    def _say(self, **answer: object) -> None:
        self._answers.write(json.dumps(answer).encode("ascii") + b"\n")
        self._answers.flush()


def run_process(load: Load, parent: int) -> None:
    """Be the engine's process of `parent` (a process id) until it closes our stdin. Does not return."""
    faulthandler.enable()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    _die_with(parent)
    with suppress(OSError):
        os.nice(NICENESS)
    # Our two pipes under numbers that no library knows: a stray print, ours or a library's, lands in the log.
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    EngineProcess(load, orders, answers).run()
    logging.shutdown()
    os._exit(0)  # the thread that reads orders is blocked in a read, which Python would wait for


def _die_with(parent: int) -> None:
    """On Linux the kernel ends us when the parent's thread that started us ends; elsewhere the end of stdin does."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before it could be said
        os._exit(0)


def main(arguments: Sequence[str]) -> None:
    """`python -m app.clients.engine_process PARENT OPTIONS`, the options as JSON."""
    parent, options = arguments
    run_process(lambda packed: load_engine(LoadOptions.from_json(options), packed), int(parent))


if __name__ == "__main__":
    main(sys.argv[1:])
