"""What a watch says, to whom: lines and a status line for people on stderr, or JSON lines on stdout for programs.

Knows no watch, only its events. Invariant: the JSON listener writes nothing but JSON lines, the last of them of type
`result`; the other writes nothing to stdout. Both may be called from any thread.
"""

import threading
from collections import Counter
from typing import Protocol, TextIO

from app.editing.apply import Receipt
from app.errors import AppError, ExitCode
from app.json_events import OUTCOMES, JsonWriter
from app.terminal_text import visible
from app.watch.events import Applied, Failed, StatusChanged, WatchEvent
from app.watch.wording import event_fields, event_sentence

_DONE = {"applied": "applied", "changed": "proposal"}
"""Outcome of a watch that ended as it should -> the event that makes it so; the first that happened counts."""


class WatchListener(Protocol):
    """Hears of everything that happens, in order."""

    def hear(self, event: WatchEvent) -> None: ...
    def note(self, sentence: str) -> None: ...
    def finished(self, code: ExitCode) -> ExitCode: ...
    def failed(self, error: AppError) -> ExitCode: ...


class JsonListener:
    """The machine interface."""

    def __init__(self, lines: JsonWriter) -> None:
        self._lines = lines
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._receipt: Receipt | None = None

    def hear(self, event: WatchEvent) -> None:
        kind, fields = event_fields(event)
        if isinstance(event, Applied):
            self._receipt = event.receipt
        with self._lock:
            self._counts[kind] += 1
            self._lines.write(kind, **fields)

    def note(self, sentence: str) -> None:
        with self._lock:
            self._lines.write("note", message=sentence)

    def finished(self, code: ExitCode) -> ExitCode:
        outcome = next((name for name, kind in _DONE.items() if self._counts[kind]), "unchanged")
        self._lines.result(outcome=OUTCOMES.get(code, outcome), exit_code=code, **self._sums())
        return code

    def failed(self, error: AppError) -> ExitCode:
        self._lines.failed(error, **self._sums())
        return error.exit_code

    def _sums(self) -> dict[str, object]:
        """`receipt` is that of the last apply; each has its own in the line of type `applied`."""
        counts = self._counts
        sums = {"failed": counts["failed"], "proposals": counts["proposal"], "applied": counts["applied"]}
        return {**sums, "receipt": self._receipt}


class TalkListener:
    """Sentences on stderr, and on a terminal the state on the last line."""

    def __init__(self, stream: TextIO, quiet: bool) -> None:
        self._stream = stream
        self._quiet = quiet
        self._live = stream.isatty() and not quiet
        self._status = ""
        self._lock = threading.Lock()

    def hear(self, event: WatchEvent) -> None:
        sentence = visible(event_sentence(event))
        if isinstance(event, StatusChanged):
            with self._lock:
                self._status = sentence
                self._draw()
        elif isinstance(event, Failed) or not self._quiet:
            self._say(sentence)

    def note(self, sentence: str) -> None:
        if not self._quiet:
            self._say(visible(sentence))

    def finished(self, code: ExitCode) -> ExitCode:
        self._live = False
        if code is ExitCode.UNCHANGED:
            self.note("Nothing was asked for, or nothing needed a change.")
        return code

    def failed(self, error: AppError) -> ExitCode:
        self._live = False
        self._say(visible(f"redraft: {error}"))
        return error.exit_code

    def _say(self, line: str) -> None:
        with self._lock:
            if self._status:
                self._stream.write("\r\x1b[K")
            self._stream.write(line + "\n")
            self._draw()

    def _draw(self) -> None:
        if self._live:
            self._stream.write(f"\r\x1b[K{self._status}")
        else:
            self._status = ""
        self._stream.flush()
