"""Spreads, ratios and differences against their definitions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.bench.measure import Difference, Spread, first_difference, ratios

IDS = st.lists(st.integers(0, 3), max_size=8)


def test_a_spread_keeps_its_runs_and_shows_them() -> None:
    spread = Spread((3.0, 1.0, 2.0))
    assert spread.fields() == {"median": 2.0, "min": 1.0, "max": 3.0, "runs": 3}
    assert spread.words(1) == "2.0 (1.0-3.0)"


@pytest.mark.parametrize(("runs", "p95"), [(1, 0), (19, 18), (20, 18), (21, 19), (100, 94)])
def test_p95_is_the_nearest_rank(runs: int, p95: int) -> None:
    spread = Spread(tuple(float(n) for n in reversed(range(runs))))
    assert spread.p95 == p95
    assert sum(run <= spread.p95 for run in spread.runs) >= 0.95 * runs


def test_ratios_pair_neighbours_and_not_medians() -> None:
    # The machine was ten times slower in the second run: each pair says 2, the medians of both sides would say more.
    assert ratios((20.0, 2.0), (10.0, 1.0)).runs == (2.0, 2.0)
    with pytest.raises(ValueError):
        ratios((1.0,), (1.0, 2.0))


@settings(derandomize=True, deadline=None)
@given(IDS, IDS)
def test_the_first_difference_is_the_end_of_the_longest_common_beginning(left: list[int], right: list[int]) -> None:
    found = first_difference(left, right)
    if left == right:
        assert found is None
        return
    assert found is not None
    assert left[: found.index] == right[: found.index]
    assert left[found.index : found.index + 1] != right[found.index : found.index + 1]


def test_a_shorter_side_has_no_token_there() -> None:
    assert first_difference([1, 2], [1]) == Difference(1, 2, None)
