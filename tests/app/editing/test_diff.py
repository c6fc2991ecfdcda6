"""Hunks: together they are the new file, apart they touch nothing but their own lines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.diff import ByteEdit, Hunk, apply_edits, byte_edits, join, make_hunks, outside_identical
from app.editing.document import Document, open_bytes
from app.editing.result import make_result
from tests.support.byte_forms import documents, rewrites


def hunks_of(source: bytes, text: str) -> tuple[Document, tuple[Hunk, ...]]:
    document = open_bytes(source, "x")
    return document, make_hunks(make_result(document, text))


def twin(document: Document, accepted: list[Hunk]) -> bytes:
    """The slow, obvious twin of `join`: walk the hunks' lines and take the context from the source."""
    out: list[bytes] = []
    at = 0
    for hunk in accepted:
        first = hunk.old_start - 1 if hunk.old_lines else hunk.old_start
        out += [line.raw for line in document.source_lines[at:first]]
        out += [line.raw for line in hunk.lines if line.kind != "-"]
        at = first + hunk.old_lines
    return b"".join(out + [line.raw for line in document.source_lines[at:]])


@settings(derandomize=True, deadline=None, max_examples=400)
@given(data=st.data(), document=documents(), context=st.integers(0, 3))
def test_any_subset_leaves_everything_else_alone(data: st.DataObject, document: Document, context: int) -> None:
    result = make_result(document, data.draw(rewrites(document)))
    hunks = make_hunks(result, context)
    assert join(document, hunks) == result.data
    assert join(document, ()) == document.data
    accepted = [hunk for hunk in hunks if data.draw(st.booleans())]
    new = join(document, accepted)
    assert new == twin(document, accepted)
    # Source minus accepted hunks equals result minus accepted hunks.
    edits = byte_edits(document, accepted)
    assert outside_identical(document.data, new, edits)
    assert minus(document.data, [(edit.start, edit.end - edit.start) for edit in edits]) == minus(new, moved(edits))


def minus(data: bytes, cuts: list[tuple[int, int]]) -> bytes:
    out, at = b"", 0
    for start, length in cuts:
        out, at = out + data[at:start], start + length
    return out + data[at:]


def moved(edits: tuple[ByteEdit, ...]) -> list[tuple[int, int]]:
    """Where the edits lie in the new bytes."""
    cuts, shift = [], 0
    for edit in edits:
        cuts.append((edit.start + shift, len(edit.new)))
        shift += len(edit.new) - (edit.end - edit.start)
    return cuts


@settings(derandomize=True, deadline=None)
@given(data=st.data(), document=documents())
def test_hunks_count_their_lines(data: st.DataObject, document: Document) -> None:
    result = make_result(document, data.draw(rewrites(document)))
    for number, hunk in enumerate(make_hunks(result), 1):
        assert hunk.index == number
        assert sum(line.kind != "+" for line in hunk.lines) == hunk.old_lines
        assert sum(line.kind != "-" for line in hunk.lines) == hunk.new_lines
        assert any(line.kind != " " for line in hunk.lines)
        for line in hunk.lines:
            if line.old_line is not None:
                assert document.source_lines[line.old_line - 1].raw == line.raw
            if line.new_line is not None:
                assert result.lines[line.new_line - 1].raw == line.raw


def test_close_changes_share_a_hunk_and_distant_ones_do_not() -> None:
    source = "".join(f"{n}\n" for n in range(30))
    _, near = hunks_of(source.encode(), source.replace("5\n", "x\n", 1).replace("\n12\n", "\ny\n"))
    _, far = hunks_of(source.encode(), source.replace("5\n", "x\n", 1).replace("\n20\n", "\ny\n"))
    assert (len(near), len(far)) == (1, 2)
    assert (far[1].old_start, far[1].old_lines, far[1].new_start, far[1].new_lines) == (18, 7, 18, 7)


def test_header_is_the_function_above() -> None:
    source = "import os\n\ndef f():\n" + "".join(f"    line{n}\n" for n in range(9))
    _, hunks = hunks_of(source.encode(), source.replace("line8", "other"))
    assert hunks[0].header == "def f():"
    _, top = hunks_of(source.encode(), source.replace("import os", "import sys"))
    assert top[0].header == ""


def test_spoken_lines_have_the_line_ends_of_the_file() -> None:
    _, hunks = hunks_of(b"a\r\nb", "a\nc")
    assert hunks[0].spoken_lines() == [" a\r\n", "-b", "+c"]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (b"abcdef", b"abXYef", True),
        (b"abcdef", b"AbXYef", False),
        (b"abcdef", b"abXYeF", False),
        (b"abcdef", b"abXYefg", False),
        (b"abcdef", b"abXef", False),
        (b"abcdef", b"", False),
    ],
)
def test_outside_identical_sees_every_other_byte(before: bytes, after: bytes, same: bool) -> None:
    assert outside_identical(before, after, [ByteEdit(2, 4, b"XY")]) is same


def test_edits_that_overlap_prove_nothing() -> None:
    assert not outside_identical(b"abcd", b"XY", [ByteEdit(2, 4, b"X"), ByteEdit(0, 2, b"Y")])


def test_edits_apply_in_order() -> None:
    assert apply_edits(b"abcd", [ByteEdit(0, 1, b"X"), ByteEdit(3, 3, b"-")]) == b"Xbc-d"
