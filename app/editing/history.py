"""Undo and redo of applied edits, from the journal alone; needs no git.

Knows nothing of hunks or terminals. Invariant: a file is changed only when it still is what the entry left, and by the
same safe replacement as an edit.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from app.editing.filesystem import Filesystem, Snapshot
from app.editing.journal import Entry, Journal, Kind, State
from app.editing.replace import Purpose, replace_file
from app.editing.settle import settle_all
from app.errors import ConflictError, NothingToUndoError
from app.paths import shown


@dataclass(frozen=True)
class Step:
    """An undo or redo that is done."""

    entry: Entry
    """The edit it is about, in its new state."""
    before_sha256: str
    after_sha256: str
    guarded: bool
    """False where the file system cannot exchange names."""
    damaged: tuple[str, ...] = ()
    """Ids of younger entries that cannot be read: whether one is of the same file is not known."""


def undo_edit(file: str | None, journal: Journal, *, cwd: Path | None = None, fs: Filesystem | None = None) -> Step:
    """Take back the newest applied edit of `file` (of the tree, where it is a folder), or, without one, of the tree
    under `cwd` (the current folder).

    Raises NothingToUndoError (5), ConflictError when the file is no longer what the edit wrote (6), and what
    `replace_file` raises.
    """
    settle_all(journal, fs)
    every = journal.entries()
    found = _in_scope([entry for entry in every if entry.state is State.APPLIED], file, cwd)
    if not found:
        raise _nothing("applied", every, file, cwd)
    damaged = [entry.id for entry in every[every.index(found[-1]) :] if entry.state is State.DAMAGED]
    return replace(_step(found[-1], Kind.UNDO, journal, fs), damaged=tuple(damaged))


def redo_edit(file: str | None, journal: Journal, *, cwd: Path | None = None, fs: Filesystem | None = None) -> Step:
    """Apply again the edit that was undone last, of `file` or of the tree under `cwd`. Raises as `undo_edit`."""
    settle_all(journal, fs)
    every = journal.entries()
    found = _in_scope([entry for entry in every if entry.state is State.UNDONE], file, cwd)
    if not found:
        raise _nothing("undone", every, file, cwd)
    return _step(max(found, key=lambda entry: entry.order), Kind.REDO, journal, fs)


def entries(file: str | None, journal: Journal, fs: Filesystem | None = None) -> list[Entry]:
    """The journal, newest first; of one file or of the tree under a folder when given."""
    settle_all(journal, fs)
    found = journal.entries()
    if file is not None:
        found = _in_scope(found, file, None)
    return found[::-1]


def _step(edit: Entry, kind: Kind, journal: Journal, fs: Filesystem | None) -> Step:
    before, after = journal.contents(edit)
    expected, wanted = (after, before) if kind is Kind.UNDO else (before, after)

    def make(now: Snapshot) -> bytes:
        if now.data != expected:
            raise ConflictError(
                f"{shown(edit.path)} is no longer what the edit {'wrote' if kind is Kind.UNDO else 'was made from'}, "
                f"so it cannot be {'undone' if kind is Kind.UNDO else 'redone'}; nothing was written."
            )
        return wanted

    replaced = replace_file(edit.target, make, Purpose(kind, edit.id, edit.note), journal, fs)
    return Step(replaced.entry, *_hashes(edit, kind), guarded=replaced.guarded)


def _hashes(edit: Entry, kind: Kind) -> tuple[str, str]:
    if kind is Kind.UNDO:
        return edit.after_sha256, edit.before_sha256
    return edit.before_sha256, edit.after_sha256


def _in_scope(found: list[Entry], file: str | None, cwd: Path | None) -> list[Entry]:
    if file is not None:
        # Not strict: the file may be gone, which is for the replacement to say.
        target = Path(os.path.realpath(file))
        if not target.is_dir():
            return [entry for entry in found if entry.path and entry.target == target]
    tree = Path(os.path.realpath(file or cwd or Path.cwd()))
    return [entry for entry in found if entry.path and entry.target.is_relative_to(tree)]


def _nothing(state: str, every: list[Entry], file: str | None, cwd: Path | None) -> NothingToUndoError:
    scope = (
        shown(file)
        if file is not None and not Path(file).is_dir()
        else f"the files under {shown(file or cwd or Path.cwd())}"
    )
    damaged = sum(entry.state is State.DAMAGED for entry in every)
    also = f"; {damaged} of its entries cannot be read (`redraft history` lists them)" if damaged else ""
    return NothingToUndoError(f"There is no {state} edit of {scope} in the journal{also}.")
