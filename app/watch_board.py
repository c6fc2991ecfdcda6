"""What goes on in watch mode, in one look: the watches that run, of any process, and the proposals that wait.

Knows no screen and starts nothing. Invariant: a look that is repeated reads a file again only when it has changed.
"""

import os
from dataclasses import dataclass

from app.editing.proposals import ProposalStore, Standing, StoredProposal
from app.errors import AppError
from app.watch.presence import RunningWatch, running_watches


@dataclass(frozen=True)
class Waiting:
    """A proposal that waits for review."""

    stored: StoredProposal
    standing: Standing | None
    """None where it cannot be opened."""


@dataclass(frozen=True)
class Board:
    """Watches, the oldest first, and proposals, the newest first."""

    watches: tuple[RunningWatch, ...] = ()
    waiting: tuple[Waiting, ...] = ()


class WatchBoard:
    """Looks at both."""

    def __init__(self, store: ProposalStore) -> None:
        self.store = store
        self._known: dict[tuple[object, ...], Standing | None] = {}

    def mark(self) -> str:
        """A few words for a status line, empty where nothing runs or waits. Raises ProposalError."""
        watches = running_watches()
        states = [watch.status.state for watch in watches]
        queued = sum(len(watch.status.queued) for watch in watches)
        waiting = self.store.count()
        words = []
        if states:
            words.append(f"watch {states[0]}" if len(states) == 1 else f"{len(states)} watches")
        if queued:
            words.append(f"{queued} queued")
        if waiting:
            words.append(f"{waiting} to review")
        return ", ".join(words)

    def look(self) -> Board:
        """Everything, with what has become of each proposal's file. Raises ProposalError. Takes a while."""
        known, self._known = self._known, {}
        waiting = []
        for stored in self.store.entries():
            key = (stored.id, stored.created, *_state(stored.path))
            standing = known[key] if key in known else self._standing(stored)
            self._known[key] = standing
            waiting.append(Waiting(stored, standing))
        return Board(tuple(running_watches()), tuple(waiting))

    def _standing(self, stored: StoredProposal) -> Standing | None:
        try:
            return self.store.standing(stored)
        except AppError:  # it is gone by now, or damaged: whoever opens it is told
            return None


def _state(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino)
