"""Looking at a file again: by bytes, and without ever raising."""

import os
from pathlib import Path

import pytest

from app.editing.document import open_bytes, open_document
from app.editing.reread import look_again
from tests.support.headless_edit import SOURCE


def test_the_same_bytes_are_no_change_whatever_the_times_say(file: Path) -> None:
    document = open_document(file)
    os.utime(file, (1, 1))
    assert look_again(document) is None
    replacement = file.with_name("other")
    replacement.write_text(SOURCE)
    replacement.replace(file)
    assert look_again(document) is None


def test_other_bytes_with_the_same_times_and_size_are_a_change(file: Path) -> None:
    document = open_document(file)
    times = file.stat()
    file.write_text(SOURCE.replace("low", "wol"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    newer = look_again(document)
    assert newer is not None and newer.document is not None
    assert newer.document.data == file.read_bytes()
    assert newer.sentence == "sums.py has changed on disk."


@pytest.mark.parametrize("become", ["gone", "folder", "empty", "binary", "closed"])
def test_a_file_that_is_none_any_more_is_a_sentence(file: Path, become: str) -> None:
    document = open_document(file)
    file.unlink()
    if become == "folder":
        file.mkdir()
    elif become == "empty":
        file.write_bytes(b"")
    elif become == "binary":
        file.write_bytes(b"a\0b")
    elif become == "closed":
        file.symlink_to(file)
    newer = look_again(document)
    assert newer is not None and newer.document is None
    assert newer.sentence.endswith((".", "there is nothing to edit.")) and newer.sentence.isprintable()


def test_another_file_under_the_name_is_a_change(file: Path) -> None:
    document = open_document(file)
    other = file.with_name("other.py")
    file.rename(other)
    file.symlink_to(other)
    newer = look_again(document)
    assert newer is not None


def test_text_from_a_pipe_never_changes() -> None:
    assert look_again(open_bytes(b"a\n", "-")) is None
