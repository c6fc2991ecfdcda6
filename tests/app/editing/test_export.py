"""Patches under names of their own: what is there already stays as it is."""

import subprocess
from pathlib import Path

import pytest

from app.editing.diff import make_hunks
from app.editing.document import open_document
from app.editing.export import export_patch
from app.editing.result import make_result
from app.errors import FileUnwritableError, UsageError
from tests.support.headless_edit import CHANGED, SOURCE


def test_the_patch_applies_and_earlier_ones_stay(file: Path) -> None:
    document = open_document(file.name)
    hunks = make_hunks(make_result(document, CHANGED))
    (file.parent / "sums.py.2.patch").write_text("mine")
    first, second = export_patch(document, hunks), export_patch(document, hunks)
    assert (first.name, second.name) == ("sums.py.patch", "sums.py.3.patch")
    assert (file.parent / "sums.py.2.patch").read_text() == "mine"
    subprocess.run(["git", "apply", first.name], cwd=file.parent, check=True)
    assert file.read_text() == CHANGED != SOURCE


def test_without_hunks_there_is_nothing_to_export(file: Path) -> None:
    with pytest.raises(UsageError):
        export_patch(open_document(file), ())
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_folder_that_is_not_there_is_said(file: Path) -> None:
    document = open_document(file)
    with pytest.raises(FileUnwritableError, match=r"gone.sums\.py\.patch cannot be written"):
        export_patch(document, make_hunks(make_result(document, CHANGED)), file.parent / "gone")


def test_half_a_patch_is_taken_away(file: Path) -> None:
    document = open_document(file)
    hunks = make_hunks(make_result(document, CHANGED))
    with pytest.raises(FileUnwritableError, match="No space left"):
        export_patch(document, hunks, Full(file.parent))
    assert [path.name for path in file.parent.iterdir()] == [file.name]


class Full(type(Path())):  # type: ignore[misc]  # the concrete class differs by system
    """A path on a disk that is full."""

    def open(self, *given: object, **named: object) -> object:
        stream = super().open(*given, **named)
        stream.close()
        return FullStream(stream)


class FullStream:
    def __init__(self, stream: object) -> None:
        self._stream = stream

    def __enter__(self) -> "FullStream":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, data: bytes) -> int:
        raise OSError(28, "No space left on device")
