"""Apply on real files: what is written, what is kept, what is refused, and who changed the file meanwhile."""

import errno
import os
import signal
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.editing.apply import Receipt, apply_hunks
from app.editing.document import open_bytes, open_document
from app.editing.filesystem import ExchangeUnsupportedError
from app.editing.history import undo_edit
from app.editing.journal import Journal, State
from app.errors import (
    AppError,
    ConflictError,
    ExitCode,
    FileAttributesError,
    FileBusyError,
    FileHardLinkedError,
    FileUnwritableError,
    InterruptedByUserError,
    JournalError,
    UnchangedError,
)
from tests.support.edits import NEW, OLD, edit_of, others
from tests.support.saboteur import Saboteur, as_nobody, fail_with, give_to_nobody


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f.py"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def states(journal: Journal) -> list[State]:
    return [entry.state for entry in journal.entries()]


def write_in_place(path: Path, data: bytes) -> Callable[[], None]:
    """As careless programs save: the same file gets other bytes."""

    def save() -> None:
        path.write_bytes(data)

    return save


def save_by_rename(path: Path, data: bytes) -> Callable[[], None]:
    """As editors save: a new file takes the name."""

    def save() -> None:
        new = path.with_name("editor's own")
        new.write_bytes(data)
        new.rename(path)

    return save


def test_receipt_and_bytes(path: Path, journal: Journal) -> None:
    document, hunks = edit_of(path)
    receipt = apply_hunks(document, hunks, journal, note="number them")
    assert path.read_bytes() == NEW
    entry = journal.entries()[0]
    assert receipt == Receipt(
        path=str(path),
        before_sha256=document.sha256,
        after_sha256=open_document(path).sha256,
        outside_identical=True,
        guarded=True,
        journal_id=entry.id,
    )
    assert (entry.state, entry.note, entry.path) == (State.APPLIED, "number them", str(path))
    assert journal.contents(entry) == (OLD, NEW)
    assert others(path.parent) == ["f.py"]


def test_a_subset_of_hunks(path: Path, journal: Journal) -> None:
    document, hunks = edit_of(path)
    apply_hunks(document, hunks[1:], journal)
    assert path.read_bytes() == OLD.replace(b"line 30\n", b"thirty\n")


def test_identical_result_writes_nothing(path: Path, journal: Journal) -> None:
    document, _ = edit_of(path)
    before = path.stat()
    with pytest.raises(UnchangedError):
        apply_hunks(document, (), journal)
    assert path.stat() == before
    assert states(journal) == []


def test_pipe_text_is_never_written(journal: Journal) -> None:
    with pytest.raises(FileUnwritableError):
        apply_hunks(open_bytes(OLD, "-"), (), journal)


def test_the_file_is_never_open_for_writing(path: Path, journal: Journal) -> None:
    document, hunks = edit_of(path)
    with path.open("rb") as reader:
        apply_hunks(document, hunks, journal)
        assert reader.read() == OLD  # the old file itself was not touched


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o4755, 0o2711, 0o640])
def test_mode_is_kept(path: Path, journal: Journal, mode: int) -> None:
    path.chmod(mode)
    apply_hunks(*edit_of(path), journal)
    assert path.stat().st_mode & 0o7777 == mode
    undo_edit(str(path), journal)
    assert (path.stat().st_mode & 0o7777, path.read_bytes()) == (mode, OLD)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give files away")
def test_owner_is_kept(path: Path, journal: Journal) -> None:
    os.chown(path, 12345, 54321)
    path.chmod(0o6755)  # a change of owner clears these, so the order matters
    apply_hunks(*edit_of(path), journal)
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (12345, 54321, 0o6755)


def set_xattr(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")


def test_extended_attributes_are_kept(path: Path, journal: Journal) -> None:
    set_xattr(path, "user.note", b"\0kept")
    apply_hunks(*edit_of(path), journal)
    assert os.getxattr(path, "user.note") == b"\0kept"
    undo_edit(str(path), journal)
    assert os.getxattr(path, "user.note") == b"\0kept"


def access_list(user: int) -> bytes:
    """A POSIX access list in the kernel's own form: owner, one more user, group, mask, others."""
    entries = [(1, 6, -1), (2, 6, user), (4, 4, -1), (0x10, 6, -1), (0x20, 4, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


def test_access_lists_are_kept_and_none_is_inherited(path: Path, journal: Journal) -> None:
    plain = path.with_name("plain.py")
    plain.write_bytes(OLD)
    set_xattr(path, "system.posix_acl_access", access_list(12345))
    set_xattr(path.parent, "system.posix_acl_default", access_list(54321))
    for file in (path, plain):
        before = os.listxattr(file), file.stat().st_mode
        apply_hunks(*edit_of(file), journal)
        assert (os.listxattr(file), file.stat().st_mode) == before
    assert os.getxattr(path, "system.posix_acl_access") == access_list(12345)
    assert os.listxattr(plain) == []


def test_what_cannot_be_kept_is_refused(path: Path, journal: Journal) -> None:
    fs = Saboteur()
    fs.before["take_attributes"] = fail_with(errno.EPERM)
    with pytest.raises(FileAttributesError, match="nothing was written"):
        apply_hunks(*edit_of(path), journal, fs=fs)
    assert (path.read_bytes(), others(path.parent), states(journal)) == (OLD, ["f.py"], [])


def test_attributes_lost_without_an_error_are_seen(path: Path, journal: Journal) -> None:
    class Forgetful(Saboteur):
        def take_attributes(self, fd: int, like: object) -> None:
            pass

    with pytest.raises(FileAttributesError):
        apply_hunks(*edit_of(path), journal, fs=Forgetful())
    assert (path.read_bytes(), others(path.parent), states(journal)) == (OLD, ["f.py"], [])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file of another user")
def test_another_users_file_is_refused_whole(open_tmp: Path) -> None:
    path = open_tmp / "f.py"
    path.write_bytes(OLD)
    path.chmod(0o666)
    give_to_nobody(open_tmp)

    def work() -> None:
        with pytest.raises(FileAttributesError):
            apply_hunks(*edit_of(path), Journal(open_tmp / "journal"))

    assert as_nobody(work) == 0
    assert (path.read_bytes(), path.stat().st_uid, others(open_tmp)) == (OLD, 0, ["f.py"])


def test_link_stays_and_its_target_is_replaced(path: Path, journal: Journal) -> None:
    folder = path.parent / "links"
    folder.mkdir()
    (folder / "second").symlink_to("../f.py")
    (folder / "first").symlink_to("second")
    receipt = apply_hunks(*edit_of(folder / "first"), journal)
    assert receipt.path == str(path)
    assert (os.readlink(folder / "first"), os.readlink(folder / "second")) == ("second", "../f.py")
    assert (path.read_bytes(), others(folder)) == (NEW, ["first", "second"])


def test_link_that_leads_elsewhere_now_is_a_conflict(path: Path, journal: Journal) -> None:
    link = path.parent / "link"
    link.symlink_to("f.py")
    document, hunks = edit_of(link)
    (path.parent / "g.py").write_bytes(OLD)
    link.unlink()
    link.symlink_to("g.py")
    with pytest.raises(ConflictError, match="another file"):
        apply_hunks(document, hunks, journal)
    assert (path.parent / "g.py").read_bytes() == OLD


def test_hard_link_is_refused_or_broken_on_request(path: Path, journal: Journal) -> None:
    other = path.parent / "other"
    other.hardlink_to(path)
    document, hunks = edit_of(path)
    with pytest.raises(FileHardLinkedError):
        apply_hunks(document, hunks, journal)
    assert path.read_bytes() == OLD
    apply_hunks(document, hunks, journal, break_links=True)
    assert (path.read_bytes(), other.read_bytes()) == (NEW, OLD)


@pytest.mark.parametrize("name", [b"[id] b.py", b"two\nlines.py", b"\xff\xfe.py", b"-rf", b"." * 3 + b"x" * 250])
def test_odd_names(tmp_path: Path, journal: Journal, name: bytes) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    path.write_bytes(OLD)
    apply_hunks(*edit_of(path), journal)
    assert path.read_bytes() == NEW
    assert undo_edit(str(path), journal).entry.path == str(path)
    assert path.read_bytes() == OLD


# --- the file changed meanwhile ---------------------------------------------------------------------------------------


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


# --- the system refuses -----------------------------------------------------------------------------------------------


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
