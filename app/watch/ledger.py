"""What was written by us, so that no watch ever answers an edit of ours with another.

The ledger is the journal of applied edits: it has path and hash of every file that any redraft writes (a watch, a
review, an undo) on disk before the file's name leads to the new bytes, so two watches on one tree know of each other's
writes, and no clock is asked. Knows nothing of queues. Invariant: bytes that an entry has put at a path are ours there
for as long as the entry exists.
"""

from collections.abc import Iterable

from app.editing.journal import Entry, Journal, State


class Ledger:
    """Reads each entry of the journal once, and again when its state has changed."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, Entry] = {}

    def is_ours(self, path: str, sha256: str) -> bool:
        """True when `path`, absolute and without links, was given these bytes by an edit, an undo or a redo of ours.

        Raises JournalError when the journal cannot be read.
        """
        self._known = self._journal.written(self._known)
        return any(sha256 in _hashes(entry) for entry in self._known.values() if entry.path == path)


def _hashes(entry: Entry) -> Iterable[str]:
    """What the entry has put at its path: an edit its result, and, where it was undone, what was there before it."""
    return (entry.after_sha256, entry.before_sha256) if entry.state is State.UNDONE else (entry.after_sha256,)
