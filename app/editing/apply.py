"""Write accepted hunks into the file they were made for, if it is still what was read, and prove what was written.

Knows nothing of models or terminals. Invariant: no bytes are written that did not come from accepted hunks of a diff,
and the receipt is made from what was read back.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.editing.diff import ByteEdit, Hunk, apply_edits, byte_edits, outside_identical
from app.editing.document import Document, reparse, resolve
from app.editing.filesystem import Filesystem, Snapshot
from app.editing.journal import Journal
from app.editing.rebase import rebase
from app.editing.replace import Purpose, replace_file
from app.editing.settle import settle_all
from app.errors import ConflictError, FileError, FileUnwritableError
from app.paths import shown


@dataclass(frozen=True)
class Receipt:
    """Proof of one apply."""

    path: str
    """The file that was replaced, links resolved."""
    before_sha256: str
    """Of the file just before (of the newer one, when hunks were rebased)."""
    after_sha256: str
    """Of the file as read back."""
    outside_identical: bool
    """Every byte outside the accepted hunks is what it was, compared with what was read back."""
    guarded: bool
    """False where the file system cannot exchange names."""
    journal_id: str
    rebased: bool = False
    """True when the file had changed since it was read and the hunks were carried over."""


def apply_hunks(
    document: Document,
    accepted: Sequence[Hunk],
    journal: Journal,
    *,
    note: str = "",
    break_links: bool = False,
    carry_over: bool = True,
    fs: Filesystem | None = None,
) -> Receipt:
    """Apply some hunks of the document's diff. `note` goes into the journal (what the edit was asked to do).

    `carry_over`: a file that changed since it was read takes the hunks where they still fit; without it, nothing.

    Raises UnchangedError when the accepted hunks change nothing, ConflictError when the file was changed where
    the hunks go, and what `replace_file` raises.
    """
    if document.target is None:
        raise FileUnwritableError(f"{shown(document.name)} came through a pipe, so there is no file to write.")
    if _resolved_now(document) != document.target:
        raise ConflictError(f"{shown(document.name)} leads to another file now; nothing was written.")
    edits: tuple[ByteEdit, ...] = ()

    def make(now: Snapshot) -> bytes:
        nonlocal edits
        if now.data == document.data:
            edits = byte_edits(document, accepted)
        elif not carry_over:
            raise ConflictError(f"{shown(document.name)} was saved again meanwhile; nothing was written.")
        else:
            edits = rebase(document, accepted, _newer(document, now))
        return apply_edits(now.data, edits)

    settle_all(journal, fs)
    replaced = replace_file(document.target, make, Purpose(note=note, break_links=break_links), journal, fs)
    return Receipt(
        path=str(document.target),
        before_sha256=replaced.before.sha256,
        after_sha256=hashlib.sha256(replaced.after).hexdigest(),
        outside_identical=outside_identical(replaced.before.data, replaced.after, edits),
        guarded=replaced.guarded,
        journal_id=replaced.entry.id,
        rebased=replaced.before.data != document.data,
    )


def _resolved_now(document: Document) -> Path:
    try:
        return resolve(document.name)
    except FileError as error:
        raise ConflictError(f"{shown(document.name)} was removed or renamed meanwhile; nothing was written.") from error


def _newer(document: Document, now: Snapshot) -> Document:
    try:
        return reparse(document, now)
    except FileError as error:
        raise ConflictError(
            f"{shown(document.name)} was changed meanwhile and is not the text that was read; nothing was written."
        ) from error
