"""Ends a watch on a signal, also while it computes: an edit of a file of a megabyte is seconds of diff and checks.

The event loop hears of a signal between two steps, and such a step is one. So the loop is told at once, and what still
computes a moment later is broken off by an error in its midst. Knows nothing of saves or proposals. Invariant: only
code that writes nothing is broken off; a proposal or a file that is being written is finished first.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

from app.errors import InterruptedByUserError
from app.watch.job import asked_of, edit_saved, warm_up

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE_S = 0.3
_AGAIN_S = 0.05
_MAY_BREAK = frozenset(function.__code__ for function in (asked_of, edit_saved, warm_up))


@contextmanager
def ended_by_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    """In the main thread: SIGINT, SIGTERM and SIGHUP call `stop` on the loop, soon after they came."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S, _AGAIN_S)

    def on_alarm(number: int, frame: FrameType | None) -> None:
        if runs_in(frame, _MAY_BREAK):
            stop()  # the loop has had no turn since
            raise InterruptedByUserError("The watch was stopped.")

    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, on_alarm)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def runs_in(frame: FrameType | None, codes: frozenset[CodeType]) -> bool:
    """True when a frame is one of a function of `codes`, or was called by one: what is suspended is not."""
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False
