"""The console script: imports the command line and runs it, and no signal before, in or after that ends in a traceback.

Knows when the program begins and ends, nothing of commands. Invariant: once a command has said how it ended, the
process ends with that exit code, whatever comes; no load of a model holds it up. (What comes before this module is
imported, while Python itself starts, is Python's to answer.)
"""

import atexit
import contextlib
import os
import signal
import sys
import threading

from app.early_signals import ENDING, note_signals


def main() -> int:
    """Import the command line and run it; returns the exit code."""
    atexit.register(_ignore_signals)  # the first to be registered is the last to be called
    note_signals()
    # What a tenth of a second goes to, in which signals are noted already.
    from app.cli import main as run
    from app.errors import ExitCode

    code: int = ExitCode.INTERRUPTED  # by ctrl-C once more, while the first one was answered
    try:
        code = run()
        _decide(code)
    except KeyboardInterrupt:
        _decide(code)
    if threading.active_count() > 1:
        _leave_load(code)
    return code


def _decide(code: int) -> None:
    """From here on a signal ends the process at once, with `code`: all is said."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: os._exit(code))


def _leave_load(code: int) -> None:
    """End the process here if an engine is still loading, which nobody wants any more: what it writes (packed weights)
    gets its name when it is whole."""
    from editor_engine.config import ENGINE_THREAD

    if any(thread.name.startswith(ENGINE_THREAD) for thread in threading.enumerate()):
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _ignore_signals() -> None:
    """Python takes its handlers away before it ends, and a signal would change the exit code."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
