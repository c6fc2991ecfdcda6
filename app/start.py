"""The console script: ends quietly when ctrl-C comes before there is anyone to say "interrupted", and at once when it
comes in a load.

Importing the command line takes a tenth of a second, in which Python would answer ctrl-C with a traceback; and Python
does not end before its threads have.
"""

import os
import signal
import sys
import threading


def main() -> int:
    """Import the command line and run it; returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from app.cli import main as run  # what the tenth of a second goes to

    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run()
    if threading.active_count() > 1:
        _leave_load(code)
    return code


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
