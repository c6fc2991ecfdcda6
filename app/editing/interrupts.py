"""Ctrl-C and its like: held back while a file is being replaced, and one way out for all of them elsewhere.

Knows nothing of what is being done meanwhile. Invariant: a signal that arrives inside can be asked for by `pending` and
is delivered again at the end; ctrl-C, and what is answered as ctrl-C, is spent, since the work it would have stopped is
done or taken back.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from app.early_signals import ENDING, Noted


class Held:
    """Signals that have arrived since."""

    def __init__(self) -> None:
        self.arrived: list[signal.Signals] = []

    def pending(self) -> bool:
        """True when someone has asked the program to stop."""
        return bool(self.arrived)

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler: only takes down what came."""
        self.arrived.append(signal.Signals(number))


@contextmanager
def interrupts_held() -> Iterator[Held]:
    """Inside, SIGINT, SIGTERM and SIGHUP are noted instead of acted upon.

    Python acts on signals in the main thread only, so elsewhere nothing needs to be held. Signals that are ignored stay
    ignored. At the end the old handlers are back; a SIGTERM or SIGHUP is raised again, unless `ends_as_interrupts` made
    it a ctrl-C.
    """
    held = Held()
    if threading.current_thread() is not threading.main_thread():
        yield held
        return
    replaced = {}
    try:
        for number in ENDING:
            handler = signal.getsignal(number)
            if handler is not None and handler != signal.SIG_IGN:
                replaced[number] = handler
                signal.signal(number, held.note)
        yield held
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
        for arrived in held.arrived:
            if arrived != signal.SIGINT and replaced[arrived] is not _as_ctrl_c:
                signal.raise_signal(arrived)


@contextmanager
def ends_as_interrupts() -> Iterator[Callable[[], None]]:
    """Inside, SIGTERM and SIGHUP are answered as ctrl-C is, so that what must happen at the end does.

    Python acts on signals in the main thread only, so elsewhere this does nothing. Ignored signals stay ignored. Gives
    what raises KeyboardInterrupt where a signal came before there was anyone to answer it (`app.early_signals`).
    """
    before: dict[signal.Signals, Any] = {}

    def raise_earlier() -> None:
        if any(isinstance(handler, Noted) and handler.arrived is not None for handler in before.values()):
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield raise_earlier
        return
    try:
        for number in ENDING:
            handler = signal.getsignal(number)
            if number == signal.SIGINT and not isinstance(handler, Noted):
                continue
            if handler is not None and handler != signal.SIG_IGN:  # nohup
                before[number] = handler
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _as_ctrl_c)
        yield raise_earlier
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _as_ctrl_c(number: int, frame: FrameType | None) -> None:
    """What ctrl-C does at this moment: asyncio, for one, has an answer of its own to it."""
    handler = signal.getsignal(signal.SIGINT)
    # A script's background job ignores ctrl-C, but is to end when it is told to.
    (handler if callable(handler) else signal.default_int_handler)(number, frame)
