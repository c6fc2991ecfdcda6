"""Replace the bytes of one file so that nothing is ever lost: lease, temporary, journal, exchange, look, settle.

Knows nothing of hunks, models or terminals; used for edits, undo and redo alike. Invariant: the file is never opened
for writing; at any instant it is whole, the old or the new one; whatever another program puts in its place is kept.
"""

import errno
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.editing.filesystem import ExchangeUnsupportedError, Filesystem, Lease, NotRegularError, Snapshot, read_snapshot
from app.editing.interrupts import Held, interrupts_held
from app.editing.journal import Entry, Journal, Kind
from app.editing.settle import Outcome, Settlement, both_stay_sentence, settle
from app.errors import (
    AppError,
    ConflictError,
    FileAttributesError,
    FileBusyError,
    FileHardLinkedError,
    FileUnwritableError,
    InterruptedByUserError,
    JournalError,
    UnchangedError,
)
from app.paths import shown


@dataclass(frozen=True)
class Purpose:
    """Why a file is replaced, for the journal."""

    kind: Kind = Kind.EDIT
    of: str | None = None
    """For an undo or redo: the id of the edit."""
    note: str = ""
    """What the edit was asked to do."""
    break_links: bool = False
    """Replace a file that has several names, which parts this name from the others."""


@dataclass(frozen=True)
class Replaced:
    """A replacement that is done."""

    entry: Entry
    """The edit's entry in its last state."""
    before: Snapshot
    after: bytes
    """Read back from the file."""
    guarded: bool
    """False where the file system cannot exchange names, so that a change in the last instant would be lost."""


def replace_file(
    target: Path, make: Callable[[Snapshot], bytes], purpose: Purpose, journal: Journal, fs: Filesystem | None = None
) -> Replaced:
    """Give `target` (links resolved) the bytes that `make` returns for what is there now.

    `make` may raise to stop before anything is touched. Raises UnchangedError (the bytes are there already),
    ConflictError, FileBusyError (exit 6), FileUnwritableError, FileAttributesError, FileHardLinkedError, JournalError
    (exit 3), InterruptedByUserError (ctrl-C before the exchange; nothing was written).
    """
    fs = fs or Filesystem()
    said = shown(target)
    with journal.locked(), interrupts_held() as held, _os_errors(said), fs.folder(target.parent) as folder:
        with _leased(fs, folder, target.name, said) as lease:
            if purpose.kind is Kind.EDIT:
                journal.prune()
            before = _look_at(fs, folder, target.name, said)
            if before.nlink > 1 and not purpose.break_links:
                raise FileHardLinkedError(
                    f"{said} has {before.nlink} names (hard links); replacing it would part them."
                )
            after = make(before)
            if after == before.data:
                raise UnchangedError(f"{said} has these bytes already; nothing was written.")
            temporary = f".redraft-{secrets.token_hex(8)}.tmp"
            entry = journal.begin(target, temporary, before, after, purpose.kind, purpose.of, purpose.note)
            try:
                inode = _write_temporary(fs, folder, temporary, before, after, said)
                entry = journal.seal(entry, *inode)
                _last_look(held, lease, said)
                guarded = _exchange(fs, folder, temporary, target.name, before, said)
                fs.fsync(folder)
                if lease.writer_waits():
                    raise _busy(said)
            except BaseException as error:
                _take_back(entry, journal, fs, error)
                raise
            settlement = _settled(entry, journal, fs, take_back=False)
        return Replaced(settlement.entry, before, _read_back(settlement, said), guarded)


def _write_temporary(
    fs: Filesystem, folder: int, name: str, before: Snapshot, after: bytes, said: str
) -> tuple[int, int]:
    """Make the temporary with its text, owner, mode and attributes, on disk; return its device and inode."""
    fd = fs.create(folder, name)
    try:
        fs.write(fd, after)
        try:
            fs.take_attributes(fd, before)
            made = read_snapshot(fd)
        except OSError as error:
            raise FileAttributesError(_attributes_sentence(said, error.strerror)) from error
        kept = (made.mode, made.uid, made.gid, made.xattrs)
        if kept != (before.mode, before.uid, before.gid, before.xattrs):
            raise FileAttributesError(_attributes_sentence(said, "the system changed them"))
        fs.fsync(fd)
    finally:
        os.close(fd)
    return made.device, made.inode


def _last_look(held: Held, lease: Lease, said: str) -> None:
    """The last moment to stop for free."""
    if held.pending():
        raise InterruptedByUserError(f"Interrupted; nothing was written to {said}.")
    if lease.writer_waits():
        raise _busy(said)


def _exchange(fs: Filesystem, folder: int, temporary: str, name: str, before: Snapshot, said: str) -> bool:
    """Swap the names; by plain rename where that cannot be done. True when swapped."""
    try:
        fs.exchange(folder, temporary, name)
        return True
    except ExchangeUnsupportedError:
        if not _look_at(fs, folder, name, said).same_content(before):
            raise _changed(said) from None
        fs.rename(folder, temporary, name)
        return False


def _take_back(entry: Entry, journal: Journal, fs: Filesystem, cause: BaseException) -> None:
    """After a failure: leave the file as it was, and say so if that cannot be done."""
    settlement = _settled(entry, journal, fs, take_back=True)
    match settlement.outcome:
        case Outcome.TAKEN_BACK:
            return
        case Outcome.APPLIED:
            raise FileUnwritableError(
                f"{shown(entry.path)} was written, but the system reported an error afterwards ({cause}); "
                "`redraft undo` takes it back."
            ) from cause
        case Outcome.APPLIED_THEN_CHANGED:
            raise _changed_after(settlement) from cause
        case Outcome.BOTH_STAY:
            raise ConflictError(both_stay_sentence(settlement.entry)) from cause


def _settled(entry: Entry, journal: Journal, fs: Filesystem, *, take_back: bool) -> Settlement:
    try:
        return settle(entry, journal, fs, take_back=take_back)
    except (OSError, JournalError) as error:
        raise FileUnwritableError(
            f"Replacing {shown(entry.path)} was begun and could not be brought to an end ({error}). The file is the "
            "old or the new one, and the next redraft command settles which."
        ) from error


def _read_back(settlement: Settlement, said: str) -> bytes:
    """The file's bytes as found after the exchange, when all went well."""
    match settlement.outcome:
        case Outcome.APPLIED:
            return settlement.read_back
        case Outcome.APPLIED_THEN_CHANGED:
            raise _changed_after(settlement)
        case Outcome.TAKEN_BACK:
            raise _changed(said)
        case Outcome.BOTH_STAY:
            raise ConflictError(both_stay_sentence(settlement.entry))


@contextmanager
def _leased(fs: Filesystem, folder: int, name: str, said: str) -> Iterator[Lease]:
    with ExitStack() as stack:
        try:
            lease = stack.enter_context(fs.lease(folder, name))
        except BlockingIOError as error:
            raise _busy(said) from error
        except FileNotFoundError as error:
            raise _gone(said) from error
        yield lease


def _look_at(fs: Filesystem, folder: int, name: str, said: str) -> Snapshot:
    try:
        found = fs.snapshot(folder, name)
    except NotRegularError as error:
        raise ConflictError(f"{said} is no longer a regular file; nothing was written.") from error
    if found is None:
        raise _gone(said)
    return found


@contextmanager
def _os_errors(said: str) -> Iterator[None]:
    """What the system refuses, as a sentence."""
    try:
        yield
    except AppError:
        raise
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.EXDEV):
            reason = "it is a mount point of its own, which cannot be replaced"
        elif error.errno in (errno.ENOENT, errno.ELOOP):
            raise _gone(said) from error
        else:
            reason = error.strerror or str(error)
        raise FileUnwritableError(f"{said} cannot be replaced: {reason}; nothing was written.") from error


def _attributes_sentence(said: str, reason: str | None) -> str:
    return (
        f"Owner, mode or extended attributes of {said} cannot be carried over to the new file ({reason}); "
        "nothing was written."
    )


def _busy(said: str) -> FileBusyError:
    return FileBusyError(f"Another program has {said} open for writing; nothing was written. Close it and try again.")


def _changed(said: str) -> ConflictError:
    return ConflictError(f"{said} was changed by another program meanwhile; its change was kept, nothing was written.")


def _changed_after(settlement: Settlement) -> ConflictError:
    return ConflictError(
        f"{shown(settlement.entry.path)} was written, and another program changed it right afterwards; its change was "
        f"kept, and the bytes from before and ours are in the journal as {settlement.entry.id}."
    )


def _gone(said: str) -> ConflictError:
    return ConflictError(f"{said} was removed or renamed meanwhile; nothing was written.")
