"""Where a replacement stands, told from the two names alone, and how it ends: applied, taken back, or both named.

The one rule for the running program and for the next start after a kill. Knows nothing of hunks. Invariant: the user's
file ends as the old or the new one, or as what another program made of it; a temporary is removed only when its bytes
are ours or in the journal.
"""

import os
from dataclasses import dataclass
from enum import Enum

from app.editing.filesystem import Filesystem, NotRegularError, Snapshot
from app.editing.journal import Entry, Journal, State
from app.errors import JournalError
from app.paths import shown


class Outcome(Enum):
    """How a replacement ended."""

    APPLIED = "applied"
    APPLIED_THEN_CHANGED = "applied then changed"
    """Our bytes were written, and another program has changed the file since."""
    TAKEN_BACK = "taken back"
    """Nothing of ours is in the file."""
    BOTH_STAY = "both stay"
    """Two files that are neither ours nor in the journal: both are left and named."""


@dataclass(frozen=True)
class Settlement:
    """The end of one replacement."""

    outcome: Outcome
    entry: Entry
    """The entry of the edit it is about, in its last state."""
    read_back: bytes = b""
    """The file's bytes as found, when the outcome is APPLIED."""
    surprise: bool = False
    """True when a change of another program was found in place of what had been read, and was put back."""


@dataclass(frozen=True)
class _Other:
    """Something at a name that is no regular file we may read."""


_Found = Snapshot | _Other | None


def settle(entry: Entry, journal: Journal, fs: Filesystem, *, take_back: bool = False) -> Settlement:
    """Bring a new or pending entry to its end. With `take_back`, a done exchange is undone where that loses nothing.

    The journal's lock must be held. Raises OSError when the user's folder cannot be worked on (the entry then stays for
    the next start), JournalError when the journal cannot.
    """
    with fs.folder(entry.target.parent) as folder:
        if entry.state is State.NEW:
            return _settle_new(entry, journal, fs, folder)
        return _Settling(entry, journal, fs, folder).run(take_back)


def settle_all(journal: Journal, fs: Filesystem | None = None) -> list[Settlement]:
    """Bring to an end what a killed run left; what cannot be worked on now is left for the next start."""
    fs = fs or Filesystem()
    if not any(_unfinished(entry) for entry in journal.entries(State.NEW, State.PENDING)):
        return []
    settled: list[Settlement] = []
    with journal.locked():
        for entry in filter(_unfinished, journal.entries(State.NEW, State.PENDING)):
            if entry.state is State.DAMAGED:  # killed within its first write, so nothing else was touched
                journal.drop(entry)
                continue
            try:
                settled.append(settle(entry, journal, fs))
            except OSError:
                # The file's folder is gone or closed to us, perhaps for now only (a disk not mounted).
                continue
    return settled


def _unfinished(entry: Entry) -> bool:
    return entry.state in (State.NEW, State.PENDING) or (
        entry.state is State.DAMAGED and entry.temporary.endswith(State.NEW)
    )


def _settle_new(entry: Entry, journal: Journal, fs: Filesystem, folder: int) -> Settlement:
    """No exchange was tried yet: the temporary, if there is one, is ours, whole or cut."""
    found = _look(fs, folder, entry.temporary)
    if isinstance(found, Snapshot):
        try:
            ours = journal.contents(entry)[1].startswith(found.data)
        except JournalError:  # lost with the power: then the temporary cannot be proven ours
            ours = False
        if ours:
            fs.unlink(folder, entry.temporary)
    journal.drop(entry)
    return Settlement(Outcome.TAKEN_BACK, entry)


class _Settling:
    """One pending entry being brought to its end."""

    def __init__(self, entry: Entry, journal: Journal, fs: Filesystem, folder: int) -> None:
        self.entry, self.journal, self.fs, self.folder = entry, journal, fs, folder
        self.name = os.path.basename(entry.path)
        self.path = _look(fs, folder, self.name)
        self.temporary = _look(fs, folder, entry.temporary)

    def run(self, take_back: bool) -> Settlement:
        if self._is_ours(self.temporary):
            return self._not_exchanged()
        if self.temporary is None:
            return self._without_temporary()
        if self._is_before(self.temporary):
            if take_back and self._is_ours(self.path) and self._is_after(self.path):
                return self._exchange_back(surprise=False)
            return self._applied()
        if self._is_ours(self.path) and self._is_after(self.path):
            return self._exchange_back(surprise=True)
        return self._both_stay()

    def _not_exchanged(self) -> Settlement:
        """The temporary is the file we made: the exchange has not happened, or was undone already."""
        if not self._is_after(self.temporary):
            return self._both_stay()
        self.fs.unlink(self.folder, self.entry.temporary)
        self.journal.drop(self.entry)
        return Settlement(Outcome.TAKEN_BACK, self.entry)

    def _without_temporary(self) -> Settlement:
        """Removed after the exchange, or renamed over the file where names cannot be exchanged."""
        if self._is_ours(self.path) or self._is_after(self.path):
            return self._applied()
        if self._is_before(self.path):
            self.journal.drop(self.entry)
            return Settlement(Outcome.TAKEN_BACK, self.entry)
        return self._both_stay()

    def _applied(self) -> Settlement:
        # Unlinked before the entry is marked, so that a kill in between leaves no litter; the journal has the bytes.
        if self.temporary is not None:
            self.journal.contents(self.entry)  # raises if the journal's copy is not what its hash says
            self.fs.unlink(self.folder, self.entry.temporary)
        edit = self.journal.finish(self.entry)
        if isinstance(self.path, Snapshot) and self._is_after(self.path):
            return Settlement(Outcome.APPLIED, edit, self.path.data)
        return Settlement(Outcome.APPLIED_THEN_CHANGED, edit)

    def _exchange_back(self, surprise: bool) -> Settlement:
        """What came out of the exchange goes back to its name; what comes out now must be our text."""
        self.fs.exchange(self.folder, self.entry.temporary, self.name)
        self.fs.fsync(self.folder)
        self.temporary = _look(self.fs, self.folder, self.entry.temporary)
        if not (self._is_ours(self.temporary) and self._is_after(self.temporary)):
            return self._both_stay()
        self.fs.unlink(self.folder, self.entry.temporary)
        self.journal.drop(self.entry)
        return Settlement(Outcome.TAKEN_BACK, self.entry, surprise=surprise)

    def _both_stay(self) -> Settlement:
        return Settlement(Outcome.BOTH_STAY, self.journal.mark(self.entry, State.CONFLICT))

    def _is_ours(self, found: _Found) -> bool:
        """The very file we made as a temporary, whatever is in it now."""
        return isinstance(found, Snapshot) and (found.device, found.inode) == (self.entry.device, self.entry.inode)

    def _is_after(self, found: _Found) -> bool:
        return isinstance(found, Snapshot) and found.sha256 == self.entry.after_sha256

    def _is_before(self, found: _Found) -> bool:
        """What was read, by bytes, mode and owner."""
        entry = self.entry
        return isinstance(found, Snapshot) and (found.sha256, found.mode, found.uid, found.gid) == (
            entry.before_sha256,
            entry.mode,
            entry.uid,
            entry.gid,
        )


def _look(fs: Filesystem, folder: int, name: str) -> _Found:
    try:
        return fs.snapshot(folder, name)
    except (NotRegularError, PermissionError):
        return _Other()


def settlement_sentence(settlement: Settlement) -> str:
    """What a run before this one left, for the user."""
    said = shown(settlement.entry.path)
    match settlement.outcome:
        case Outcome.APPLIED:
            return f"An edit of {said} that was cut short is complete; `redraft undo` takes it back."
        case Outcome.APPLIED_THEN_CHANGED:
            return f"An edit of {said} that was cut short had been written, and the file has been changed since."
        case Outcome.TAKEN_BACK:
            return f"An edit of {said} that was cut short has not been applied."
        case Outcome.BOTH_STAY:
            return both_stay_sentence(settlement.entry)


def both_stay_sentence(entry: Entry) -> str:
    """Names the two files of a replacement that could not be settled."""
    temporary = entry.target.parent / entry.temporary
    return (
        f"{shown(entry.path)} was changed by another program more than once while it was being replaced. Nothing was "
        f"thrown away: look at {shown(entry.path)} and, if it is there, {shown(temporary)}; the bytes from before are "
        f"in the journal as {entry.id}."
    )
