"""Signals that come before there is anyone to answer them: noted at first, raised again once a command is there.

To import a command takes some tenths of a second, in which Python answers ctrl-C with a traceback and SIGTERM with
silence. Knows no command. Invariant: what was noted is answered once; a signal that is ignored stays ignored.
"""

import signal
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that ask the program to end."""


class Noted:
    """The handler of all of them until somebody takes over."""

    def __init__(self) -> None:
        self.arrived: int | None = None
        """The first that came."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.arrived = self.arrived or number


def note_signals() -> None:
    """From here on signals are noted. For the main thread."""
    noted = Noted()
    for number in ENDING:
        if signal.getsignal(number) not in (None, signal.SIG_IGN):
            signal.signal(number, noted)


def raise_noted() -> None:
    """Signals are answered as Python answers them, beginning with the one that was noted."""
    arrived = None
    for number in ENDING:
        handler = signal.getsignal(number)
        if isinstance(handler, Noted):
            arrived = arrived or handler.arrived
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if arrived is not None:
        signal.raise_signal(arrived)
