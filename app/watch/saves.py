"""From "something happened to this file" to "this state of it is next": settle time, queue, newest save wins.

Pure: the clock is passed in, and nothing is read. A file is settling (touched lately), queued (a state of it waits), or
running; it may be all three at once, since saves do not wait. Invariant: a path is in the queue at most once, always
with the newest state pushed, and every state pushed is taken, replaced by a newer one of its file, or refused as FULL.
"""

from dataclasses import dataclass
from enum import Enum

from app.watch.breaker import Breaker

SETTLE_S = 0.25
"""A file is looked at when it was left alone for so long: editors save in several steps."""
MOST_QUEUED = 1000
"""Files that may wait; more are found again by a later rescan."""


@dataclass(frozen=True)
class Save:
    """A state of a file that is to be looked at by the model."""

    path: str
    sha256: str
    touched_at: float
    """When the first event of this save came, on the clock of the watch."""
    queued_at: float


class Pushed(Enum):
    """What became of a pushed state."""

    QUEUED = "queued"
    """It waits, in the place of an older one of its file if there was one."""
    SUPERSEDES = "supersedes"
    """It waits, and the running job of its file works on an older state: cancel it."""
    KNOWN = "known"
    """This very state runs or waits already."""
    FULL = "full"
    """There is no room."""


class SaveQueue:
    """What settles, what waits, and what runs. One job runs at a time."""

    def __init__(self, breaker: Breaker, settle_s: float = SETTLE_S, limit: int = MOST_QUEUED) -> None:
        self._breaker = breaker
        self._settle_s = settle_s
        self._limit = limit
        self._settling: dict[str, tuple[float, float]] = {}
        """Path to (first touch, when it has settled)."""
        self._queued: dict[str, Save] = {}
        """In the order of their first push."""
        self.running: Save | None = None

    @property
    def settling(self) -> int:
        """Files that were touched and have not settled."""
        return len(self._settling)

    @property
    def queued(self) -> int:
        """Files that wait."""
        return len(self._queued)

    def is_busy(self, path: str) -> bool:
        """True when the file settles, waits or runs."""
        runs = self.running is not None and self.running.path == path
        return runs or path in self._settling or path in self._queued

    def waiting(self) -> tuple[str, ...]:
        """Paths that wait, the next first."""
        return tuple(self._queued)

    def touch(self, path: str, now: float) -> bool:
        """Something happened to a file; True when it was not settling yet."""
        first, _ = self._settling.get(path, (now, now))
        fresh = path not in self._settling
        self._settling[path] = (first, now + self._settle_s)
        return fresh

    def forget(self, path: str) -> None:
        """The file is gone or is no longer watched: it neither settles nor waits. A running job is the caller's."""
        self._settling.pop(path, None)
        self._queued.pop(path, None)

    def settled(self, now: float) -> list[tuple[str, float]]:
        """(path, first touch) of every file that has settled; they no longer settle."""
        due = [(path, first) for path, (first, at) in self._settling.items() if at <= now]
        for path, _ in due:
            del self._settling[path]
        return due

    def push(self, path: str, sha256: str, touched_at: float, now: float) -> Pushed:
        """A settled state is to be run."""
        older = self._queued.get(path)
        if older is not None and older.sha256 == sha256:
            return Pushed.KNOWN
        runs = self.running is not None and self.running.path == path
        if runs and older is None and self.running is not None and self.running.sha256 == sha256:
            return Pushed.KNOWN
        if older is None and len(self._queued) >= self._limit:
            return Pushed.FULL
        self._queued[path] = Save(path, sha256, touched_at, now)
        return Pushed.SUPERSEDES if runs else Pushed.QUEUED

    def held_until(self, path: str, now: float) -> float | None:
        """When the breaker lets the file run again; None when it may run now."""
        free = self._breaker.free_at(path, now)
        return free if free > now else None

    def take(self, now: float) -> Save | None:
        """The next state to run, which is then the running one; None while one runs, or none may."""
        if self.running is not None:
            return None
        for path in self._queued:
            if self._breaker.free_at(path, now) <= now:
                self.running = self._queued.pop(path)
                self._breaker.started(path, now)
                return self.running
        return None

    def done(self, now: float) -> None:
        """The running job has ended, in whatever way."""
        self.running = None
        self._breaker.tidy(now)

    def next_at(self, now: float) -> float | None:
        """When a file settles or is let go by the breaker; None when nothing will happen by itself."""
        times = [at for _, at in self._settling.values()]
        if self.running is None:
            times += [self._breaker.free_at(path, now) for path in self._queued]
        return min(times, default=None)
