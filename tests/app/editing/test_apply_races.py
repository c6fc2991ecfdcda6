"""Apply while another program changes the file, or holds it open for writing."""

import os
import threading
from pathlib import Path

import pytest

from app.editing.apply import apply_hunks
from app.editing.history import undo_edit
from app.editing.journal import Journal, State
from app.errors import (
    ConflictError,
    ExitCode,
    FileBusyError,
)
from tests.support.edits import NEW, OLD, edit_of, others, save_by_rename, states, write_in_place
from tests.support.saboteur import Saboteur


def test_change_elsewhere_is_kept_and_the_hunks_follow(path: Path, journal: Journal) -> None:
    document, hunks = edit_of(path)
    theirs = b"# added on top\n" + OLD.replace(b"line 15\n", b"fifteen\n")
    path.write_bytes(theirs)
    receipt = apply_hunks(document, hunks, journal)
    assert receipt.rebased and receipt.outside_identical
    assert path.read_bytes() == b"# added on top\n" + NEW.replace(b"line 15\n", b"fifteen\n")
    undo_edit(str(path), journal)
    assert path.read_bytes() == theirs


@pytest.mark.parametrize(
    "theirs",
    [
        OLD.replace(b"line 30\n", b"theirs\n"),
        OLD.replace(b"line 29\n", b"theirs\n"),
        OLD.replace(b"line 31\n", b""),
        OLD.replace(b"line 3\n", b""),
        OLD.replace(b"\n", b"\r\n"),
        b"other\n",
        b"",
        b"bin\0ary",
    ],
)
def test_change_at_the_same_place_is_a_conflict(path: Path, journal: Journal, theirs: bytes) -> None:
    document, hunks = edit_of(path)
    path.write_bytes(theirs)
    with pytest.raises(ConflictError) as caught:
        apply_hunks(document, hunks, journal)
    assert caught.value.exit_code is ExitCode.CONFLICT
    assert (path.read_bytes(), others(path.parent), states(journal)) == (theirs, ["f.py"], [])


def test_file_removed_or_turned_into_something_else_is_a_conflict(path: Path, journal: Journal) -> None:
    document, hunks = edit_of(path)
    path.unlink()
    with pytest.raises(ConflictError, match="removed"):
        apply_hunks(document, hunks, journal)
    path.mkdir()
    with pytest.raises(ConflictError):
        apply_hunks(document, hunks, journal)


@pytest.mark.parametrize("leases", [True, False])
@pytest.mark.parametrize("data", [b"theirs\n", OLD])
def test_saved_by_rename_between_the_last_hash_and_the_exchange(
    path: Path, journal: Journal, data: bytes, leases: bool
) -> None:
    fs = Saboteur(leases)
    fs.before["exchange"] = save_by_rename(path, data)
    document, hunks = edit_of(path)
    if data == OLD:  # the same bytes, mode and owner: nothing of theirs to lose
        apply_hunks(document, hunks, journal, fs=fs)
        assert (path.read_bytes(), others(path.parent)) == (NEW, ["f.py"])
        return
    with pytest.raises(ConflictError, match="its change was kept, nothing was written"):
        apply_hunks(document, hunks, journal, fs=fs)
    assert (path.read_bytes(), others(path.parent), states(journal)) == (b"theirs\n", ["f.py"], [])


def test_mode_changed_between_the_last_hash_and_the_exchange(path: Path, journal: Journal) -> None:
    fs = Saboteur()
    fs.before["exchange"] = lambda: path.chmod(0o600)
    with pytest.raises(ConflictError):
        apply_hunks(*edit_of(path), journal, fs=fs)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (OLD, 0o600)


def test_written_in_place_where_there_are_no_leases(path: Path, journal: Journal) -> None:
    fs = Saboteur(leases=False)
    fs.before["exchange"] = write_in_place(path, b"theirs\n")
    with pytest.raises(ConflictError):
        apply_hunks(*edit_of(path), journal, fs=fs)
    assert (path.read_bytes(), others(path.parent)) == (b"theirs\n", ["f.py"])


def test_removed_between_the_last_hash_and_the_exchange(path: Path, journal: Journal) -> None:
    fs = Saboteur()
    fs.before["exchange"] = path.unlink
    with pytest.raises(ConflictError):
        apply_hunks(*edit_of(path), journal, fs=fs)
    assert (others(path.parent), states(journal)) == ([], [])


def test_replaced_by_a_folder_or_a_link_between_the_last_hash_and_the_exchange(path: Path, journal: Journal) -> None:
    def to_folder() -> None:
        path.unlink()
        path.mkdir()

    document, hunks = edit_of(path)
    fs = Saboteur()
    fs.before["exchange"] = to_folder
    with pytest.raises(ConflictError):
        apply_hunks(document, hunks, journal, fs=fs)
    assert path.is_dir() and others(path.parent) == ["f.py"]


def test_saved_right_after_the_exchange(path: Path, journal: Journal) -> None:
    fs = Saboteur()
    fs.after["exchange"] = save_by_rename(path, b"theirs\n")
    with pytest.raises(ConflictError, match="was written, and another program changed it"):
        apply_hunks(*edit_of(path), journal, fs=fs)
    assert (path.read_bytes(), others(path.parent)) == (b"theirs\n", ["f.py"])
    assert journal.contents(journal.entries()[0]) == (OLD, NEW)


def test_saved_between_the_exchange_and_the_exchange_back(path: Path, journal: Journal) -> None:
    """Two saves in a row hit both exchanges: nobody's bytes may go, so both files stay and are named."""
    fs = Saboteur()

    def first() -> None:
        save_by_rename(path, b"first\n")()
        fs.after["exchange"] = arm_second

    def arm_second() -> None:
        fs.before["exchange"] = save_by_rename(path, b"second\n")

    fs.before["exchange"] = first
    with pytest.raises(ConflictError) as caught:
        apply_hunks(*edit_of(path), journal, fs=fs)
    names = others(path.parent)
    assert len(names) == 2 and all(name in str(caught.value) for name in names)
    assert sorted((path.parent / name).read_bytes() for name in names) == [b"first\n", b"second\n"]
    assert states(journal) == [State.CONFLICT]
    assert journal.contents(journal.entries()[0]) == (OLD, NEW)


def test_saved_between_the_exchange_and_the_look(path: Path, journal: Journal) -> None:
    """A surprise came out, and our text is gone from the path too: nothing is exchanged back over a newer save."""
    fs = Saboteur()
    fs.before["exchange"] = save_by_rename(path, b"first\n")
    fs.after["exchange"] = save_by_rename(path, b"second\n")
    with pytest.raises(ConflictError):
        apply_hunks(*edit_of(path), journal, fs=fs)
    assert path.read_bytes() == b"second\n"
    assert sorted((path.parent / name).read_bytes() for name in others(path.parent)) == [b"first\n", b"second\n"]


# --- a program that holds the file open for writing -------------------------------------------------------------------


def test_a_file_open_for_writing_is_left_alone(path: Path, journal: Journal) -> None:
    document, hunks = edit_of(path)
    with path.open("ab") as writer:
        with pytest.raises(FileBusyError) as caught:
            apply_hunks(document, hunks, journal)
        writer.write(b"more\n")
    assert caught.value.exit_code is ExitCode.CONFLICT
    assert (path.read_bytes(), states(journal)) == (OLD + b"more\n", [])


@pytest.mark.parametrize("moment", ["fsync", "exchange"])
def test_a_writer_that_comes_meanwhile_gets_the_file_it_opened(path: Path, journal: Journal, moment: str) -> None:
    """Its open waits for our lease; whatever it then writes must be in the file that the name leads to."""

    def write() -> None:
        with path.open("ab") as file:
            file.write(b"theirs\n")

    def start() -> None:
        writer.start()
        while not fs.held.writer_waits():
            assert writer.is_alive()

    writer = threading.Thread(target=write)
    fs = Saboteur()
    fs.before[moment] = start
    with pytest.raises(FileBusyError):
        apply_hunks(*edit_of(path), journal, fs=fs)
    writer.join()
    assert (path.read_bytes(), others(path.parent), states(journal)) == (OLD + b"theirs\n", ["f.py"], [])


def test_a_writer_that_comes_right_after_the_exchange(path: Path, journal: Journal) -> None:
    """It opens the new file; the open of the old one that was turned away lost nothing."""

    def come() -> None:
        with pytest.raises(BlockingIOError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        fs.after["exchange"] = write_in_place(path, b"theirs\n")

    fs = Saboteur()
    fs.before["exchange"] = come
    with pytest.raises(ConflictError, match="was written, and another program changed it"):
        apply_hunks(*edit_of(path), journal, fs=fs)
    assert (path.read_bytes(), others(path.parent), states(journal)) == (b"theirs\n", ["f.py"], [State.APPLIED])
