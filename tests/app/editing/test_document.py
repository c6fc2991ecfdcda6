"""Opening files: every byte form comes back whole, and every file that cannot be edited has its own sentence."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.document import MOST_BYTES, Document, open_bytes, open_document, require_replaceable
from app.errors import (
    AppError,
    ExitCode,
    FileBinaryError,
    FileEmptyError,
    FileHardLinkedError,
    FileMissingError,
    FileTooLongError,
    FileUndecodableError,
    FileUnreadableError,
    FileUnwritableError,
    NotAFileError,
    UsageError,
)
from tests.support.byte_forms import documents
from tests.support.saboteur import as_nobody, give_to_nobody


@pytest.mark.parametrize(
    ("data", "lines", "newline", "final"),
    [
        (b"a\nb\n", ["a", "b"], "lf", True),
        (b"a\r\nb\r\n", ["a", "b"], "crlf", True),
        (b"a\r\nb\n", ["a", "b"], "mixed", True),
        (b"a\rb\r", ["a", "b"], "cr", True),
        (b"a\rb\n", ["a\rb"], "lf", True),
        (b"a\r\r\nb\n", ["a\r", "b"], "mixed", True),
        (b"a\nb", ["a", "b"], "lf", False),
        (b"a", ["a"], "none", False),
        (b"\n\n", ["", ""], "lf", True),
        (b"a\x0cb\x0bc\x1cd\n", ["a\x0cb\x0bc\x1cd"], "lf", True),
        ("a\u2028b\u2029c\x85d\n".encode(), ["a\u2028b\u2029c\x85d"], "lf", True),
        (b"\tx\n", ["\tx"], "lf", True),
        (b"\xef\xbb\xbfa\n", ["a"], "lf", True),
        ("\ufeffa\r\nb".encode("utf-16-le"), ["a", "b"], "crlf", False),
        ("\ufeffa\nb\n".encode("utf-16-be"), ["a", "b"], "lf", True),
    ],
)
def test_lines_and_ends_of_every_form(data: bytes, lines: list[str], newline: str, final: bool) -> None:
    document = open_bytes(data, "x")
    assert list(document.lines) == lines
    assert (document.newline, document.final_newline) == (newline, final)
    assert document.text == "\n".join(lines) + ("\n" if final else "")
    assert b"".join(line.raw for line in document.source_lines) == data


@settings(derandomize=True, deadline=None)
@given(document=documents())
def test_raw_lines_join_to_the_bytes(document: Document) -> None:
    assert b"".join(line.raw for line in document.source_lines) == document.data
    assert all("\n" not in line.text for line in document.source_lines)


@settings(derandomize=True, deadline=None)
@given(data=st.binary(min_size=1, max_size=40))
def test_any_bytes_open_whole_or_are_refused(data: bytes) -> None:
    try:
        document = open_bytes(data, "x")
    except AppError as error:
        assert error.exit_code is ExitCode.FILE
    else:
        assert b"".join(line.raw for line in document.source_lines) == data


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "caf\xe9\r\nna\xefve\n"),
        ("cp932", "日本語\nテスト\n"),
        ("iso2022_jp", "日本語\nascii\nテスト\n"),
        ("utf-16-le", "plain\nno mark\n"),
        ("utf-32", "four\nbytes\n"),
        ("gb18030", "中文\n"),
    ],
)
def test_named_encodings_round_trip(encoding: str, text: str) -> None:
    document = open_bytes(text.encode(encoding), "x", encoding)
    assert document.text == text.replace("\r\n", "\n")
    assert b"".join(line.raw for line in document.source_lines) == text.encode(encoding)


def test_undecodable_bytes_name_the_place_and_the_way_out() -> None:
    with pytest.raises(FileUndecodableError, match=r"byte 7 \(line 2\).*--encoding"):
        open_bytes(b"fine\nx\xff\n", "x")


@pytest.mark.parametrize(
    ("data", "encoding", "kind"),
    [
        (b"", None, FileEmptyError),
        (b"\xef\xbb\xbf", None, FileEmptyError),
        (b"\xff\xfe", None, FileEmptyError),
        (b"a\0b", None, FileBinaryError),
        ("a\0b".encode("utf-16"), None, FileBinaryError),
        (b"a\0b", "latin-1", FileBinaryError),
        (b"\xff\xfea", None, FileUndecodableError),
        (b"+AGEAYg-", "utf-7", FileUndecodableError),
        (b"a\n", "utf-16", FileUndecodableError),
        (b"a\n", "no-such", UsageError),
        (b"a\n", "base64", UsageError),
        (b"a\n", "rot13", UsageError),
    ],
)
def test_refusals_by_content(data: bytes, encoding: str | None, kind: type[AppError]) -> None:
    with pytest.raises(kind):
        open_bytes(data, "x", encoding)


def _folder(path: Path) -> None:
    path.mkdir()


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (_folder, NotAFileError, "folder"),
        (os.mkfifo, NotAFileError, "regular"),
        (_socket, NotAFileError, "regular"),
        (_loop, NotAFileError, "leads to no file"),
        (_dangling, FileMissingError, "link to nowhere"),
        (_huge, FileTooLongError, "16 MiB"),
        (lambda path: None, FileMissingError, "does not exist"),
        (lambda path: path.touch(), FileEmptyError, "empty"),
    ],
)
def test_refusals_by_kind_of_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    kind: type[AppError],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)  # socket addresses are short
    path = tmp_path / "it"
    make(path)
    with pytest.raises(kind, match=words) as caught:
        open_document(path)
    assert caught.value.exit_code is ExitCode.FILE


def test_part_of_the_path_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\n")
    with pytest.raises(FileMissingError):
        open_document(tmp_path / "f" / "g")
    with pytest.raises(FileMissingError, match="not a possible file name"):
        open_document("a\0b")


@pytest.mark.parametrize("name", ["[id].py", "a b.py", "*?.py", "line\nend.py", "-x", "'\".py"])
def test_names_are_taken_literally(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"mine\n")
    (tmp_path / "i.py").write_bytes(b"not mine\n")
    assert open_document(tmp_path / name).text == "mine\n"


def test_name_of_stray_bytes(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff.py"
    with open(name, "wb") as file:
        file.write(b"a\0")
    with pytest.raises(FileBinaryError) as caught:
        open_document(os.fsdecode(name))
    str(caught.value).encode("utf-8")  # printable


def test_links_lead_to_the_target(tmp_path: Path) -> None:
    real = tmp_path / "deep" / "real.py"
    real.parent.mkdir()
    real.write_bytes(b"a\n")
    (tmp_path / "second").symlink_to("deep/real.py")
    (tmp_path / "first").symlink_to("second")
    assert open_document(tmp_path / "first").target == real


def test_facts_of_the_file_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a\n")
    path.chmod(0o4751)
    snapshot = open_document(path).snapshot
    found = path.stat()
    assert (snapshot.mode, snapshot.inode, snapshot.uid) == (0o4751, found.st_ino, found.st_uid)


def test_hard_links_and_pipes_are_not_replaceable(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a\n")
    os.link(path, tmp_path / "other name")
    document = open_document(path)
    with pytest.raises(FileHardLinkedError, match="2 names"):
        require_replaceable(document)
    require_replaceable(document, break_links=True)
    with pytest.raises(FileUnwritableError, match="pipe"):
        require_replaceable(open_bytes(b"a\n", "-"))


def _expect(kind: type[AppError], path: Path) -> Callable[[], None]:
    def work() -> None:
        try:
            require_replaceable(open_document(path))
        except kind:
            return
        raise AssertionError(f"{kind.__name__} was not raised")

    return work


def test_permissions_are_found_before_a_model_runs(open_tmp: Path) -> None:
    path = open_tmp / "f.py"
    path.write_bytes(b"a\n")
    path.chmod(0o000)
    give_to_nobody(open_tmp, path)
    assert as_nobody(_expect(FileUnreadableError, path)) == 0
    path.chmod(0o444)
    assert as_nobody(_expect(FileUnwritableError, path)) == 0
    path.chmod(0o644)
    open_tmp.chmod(0o555)
    assert as_nobody(_expect(FileUnwritableError, path)) == 0
    open_tmp.chmod(0o755)
    assert as_nobody(lambda: require_replaceable(open_document(path))) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file of another user")
def test_another_users_file_in_a_sticky_folder(open_tmp: Path) -> None:
    open_tmp.chmod(0o1777)
    path = open_tmp / "f.py"
    path.write_bytes(b"a\n")
    path.chmod(0o666)
    assert as_nobody(_expect(FileUnwritableError, path)) == 0


def test_closed_folder_on_the_way(open_tmp: Path) -> None:
    inner = open_tmp / "closed"
    inner.mkdir()
    (inner / "f").write_bytes(b"a\n")
    give_to_nobody(inner, inner / "f")
    inner.chmod(0o000)
    try:
        assert as_nobody(_expect(FileUnreadableError, inner / "f")) == 0
    finally:
        inner.chmod(0o700)
