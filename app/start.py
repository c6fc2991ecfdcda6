"""The console script: ends quietly when ctrl-C comes before there is anyone to say "interrupted".

Importing the command line takes a tenth of a second, in which Python would answer ctrl-C with a traceback.
"""

import signal


def main() -> int:
    """Import the command line and run it; returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from app.cli import main as run  # what the tenth of a second goes to

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()
