"""The server's log: what happened, when, and how much of it; never what was said.

Knows the folder it is given. Invariant: a line holds words of ours, numbers and names of code, and nothing that came
in with a request or went out with a reply: no text, no path of a request, no header, no key, no exception's message.
"""

import contextlib
import logging
import logging.handlers
import os
import traceback
from pathlib import Path

from editor_engine.errors import EngineError

MAX_BYTES = 1 << 20
KEPT = 3
"""Files of `MAX_BYTES`, the one being written to not counted."""


class EventLog:
    """Lines of the form `time event key=value ...` in one file, which is renamed when it is full."""

    def __init__(self, path: Path | None) -> None:
        """`path` in a folder that exists; None keeps no log. Raises EngineError when it cannot be written."""
        self._logger = logging.Logger("redraft.server", logging.INFO)  # of its own: nothing else writes to this file
        self._handler: logging.Handler = logging.NullHandler()
        if path is not None:
            try:
                self._handler = _PrivateFiles(path, maxBytes=MAX_BYTES, backupCount=KEPT, encoding="utf-8")
            except OSError as error:
                raise EngineError(f"The log {path} cannot be written: {error.strerror}.") from error
            self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._logger.addHandler(self._handler)

    def say(self, event: str, **facts: object) -> None:
        """One line. Facts are numbers and words of ours; those that are not known (None) are left out."""
        known = [f"{name}={_short(value)}" for name, value in facts.items() if value is not None]
        self._logger.info("%s", " ".join([event, *known]))

    def fault(self, error: BaseException) -> None:
        """What nobody foresaw: its kind and where it was raised, without its words."""
        frames = traceback.extract_tb(error.__traceback__)[-6:]
        places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
        self.say("fault", kind=type(error).__name__, at=places or "nowhere")

    def close(self) -> None:
        """Let go of the file."""
        with contextlib.suppress(OSError):  # of a full disk: the lines are lost already
            self._handler.close()


class UvicornLines(logging.Handler):
    """Notes that uvicorn complained, and how loudly: its words and tracebacks may quote a request."""

    def __init__(self, log: EventLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """One line for one record."""
        if record.exc_info and record.exc_info[1] is not None:
            self._log.fault(record.exc_info[1])
        else:
            self._log.say("http", level=record.levelname.lower(), at=f"{record.module}:{record.lineno}")


class _PrivateFiles(logging.handlers.RotatingFileHandler):
    def _open(self):  # type: ignore[no-untyped-def]  # the type the standard library gives it is private
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=_private)

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk costs lines of the log; requests go on, and no traceback goes to stderr."""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _short(value: object) -> object:
    return f"{value:.3f}" if isinstance(value, float) else value
