"""Line alignment: always a common subsequence, as long as the slow twin's where lines are few, and bounded in time."""

import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.alignment import Match, align, tidy

SHORT = st.lists(st.sampled_from("abc"), max_size=10)


def require_common(matches: list[Match], old: list[str], new: list[str]) -> None:
    old_at = new_at = 0
    for match in matches:
        assert match.old >= old_at and match.new >= new_at and match.length >= 1
        assert old[match.old : match.old + match.length] == new[match.new : match.new + match.length]
        old_at, new_at = match.old + match.length, match.new + match.length


def longest_common(old: list[str], new: list[str]) -> int:
    """The slow, obvious twin: length of a longest common subsequence."""

    @cache
    def best(i: int, j: int) -> int:
        if i == len(old) or j == len(new):
            return 0
        if old[i] == new[j]:
            return 1 + best(i + 1, j + 1)
        return max(best(i + 1, j), best(i, j + 1))

    return best(0, 0)


@settings(derandomize=True, deadline=None, max_examples=400)
@given(old=SHORT, new=SHORT)
def test_common_subsequence_before_and_after_tidying(old: list[str], new: list[str]) -> None:
    matches = align(old, new)
    require_common(matches, old, new)
    tidied = tidy(matches, old, new)
    require_common(tidied, old, new)
    assert sum(match.length for match in tidied) == sum(match.length for match in matches)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(old=SHORT, new=SHORT)
def test_as_long_as_the_twin_where_no_line_is_unique(old: list[str], new: list[str]) -> None:
    # Every line twice on a side: no anchors, so the search alone decides, and it is shortest.
    old, new = [line for line in old for _ in "12"], [line for line in new for _ in "12"]
    assert sum(match.length for match in align(old, new)) == longest_common(old, new)


def test_unique_lines_anchor_a_moved_block() -> None:
    old = ["def a():", "    x", "", "def b():", "    x", ""]
    new = ["def b():", "    x", "", "def a():", "    x", ""]
    matches = align(old, new)
    require_common(matches, old, new)
    assert sum(match.length for match in matches) >= 3


@pytest.mark.parametrize("kinds", [1, 2, 40, 1000, 100_000])
def test_two_thousand_lines_stay_cheap(kinds: int) -> None:
    chance = random.Random(kinds)
    compared = 0

    class Counted:
        """A line that counts how often it is compared."""

        def __init__(self, value: int) -> None:
            self.value = value

        def __hash__(self) -> int:
            return hash(self.value)

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return isinstance(other, Counted) and self.value == other.value

    old = [Counted(chance.randrange(kinds)) for _ in range(2000)]
    new = [Counted(chance.randrange(kinds)) for _ in range(2000)]
    align(old, new)
    assert compared < 4000 * 256


@pytest.mark.parametrize(
    ("old", "new", "inserted_at"),
    [
        # A new function is shown whole, not from the middle of its neighbour.
        (
            ["def a():", "    return 1", "", "def c():", "    return 1"],
            ["def a():", "    return 1", "", "def b():", "    return 1", "", "def c():", "    return 1"],
            3,
        ),
        (["{", "}", "x"], ["{", "}", "{", "}", "x"], 2),
        (
            ["    if a:", "        go()", "    end"],
            ["    if a:", "        go()", "    if b:", "        go()", "    end"],
            2,
        ),
    ],
)
def test_insertions_sit_where_a_reader_would_put_them(old: list[str], new: list[str], inserted_at: int) -> None:
    matches = tidy(align(old, new), old, new)
    covered = {at for match in matches for at in range(match.new, match.new + match.length)}
    assert min(set(range(len(new))) - covered) == inserted_at
