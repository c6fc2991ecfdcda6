"""Patches of anybody's: what fits is given, what does not is said, and nothing outside of the folder is touched."""

import difflib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.diff import join, make_hunks
from app.editing.document import Document
from app.editing.patch import is_exact, patch_bytes
from app.editing.patch_read import PatchedText, read_patch
from app.editing.result import make_result
from app.errors import ReplyEmptyError, UsageError
from tests.support.byte_forms import documents, rewrites

SOURCE = "".join(f"line {number}\n" for number in range(30))


def patch(old: str, new: str, start: int = 1, name: str = "f.txt") -> bytes:
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    body = "".join(f"-{line}" for line in old_lines) + "".join(f"+{line}" for line in new_lines)
    header = f"--- a/{name}\n+++ b/{name}\n@@ -{start},{len(old_lines)} +{start},{len(new_lines)} @@\n"
    return (header + body).encode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "f.txt").write_text(SOURCE)
    return folder


def only(data: bytes, root: Path) -> PatchedText:
    (file,) = read_patch(data, root)
    return file


@settings(derandomize=True, deadline=None, max_examples=200)
@given(data=st.data(), document=documents())
def test_our_own_patches_come_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, document: Document
) -> None:
    if not is_exact(document) or document.codec.name != "utf-8":
        return
    try:
        hunks = make_hunks(make_result(document, data.draw(rewrites(document))))
    except ReplyEmptyError:
        return
    if not hunks:
        return
    root = tmp_path_factory.mktemp("root")
    (root / "né w.txt").write_bytes(document.data)
    file = only(patch_bytes(document, hunks, "né w.txt"), root)
    assert file.conflicts == ()
    assert file.document is not None and file.document.data == document.data
    assert join(file.document, file.hunks) == join(document, hunks)
    assert [hunk.index for hunk in file.hunks] == list(range(1, len(file.hunks) + 1))


def test_a_hunk_that_moved_is_found_where_it_is_the_only_one(root: Path) -> None:
    file = only(patch("line 8\n", "eight\n", start=3), root)
    assert file.hunks[0].changes[0].first == 8
    (root / "f.txt").write_text("same\n" * 5)
    file = only(patch("same\n", "other\n", start=9), root)
    assert file.hunks == () and "fits in 5 places" in file.conflicts[0]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (patch("line  8\n", "eight\n", start=9), "not what it expects"),
        (patch("line 8\r\n", "eight\r\n", start=9), "not what it expects"),
        (b"--- a/f.txt\n+++ b/f.txt\n@@ -9 +9 @@\n-line 8\n+e\xff\n", "no utf-8 text"),
        (b"--- a/f.txt\n+++ b/f.txt\n@@ -9 +9 @@\n-line 8\n+e\n\\ No newline at end of file\n", "join two lines"),
        (patch(SOURCE, ""), "leave nothing"),
        (patch("line 1\n", "x\n", name="gone.txt"), "does not exist"),
        (b"--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n", "would be made"),
        (b"--- a/f.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-line 0\n", "would be removed"),
    ],
)
def test_what_does_not_fit_is_a_conflict(root: Path, data: bytes, why: str) -> None:
    file = only(data, root)
    assert file.hunks == ()
    assert len(file.conflicts) == 1 and why in file.conflicts[0]


def test_one_hunk_may_fit_where_another_does_not(root: Path) -> None:
    data = patch("line 2\n", "two\n", start=3) + b"@@ -11 +11 @@\n-never\n+ever\n@@ -21 +21 @@\n-line 20\n+twenty\n"
    file = only(data, root)
    assert [hunk.changes[0].first for hunk in file.hunks] == [2, 20]
    assert file.conflicts == ("Hunk 2 of f.txt does not fit: line 11 and those around it are not what it expects.",)


def test_a_mode_that_would_change_is_said_beside_the_lines(root: Path) -> None:
    modes = b"diff --git a/f.txt b/f.txt\nold mode 100644\nnew mode 100755\n"
    file = only(modes + patch("line 2\n", "two\n", start=3), root)
    assert [hunk.changes[0].first for hunk in file.hunks] == [2]
    assert file.conflicts == ("f.txt would get another mode; only changes of lines can be reviewed.",)
    assert only(modes, root).hunks == ()


def test_a_file_without_a_name_is_said(root: Path) -> None:
    with pytest.raises(UsageError, match="without a name"):
        read_patch(patch("line 0\n", "x\n", name=""), root)


@pytest.mark.parametrize("name", ["../f.txt", "/etc/passwd", "sub/../../f.txt", "link/f.txt"])
def test_no_path_leads_outside(root: Path, name: str) -> None:
    (root.parent / "f.txt").write_text(SOURCE)
    (root / "link").symlink_to(root.parent)
    bad = f"--- {name}\n+++ {name}\n@@ -1 +1 @@\n-line 0\n+x\n".encode()
    with pytest.raises(UsageError, match=r"outside"):
        read_patch(bad, root)
    with pytest.raises(UsageError, match=r"outside"):
        read_patch(patch("line 0\n", "x\n") + bad, root)


def test_a_link_inside_may_be_followed(root: Path) -> None:
    (root / "link.txt").symlink_to("f.txt")
    assert only(patch("line 0\n", "x\n", name="link.txt"), root).hunks
    with pytest.raises(UsageError, match="twice"):
        read_patch(patch("line 0\n", "x\n") + patch("line 1\n", "x\n", 2, "link.txt"), root)


@pytest.mark.parametrize(
    "data", [b"", b"hello\n", b"--- a/f.txt\n+++ b/f.txt\n@@ -1,5 +1 @@\n-line 0\n", b"@@ -1 +1 @@\n"]
)
def test_what_is_no_patch_is_said(root: Path, data: bytes) -> None:
    with pytest.raises(UsageError):
        read_patch(data, root)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(data=st.binary(max_size=200), cut=st.integers(0, 60))
def test_no_bytes_bring_it_down(tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int) -> None:
    good = patch("line 0\n", "x\n")
    for attempt in (data, good[:cut] + data + good[cut:]):
        try:
            read_patch(attempt, tmp_path_factory.getbasetemp())
        except UsageError:
            pass


CRLF = SOURCE.replace("\n", "\r\n")
GIT = "diff --git a/f.txt b/f.txt\nindex 1..2 100644\n"


@pytest.mark.parametrize("git", ["", GIT])
@pytest.mark.parametrize(
    ("before", "after"), [(SOURCE, SOURCE.replace("line 5\n", "five\n")), (SOURCE[:-1], SOURCE[:-1] + "!")]
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_patch_whose_line_ends_were_converted_fits_a_file_of_either_line_end(
    root: Path, git: str, before: str, after: str, ending: str
) -> None:
    (root / "f.txt").write_bytes(before.replace("\n", ending).encode())
    lines = list(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/f.txt", "b/f.txt"))
    text = git + "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    file = only(text.replace("\n", "\r\n").encode(), root)
    assert (file.name, file.conflicts) == ("f.txt", ())
    assert file.document is not None
    assert join(file.document, file.hunks) == after.replace("\n", ending).encode()


def test_a_converted_patch_that_only_adds_brings_no_carriage_return_into_a_file_without(root: Path) -> None:
    data = b"--- a/f.txt\r\n+++ b/f.txt\r\n@@ -30,0 +31,1 @@\r\n+more\r\n"
    file = only(data, root)
    assert file.document is not None and join(file.document, file.hunks) == f"{SOURCE}more\n".encode()


def test_carriage_returns_of_content_are_exact_where_the_headers_have_none(root: Path) -> None:
    (root / "f.txt").write_bytes(CRLF.encode())
    file = only(patch("line 5\r\n", "five\r\n", 6), root)
    assert file.document is not None
    assert join(file.document, file.hunks) == CRLF.replace("line 5\r", "five\r").encode()
    (root / "f.txt").write_text(SOURCE)
    assert only(patch("line 5\r\n", "five\r\n", 6), root).conflicts
    assert only(patch("line 5\n", "line 5\r\n", 6), root).conflicts == ()


def test_lines_of_content_that_look_like_headers_keep_their_carriage_returns(root: Path) -> None:
    (root / "f.txt").write_bytes(b"-- a/f.txt\r\nb\r\n")
    file = only(b"--- a/f.txt\r\n+++ b/f.txt\r\n@@ -1,2 +1 @@\r\n--- a/f.txt\r\n b\r\n", root)
    assert file.document is not None and join(file.document, file.hunks) == b"b\r\n"


def test_a_made_file_in_a_converted_patch_is_said_to_be_made(root: Path) -> None:
    file = only(b"--- /dev/null\r\n+++ b/new.txt\r\n@@ -0,0 +1 @@\r\n+a\r\n", root)
    assert "would be made" in file.conflicts[0]
