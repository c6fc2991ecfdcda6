"""What counts as our own writing: applied, undone, redone, by any process; and nothing else."""

import hashlib
import os
from pathlib import Path

from app.editing.apply import apply_hunks
from app.editing.history import redo_edit, undo_edit
from app.editing.journal import Journal
from app.watch.ledger import Ledger
from tests.support.edits import NEW, OLD, edit_of
from tests.support.saboteur import Dying, in_child


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_what_was_written_is_ours_where_it_was_written(tmp_path: Path) -> None:
    path, journal = tmp_path / "a.txt", Journal(tmp_path / "journal")
    path.write_bytes(OLD)
    ledger = Ledger(Journal(tmp_path / "journal"))
    assert not ledger.is_ours(str(path), sha(NEW))
    apply_hunks(*edit_of(path), journal)
    assert ledger.is_ours(str(path), sha(NEW))
    assert not ledger.is_ours(str(path), sha(OLD)) and not ledger.is_ours(str(path) + "x", sha(NEW))
    undo_edit(str(path), journal)
    assert ledger.is_ours(str(path), sha(OLD))
    redo_edit(str(path), journal)
    assert ledger.is_ours(str(path), sha(NEW)) and not ledger.is_ours(str(path), sha(OLD))


def test_it_is_in_the_ledger_before_the_file_has_it(tmp_path: Path) -> None:
    path, journal = tmp_path / "a.txt", Journal(tmp_path / "journal")
    calls = 0
    while True:  # killed at every call in turn, the file is old, or the ledger knows the new bytes
        path.write_bytes(OLD)
        calls += 1
        code = in_child(lambda left=calls: apply_hunks(*edit_of(path), journal, fs=Dying(left, True)))  # type: ignore[misc]
        assert path.read_bytes() == OLD or Ledger(journal).is_ours(str(path), sha(path.read_bytes()))
        if code == 0:
            break
    assert calls > 5


def test_entries_are_read_once(tmp_path: Path) -> None:
    path, journal = tmp_path / "a.txt", Journal(tmp_path / "journal")
    path.write_bytes(OLD)
    apply_hunks(*edit_of(path), journal)
    ledger = Ledger(journal)
    assert ledger.is_ours(str(path), sha(NEW))
    for entry in os.scandir(tmp_path / "journal"):
        Path(entry.path).write_bytes(b"")
    assert ledger.is_ours(str(path), sha(NEW))
