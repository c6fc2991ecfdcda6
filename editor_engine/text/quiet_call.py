"""Calls of a library that may panic: a panic becomes an exception, and what the library prints of it reaches nobody.

Rust writes to descriptor 2 before the panic can be caught, and a descriptor belongs to the whole process, whose other
threads have something to say meanwhile. So the call runs in a thread of its own with descriptors of its own (Linux 5.9
and later; elsewhere the words come through). Invariant: nobody else's descriptors change.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")

_UNSHARE = 1 << 1  # CLOSE_RANGE_UNSHARE of linux/close_range.h
_BEYOND_ALL, _LAST = 2**31 - 1, 2**32 - 1  # descriptors there never are, so that the call closes none


class PanicError(Exception):
    """The library panicked; the text is what it said."""


def quiet_call(call: Callable[[], Result]) -> Result:
    """What `call` returns or raises; PanicError where it panics. Ctrl-C ends the wait, not the call."""
    running = _Running(call)
    running.start()
    running.join()
    if running.raised is None:
        return running.returned[0]
    # The library's exception for it is no Exception and lies in no module.
    if type(running.raised).__name__ == "PanicException":
        raise PanicError(str(running.raised)) from running.raised
    raise running.raised


class _Running(threading.Thread, Generic[Result]):
    """One call. A daemon: nobody waits for a call whose result is not wanted any more."""

    def __init__(self, call: Callable[[], Result]) -> None:
        super().__init__(name="quiet call", daemon=True)
        self._call = call
        self.returned: list[Result] = []
        self.raised: BaseException | None = None

    def run(self) -> None:
        """The thread."""
        try:
            _mute_this_thread()
            self.returned.append(self._call())
        except BaseException as error:
            self.raised = error


def _mute_this_thread() -> None:
    """Give the calling thread copies of all descriptors, 2 leading nowhere; they end with it."""
    close_range = getattr(ctypes.CDLL(None), "close_range", None) if sys.platform == "linux" else None
    if close_range is None or close_range(ctypes.c_uint(_BEYOND_ALL), ctypes.c_uint(_LAST), ctypes.c_int(_UNSHARE)):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
