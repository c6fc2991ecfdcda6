"""Apply where the system refuses, where the guard of names is missing, and when a signal comes meanwhile."""

import errno
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.editing.apply import apply_hunks
from app.editing.filesystem import ExchangeUnsupportedError
from app.editing.history import undo_edit
from app.editing.journal import Journal, State
from app.errors import (
    AppError,
    ConflictError,
    ExitCode,
    FileUnwritableError,
    InterruptedByUserError,
    JournalError,
)
from tests.support.edits import NEW, OLD, edit_of, others, save_by_rename, states
from tests.support.saboteur import Saboteur, as_nobody, fail_with, give_to_nobody


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EXDEV, errno.EBUSY, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("call", ["create", "write", "fsync", "exchange", "rename"])
def test_every_refusal_leaves_the_file(path: Path, journal: Journal, call: str, number: int) -> None:
    """Also a refusal that is the journal's: its calls go through the same seam here."""
    journal = Journal(journal.folder, fs=(fs := Saboteur()))
    document, hunks = edit_of(path)
    fs.before[call] = fail_with(number)
    with pytest.raises((FileUnwritableError, JournalError)) as caught:
        apply_hunks(document, hunks, journal, fs=fs)
    assert caught.value.exit_code is ExitCode.FILE
    assert (path.read_bytes(), others(path.parent), states(journal)) == (OLD, ["f.py"], [])


@pytest.mark.parametrize("call", ["create", "write", "fsync", "exchange", "unlink"])
def test_refusals_at_the_file_itself(path: Path, journal: Journal, call: str) -> None:
    fs = Saboteur()
    fs.before[call] = fail_with(errno.ENOSPC)
    with pytest.raises(FileUnwritableError, match="No space left"):
        apply_hunks(*edit_of(path), journal, fs=fs)
    if call == "unlink":  # all was done but for the old file's second name: the next start tidies up
        assert path.read_bytes() == NEW and states(journal) == [State.PENDING]
        undo_edit(str(path), journal)
    assert (path.read_bytes(), others(path.parent)) == (OLD, ["f.py"])


def test_folder_that_cannot_be_synced_takes_the_exchange_back(path: Path, journal: Journal) -> None:
    fs = Saboteur()

    def arm() -> None:
        fs.before["fsync"] = fail_with(errno.EIO)

    fs.after["exchange"] = arm
    with pytest.raises(FileUnwritableError):
        apply_hunks(*edit_of(path), journal, fs=fs)
    assert (path.read_bytes(), others(path.parent), states(journal)) == (OLD, ["f.py"], [])


def no_exchange() -> None:
    raise ExchangeUnsupportedError(errno.EINVAL, "no exchange here")


def test_without_exchange_the_receipt_says_unguarded(path: Path, journal: Journal) -> None:
    fs = Saboteur()
    fs.before["exchange"] = no_exchange
    receipt = apply_hunks(*edit_of(path), journal, fs=fs)
    assert (receipt.guarded, receipt.outside_identical) == (False, True)
    assert (path.read_bytes(), others(path.parent), states(journal)) == (NEW, ["f.py"], [State.APPLIED])
    undo_edit(str(path), journal)
    assert path.read_bytes() == OLD


def test_without_exchange_a_change_before_the_rename_is_seen(path: Path, journal: Journal) -> None:
    fs = Saboteur()

    def change() -> None:
        save_by_rename(path, b"theirs\n")()
        no_exchange()

    fs.before["exchange"] = change
    with pytest.raises(ConflictError):
        apply_hunks(*edit_of(path), journal, fs=fs)
    assert (path.read_bytes(), others(path.parent), states(journal)) == (b"theirs\n", ["f.py"], [])


def expect_refusal(kind: type[AppError], path: Path, journal: Path) -> Callable[[], None]:
    def work() -> None:
        with pytest.raises(kind):
            apply_hunks(*edit_of(path), Journal(journal))

    return work


def test_folder_closed_to_us(open_tmp: Path) -> None:
    inner = open_tmp / "inner"
    inner.mkdir()
    path = inner / "f.py"
    path.write_bytes(OLD)
    give_to_nobody(open_tmp, inner, path)
    inner.chmod(0o555)
    assert as_nobody(expect_refusal(FileUnwritableError, path, open_tmp / "journal")) == 0
    inner.chmod(0o755)
    assert (path.read_bytes(), others(inner)) == (OLD, ["f.py"])


def test_journal_closed_to_us(open_tmp: Path) -> None:
    path = open_tmp / "f.py"
    path.write_bytes(OLD)
    closed = open_tmp / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    give_to_nobody(open_tmp, path)
    assert as_nobody(expect_refusal(AppError, path, closed / "journal")) == 0
    assert (path.read_bytes(), others(open_tmp)) == (OLD, ["closed", "f.py"])


# --- ctrl-C -----------------------------------------------------------------------------------------------------------


def test_interrupt_before_the_exchange_writes_nothing(path: Path, journal: Journal) -> None:
    fs = Saboteur()
    fs.after["write"] = lambda: signal.raise_signal(signal.SIGINT)
    with pytest.raises(InterruptedByUserError) as caught:
        apply_hunks(*edit_of(path), journal, fs=fs)
    assert caught.value.exit_code is ExitCode.INTERRUPTED
    assert (path.read_bytes(), others(path.parent), states(journal)) == (OLD, ["f.py"], [])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_after_the_exchange_finishes(path: Path, journal: Journal) -> None:
    fs = Saboteur()
    fs.after["exchange"] = lambda: signal.raise_signal(signal.SIGINT)
    assert apply_hunks(*edit_of(path), journal, fs=fs).outside_identical
    assert (path.read_bytes(), others(path.parent), states(journal)) == (NEW, ["f.py"], [State.APPLIED])


def test_termination_is_delivered_once_the_file_is_whole(path: Path, journal: Journal) -> None:
    came: list[bytes] = []
    old = signal.signal(signal.SIGTERM, lambda number, frame: came.append(path.read_bytes()))
    try:
        fs = Saboteur()
        fs.after["exchange"] = lambda: signal.raise_signal(signal.SIGTERM)
        apply_hunks(*edit_of(path), journal, fs=fs)
    finally:
        signal.signal(signal.SIGTERM, old)
    assert came == [NEW]
    assert others(path.parent) == ["f.py"]


def test_apply_works_off_the_main_thread(path: Path, journal: Journal) -> None:
    document, hunks = edit_of(path)
    thread = threading.Thread(target=lambda: apply_hunks(document, hunks, journal))
    thread.start()
    thread.join()
    assert path.read_bytes() == NEW
