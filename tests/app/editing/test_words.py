"""Word marks: what is outside of them is the same in both lines."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.words import Marks, pair_lines, word_marks

TEXTS = st.lists(st.sampled_from(["foo", "bar", " ", "  ", "(", ")", "é日", "_x1", "="]), max_size=12).map("".join)


def outside(text: str, marks: Marks) -> str:
    kept, at = "", 0
    for start, end in marks:
        assert at <= start < end <= len(text)
        kept, at = kept + text[at:start], end
    return kept + text[at:]


@settings(derandomize=True, deadline=None, max_examples=300)
@given(old=TEXTS, new=TEXTS, times=st.sampled_from([1, 1, 300]))
def test_outside_the_marks_nothing_differs(old: str, new: str, times: int) -> None:
    old, new = "same " * times + old, "same " * times + new
    marks = word_marks(old, new)
    if marks is not None:
        assert outside(old, marks[0]) == outside(new, marks[1])
    assert word_marks(old, old) == ((), ())


@settings(derandomize=True, deadline=None)
@given(removed=st.lists(TEXTS, max_size=6), added=st.lists(TEXTS, max_size=6))
def test_pairs_ascend(removed: list[str], added: list[str]) -> None:
    for (old, new), (old_next, new_next) in itertools.pairwise(pair_lines(removed, added)):
        assert old < old_next and new < new_next


def test_equal_lines_pair_with_themselves() -> None:
    lines = ["a = 1", "b = 2", "", "c = 3"]
    assert pair_lines(lines, lines) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_the_word_that_differs_is_marked() -> None:
    assert word_marks("    return total(items)", "    return total(rows)") == (((17, 22),), ((17, 21),))
    assert word_marks("a = 1", "import os, sys") is None


def test_lines_pair_with_what_they_became() -> None:
    removed = ["def mean(items):", "    return total(items) / len(items)"]
    added = ["# The mean.", "def mean(rows):", "    count = len(rows)", "    return total(rows) / count"]
    assert pair_lines(removed, added) == [(0, 1), (1, 3)]


@pytest.mark.parametrize("size", [3_000, 60_000])
def test_very_long_lines_are_compared_from_their_ends(size: int) -> None:
    marks = word_marks("x" * size + "a" + "y" * size, "x" * size + "bb" + "y" * size)
    assert marks == (((size, size + 1),), ((size, size + 2),))
    assert word_marks("x" * size, "y" * size) is None


def test_a_rewritten_block_is_paired_in_order() -> None:
    assert pair_lines(["a"] * 50, ["b"] * 60)[:2] == [(0, 0), (1, 1)]
