"""Apply on real files: what is written, what is kept, what is refused, and who changed the file meanwhile."""

import errno
import os
import struct
from pathlib import Path

import pytest

from app.editing.apply import Receipt, apply_hunks
from app.editing.document import open_bytes, open_document
from app.editing.history import undo_edit
from app.editing.journal import Journal, State
from app.errors import (
    ConflictError,
    FileAttributesError,
    FileHardLinkedError,
    FileUnwritableError,
    UnchangedError,
)
from tests.support.edits import NEW, OLD, edit_of, others, states
from tests.support.saboteur import Saboteur, as_nobody, fail_with, give_to_nobody


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
