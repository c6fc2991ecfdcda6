"""Undo and redo: order, scope, conflicts; by the same safe replacement as an edit."""

import os
from pathlib import Path

import pytest

from app.editing.apply import apply_hunks
from app.editing.history import entries, redo_edit, undo_edit
from app.editing.journal import Journal, State
from app.errors import ConflictError, ExitCode, FileHardLinkedError, JournalError, NothingToUndoError
from tests.support.edits import edit_of

A, B, C = b"a\n", b"b\n", b"c\n"


class Desk:
    """Two files, one of them in a folder of its own, and a journal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "f.py"
        self.deep = folder / "deep" / "g.py"
        self.deep.parent.mkdir()
        self.path.write_bytes(A)
        self.deep.write_bytes(A)
        self.journal = Journal(folder / "journal")

    def apply(self, new: bytes, path: Path | None = None) -> None:
        apply_hunks(*edit_of(path or self.path, new), self.journal)

    def undo(self, file: Path | None = None) -> bytes:
        step = undo_edit(None if file is None else str(file), self.journal, cwd=self.folder)
        return step.entry.target.read_bytes()

    def redo(self, file: Path | None = None) -> bytes:
        step = redo_edit(None if file is None else str(file), self.journal, cwd=self.folder)
        return step.entry.target.read_bytes()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_back_and_forth_through_two_edits(desk: Desk) -> None:
    desk.apply(B)
    desk.apply(C)
    assert [desk.undo(desk.path), desk.undo(desk.path)] == [B, A]
    with pytest.raises(NothingToUndoError):
        desk.undo(desk.path)
    assert [desk.redo(desk.path), desk.redo(desk.path)] == [B, C]
    with pytest.raises(NothingToUndoError):
        desk.redo(desk.path)
    assert [desk.undo(desk.path), desk.redo(desk.path), desk.undo(desk.path)] == [B, C, B]


def test_hashes_of_a_step(desk: Desk) -> None:
    desk.apply(B)
    (entry,) = desk.journal.entries()
    step = undo_edit(str(desk.path), desk.journal)
    assert (step.before_sha256, step.after_sha256, step.guarded) == (entry.after_sha256, entry.before_sha256, True)
    again = redo_edit(str(desk.path), desk.journal)
    assert (again.before_sha256, again.after_sha256) == (entry.before_sha256, entry.after_sha256)
    assert again.entry == entry


def test_without_a_file_the_newest_of_the_tree(desk: Desk) -> None:
    desk.apply(B)
    desk.apply(B, desk.deep)
    assert desk.undo() == A and desk.deep.read_bytes() == A and desk.path.read_bytes() == B
    assert desk.undo() == A and desk.path.read_bytes() == A
    # Redo starts with what was undone last.
    desk.redo()
    assert (desk.path.read_bytes(), desk.deep.read_bytes()) == (B, A)
    desk.redo()
    assert (desk.path.read_bytes(), desk.deep.read_bytes()) == (B, B)


def test_the_tree_ends_at_the_current_folder(desk: Desk) -> None:
    desk.apply(B)
    with pytest.raises(NothingToUndoError):
        undo_edit(None, desk.journal, cwd=desk.deep.parent)
    sibling = desk.folder / "dee"  # a name that the folder's name starts with
    sibling.mkdir()
    desk.apply(B, desk.deep)
    with pytest.raises(NothingToUndoError):
        undo_edit(None, desk.journal, cwd=sibling)


def test_the_file_may_be_named_through_a_link(desk: Desk) -> None:
    desk.apply(B)
    link = desk.folder / "link"
    link.symlink_to(desk.path)
    assert desk.undo(link) == A
    assert os.path.islink(link)


def test_a_new_apply_clears_the_redo_of_its_file_only(desk: Desk) -> None:
    desk.apply(B)
    desk.apply(B, desk.deep)
    desk.undo(desk.path)
    desk.undo(desk.deep)
    desk.apply(C)
    with pytest.raises(NothingToUndoError):
        desk.redo(desk.path)
    assert desk.redo(desk.deep) == B
    assert desk.undo(desk.path) == A


@pytest.mark.parametrize("theirs", [b"theirs\n", b""])
def test_a_file_changed_since_is_a_conflict(desk: Desk, theirs: bytes) -> None:
    desk.apply(B)
    desk.path.write_bytes(theirs)
    with pytest.raises(ConflictError, match="no longer what the edit wrote") as caught:
        desk.undo(desk.path)
    assert caught.value.exit_code is ExitCode.CONFLICT
    assert desk.path.read_bytes() == theirs
    desk.path.write_bytes(B)
    desk.undo(desk.path)
    desk.path.write_bytes(theirs)
    with pytest.raises(ConflictError, match="no longer what the edit was made from"):
        desk.redo(desk.path)


def test_a_file_that_is_gone_is_a_conflict(desk: Desk) -> None:
    desk.apply(B)
    desk.path.unlink()
    with pytest.raises(ConflictError, match="removed"):
        desk.undo(desk.path)
    assert not desk.path.exists()
    desk.deep.write_bytes(A)
    desk.apply(B, desk.deep)
    desk.deep.unlink()
    desk.deep.parent.rmdir()
    with pytest.raises(ConflictError):
        desk.undo(desk.deep)


def test_a_mode_changed_since_is_kept(desk: Desk) -> None:
    desk.apply(B)
    desk.path.chmod(0o700)
    assert desk.undo(desk.path) == A
    assert desk.path.stat().st_mode & 0o777 == 0o700


def test_a_name_added_since_is_not_parted(desk: Desk) -> None:
    desk.apply(B)
    os.link(desk.path, desk.folder / "other")
    with pytest.raises(FileHardLinkedError):
        desk.undo(desk.path)


def test_a_damaged_entry_is_refused_and_hides_no_other(desk: Desk) -> None:
    desk.apply(B)
    (entry,) = desk.journal.entries()
    file = desk.journal.folder / f"{entry.id}.applied"
    file.write_bytes(file.read_bytes().replace(b"a\nb\n", b"x\nb\n"))
    with pytest.raises(JournalError):
        desk.undo(desk.path)
    assert desk.path.read_bytes() == B
    desk.apply(C)
    assert desk.undo(desk.path) == B


def test_entries_newest_first_of_one_file_or_all(desk: Desk) -> None:
    desk.apply(B)
    desk.apply(B, desk.deep)
    desk.apply(C)
    assert [entry.target for entry in entries(None, desk.journal)] == [desk.path, desk.deep, desk.path]
    assert [entry.target for entry in entries(str(desk.deep), desk.journal)] == [desk.deep]
    desk.undo(desk.path)
    assert [entry.state for entry in entries(None, desk.journal)] == [State.UNDONE, State.APPLIED, State.APPLIED]


def test_a_folder_means_the_files_under_it(desk: Desk) -> None:
    desk.apply(B, desk.deep)
    desk.apply(B)
    assert [entry.target for entry in entries(str(desk.deep.parent), desk.journal)] == [desk.deep]
    assert desk.undo(desk.deep.parent) == A and desk.deep.read_bytes() == A and desk.path.read_bytes() == B
    assert desk.redo(desk.deep.parent) == B
    (desk.folder / "empty").mkdir()
    with pytest.raises(NothingToUndoError, match=r"the files under .*empty in the journal"):
        desk.undo(desk.folder / "empty")


def test_a_damaged_entry_that_is_passed_over_is_named(desk: Desk) -> None:
    desk.apply(B)
    desk.apply(C)
    older, newer = desk.journal.entries()
    damaged = next(desk.journal.folder.glob(f"{newer.id}.*"))
    damaged.write_bytes(b"no entry")
    desk.path.write_bytes(B)
    step = undo_edit(str(desk.path), desk.journal, cwd=desk.folder)
    assert (step.entry.id, step.damaged) == (older.id, (newer.id,))
    with pytest.raises(NothingToUndoError, match="1 of its entries cannot be read"):
        desk.undo(desk.path)
