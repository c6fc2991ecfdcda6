"""Files with hunks that wait for a decision, wherever they come from: a patch, or proposals that were stored.

Knows nothing of how decisions are made or shown. Invariant: what is applied was accepted, goes through
`app.editing.apply`, and when one file cannot be written, those written before it are named.
"""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from app.editing.apply import Receipt, apply_hunks
from app.editing.diff import Hunk
from app.editing.document import Document
from app.editing.journal import Journal
from app.editing.patch_read import read_patch
from app.editing.proposals import ProposalStore, Standing, StoredProposal
from app.editing.review import Review
from app.errors import AppError, ConflictError, FileMissingError, FileTooLongError, FileUnreadableError, NotAFileError
from app.paths import shown

MOST_PATCH_BYTES = 64 << 20
_CHUNK = 1 << 20


@dataclass(frozen=True)
class UnderReview:
    """One file under review."""

    name: str
    """Print it through `paths.shown`."""
    document: Document | None
    """None where the file cannot be edited."""
    hunks: tuple[Hunk, ...]
    conflicts: tuple[str, ...]
    """Sentences about what does not fit."""
    note: str
    """Says in the journal where the change came from."""
    proposal_id: str | None = None
    """Of the stored proposal; None for a patch."""

    def start(self) -> Review | None:
        """A review with nothing decided; None where there is nothing to decide."""
        return Review.start(self.document, self.hunks) if self.document is not None and self.hunks else None


def from_patch(path: str, root: Path | None = None) -> tuple[UnderReview, ...]:
    """The files that a patch file changes, looked up in the current folder (or `root`).

    Raises FileMissingError, NotAFileError, FileUnreadableError, FileTooLongError, and UsageError as `read_patch` does.
    """
    try:
        # O_NONBLOCK: opening a pipe must not wait for its writer.
        with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
            begin = _begin(stream, shown(path))
            return _from_bytes(begin + _read(stream, MOST_PATCH_BYTES + 1 - len(begin)), os.path.basename(path), root)
    except FileNotFoundError as error:
        raise FileMissingError(f"{shown(path)} does not exist.") from error
    except IsADirectoryError as error:
        raise NotAFileError(f"{shown(path)} is a folder; name a patch in it.") from error
    except OSError as error:
        raise FileUnreadableError(f"{shown(path)} cannot be read: {error.strerror}.") from error


def from_patch_stream(stream: BinaryIO, name: str, root: Path | None = None) -> tuple[UnderReview, ...]:
    """As `from_patch`, from an open stream; `name` stands for the patch in the journal."""
    return _from_bytes(stream.read(MOST_PATCH_BYTES + 1), name, root)


def _begin(stream: FileIO, said: str) -> bytes:
    """What can be read at once; of a pipe, as a shell's <(...) is, the rest will come where somebody writes to it."""
    kind = os.fstat(stream.fileno()).st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISFIFO(kind):
        raise NotAFileError(f"{said} is not a regular file.")
    data = stream.read(_CHUNK)
    if stat.S_ISFIFO(kind) and data == b"":
        raise NotAFileError(f"{said} is a pipe that nobody writes to.")
    os.set_blocking(stream.fileno(), True)
    return data or b""


def _read(stream: FileIO, most: int) -> bytes:
    """The rest, at most so many bytes of it."""
    parts = []
    while most > 0 and (part := stream.read(min(most, _CHUNK))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _from_bytes(data: bytes, name: str, root: Path | None) -> tuple[UnderReview, ...]:
    if len(data) > MOST_PATCH_BYTES:
        raise FileTooLongError(f"The patch has more than {MOST_PATCH_BYTES >> 20} MiB.")
    return tuple(
        UnderReview(file.name, file.document, file.hunks, file.conflicts, f"patch {name}")
        for file in read_patch(data, root or Path.cwd())
    )


def from_store(store: ProposalStore, stored: Iterable[StoredProposal]) -> tuple[UnderReview, ...]:
    """Stored proposals as files under review; one that cannot be applied any more says so."""
    return tuple(_from_stored(store, proposal) for proposal in stored)


def _from_stored(store: ProposalStore, stored: StoredProposal) -> UnderReview:
    opened = store.load(stored)
    conflicts = {
        Standing.STALE: (f"{shown(stored.path)} was changed where the proposal goes, or is gone.",),
        Standing.DONE: (f"{shown(stored.path)} already is what is proposed.",),
    }.get(opened.standing, ())
    return UnderReview(stored.path, opened.document, opened.hunks, conflicts, stored.instruction, stored.id)


def apply_reviews(
    files: Sequence[tuple[UnderReview, Review]],
    journal: Journal,
    store: ProposalStore | None = None,
    on_applied: Callable[[Receipt], None] = lambda receipt: None,
) -> tuple[Receipt, ...]:
    """Write what was accepted, file by file; a stored proposal is dropped once nothing of it is undecided.

    Raises what `apply_hunks` raises; where files had been written before that, as a ConflictError that names them.
    """
    receipts: list[Receipt] = []
    for file, review in files:
        if review.accepted:
            try:
                receipt = apply_hunks(review.document, review.accepted, journal, note=file.note)
            except AppError as error:
                if not receipts:
                    raise
                written = ", ".join(shown(done.path) for done in receipts)
                raise ConflictError(f"{error} Written before that: {written}.") from error
            receipts.append(receipt)
            on_applied(receipt)
        if store is not None and file.proposal_id is not None and not review.undecided:
            store.drop(file.proposal_id)
    return tuple(receipts)
