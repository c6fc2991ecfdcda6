"""One running engine process, seen from its parent: orders in, answers out to whoever asked, and why it ended.

Two threads of its own do the reading and writing, so that a child that hangs blocks no event loop. Knows lines, not
what they mean. Invariant: every order that was begun hears `done`, an error or a `Death` exactly once as its last word,
and after `end` neither process nor thread nor file is left.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from app.settings import ENGINE_KEY

MOST_LINE_BYTES = 16 << 20
"""An answer is never this long: the longest has the token ids of a whole reply."""

_LAST_WORDS = frozenset({"identity", "counts", "done", "error"})
_TAIL_BYTES = 8192


@dataclass(frozen=True)
class Death:
    """The process is gone, and nothing more is said."""

    reason: str
    """A clause: how it ended, and its log's last line."""


@dataclass(frozen=True)
class Silence:
    """How long a process that has orders may say nothing, in seconds."""

    loading: float = 900.0
    """Until its first answer: a large model is hashed and packed meanwhile."""
    answering: float = 120.0
    """A pass takes well under a second, even on a machine that is short of memory not so long."""


Answer = dict[str, Any] | Death
Sink = Callable[[Answer], None]
"""Called on the reading thread, or on the asking one when the process is gone already."""


class ChildPipe:
    """An engine process and its two pipes."""

    def __init__(
        self, command: Sequence[str], log: Path | None, on_note: Callable[[str], None], grace_s: float
    ) -> None:
        """Start it. `log` takes its stderr (None: nowhere); `grace_s` is what it may take to end when told to.

        Raises OSError when the system will not start it.
        """
        self._log = log
        self._on_note = on_note
        self._grace_s = grace_s
        self._lock = threading.Lock()
        self._sinks: dict[int, Sink] = {}
        self._death: Death | None = None
        self._ended_because: str | None = None
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()  # reentrant: a signal handler may cancel
        environment = {name: value for name, value in os.environ.items() if name != ENGINE_KEY}
        with _open_log(log) as stderr:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                start_new_session=True,  # ctrl-C in the terminal is the front end's business
            )
        self._heard_at = time.monotonic()
        self._has_answered = False
        self._threads = [
            threading.Thread(target=self._read, args=(self._process.stdout,), name="engine answers", daemon=True),
            threading.Thread(target=self._write, args=(self._process.stdin,), name="engine orders", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def dead(self) -> Death | None:
        """How it ended; None while it runs."""
        return self._death

    def left_s(self, silence: "Silence") -> float:
        """How much longer it may say nothing, whoever asked; 0 and less: too long already."""
        limit = silence.answering if self._has_answered else silence.loading
        return self._heard_at + limit - time.monotonic()

    def begin(self, number: int, order: dict[str, Any], sink: Sink) -> None:
        """Send an order; `sink` hears every answer to it."""
        with self._lock:
            death = self._death
            if death is None:
                alone = not self._sinks  # it had nothing to say until now
                self._sinks[number] = sink
        if death is not None:
            sink(death)
        else:
            if alone:
                self._heard_at = time.monotonic()
            self._send({"id": number, **order})

    def cancel(self, number: int) -> None:
        """Ask that an order be left. From any thread and from a signal handler."""
        self._send({"id": number, "do": "cancel"})

    def kill(self, why: str) -> None:
        """End it now; orders that wait hear of a Death with this reason."""
        self._ended_because = why
        with suppress(ProcessLookupError):
            self._process.kill()

    def end(self) -> None:
        """Close its stdin, wait, kill what is left; blocks for at most the grace and a moment."""
        self._outbox.put(None)
        try:
            self._process.wait(self._grace_s)
        except subprocess.TimeoutExpired:
            self.kill("it did not leave when told to")
        self._process.wait()
        for thread in self._threads:
            thread.join()
        if self._log is not None and not _tail(self._log):
            self._log.unlink(missing_ok=True)

    def _send(self, order: dict[str, Any]) -> None:
        self._outbox.put(json.dumps(order).encode("ascii") + b"\n")

    def _write(self, pipe: BinaryIO) -> None:
        with suppress(OSError), pipe:  # a broken pipe: the reading thread finds out why
            while (line := self._outbox.get()) is not None:
                pipe.write(line)
                pipe.flush()

    def _read(self, pipe: BinaryIO) -> None:
        with pipe:
            while line := pipe.readline(MOST_LINE_BYTES):
                if not self._take(line):
                    self.kill("it said something that is no answer")
                    break
        death = Death(self._reason())
        with self._lock:
            self._death = death
            sinks, self._sinks = self._sinks, {}
        self._outbox.put(None)
        for sink in sinks.values():
            sink(death)

    def _take(self, line: bytes) -> bool:
        """Pass one answer on; False when it is none."""
        try:
            answer = json.loads(line) if line.endswith(b"\n") else None
        except (ValueError, RecursionError):
            return False
        if not isinstance(answer, dict):
            # A line that was cut by the end of the process is no fault of what it says; `_reason` tells.
            return len(line) < MOST_LINE_BYTES and not line.endswith(b"\n")
        self._heard_at = time.monotonic()
        if isinstance(note := answer.get("note"), str):
            self._on_note(note)
            return True
        number = answer.get("id")
        if not isinstance(number, int):
            return False
        with self._lock:
            last = not _LAST_WORDS.isdisjoint(answer)
            sink = self._sinks.pop(number, None) if last else self._sinks.get(number)
        self._has_answered = True
        if sink is not None:
            sink(answer)
        return sink is not None

    def _reason(self) -> str:
        """Wait for the process, and say how it ended."""
        try:
            code = self._process.wait(self._grace_s)
        except subprocess.TimeoutExpired:  # it closed its stdout and stayed
            self.kill("it stopped answering")
            code = self._process.wait()
        if self._ended_because is not None:
            return self._ended_because
        how = f"it ended with exit status {code}" if code >= 0 else f"it was ended by {_signal_name(-code)}"
        if code == -signal.SIGKILL:  # not by us
            how += ", as a system does that has run out of memory"
        lines = _tail(self._log).splitlines() if self._log is not None else []
        fatal = [line for line in lines if line.startswith("Fatal Python error")]  # what follows is a list of frames
        last = (fatal or [line for line in lines if line.strip() and " INFO " not in line] or [""])[-1]
        return f"{how}; its log ends with: {last}" if last else how


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _open_log(path: Path | None) -> BinaryIO:
    if path is None:
        return open(os.devnull, "wb")
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb")


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _TAIL_BYTES))
            return stream.read().decode("utf-8", "replace").strip()
    except OSError:  # someone removed it: a log that is gone has no last line
        return ""
