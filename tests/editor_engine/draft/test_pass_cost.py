"""Costs are the table's at first, and move to what passes are seen to take, neighbours along with them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.draft.pass_cost import MAX_ROWS, PassCost


def test_tables_have_the_shipped_values_and_are_linear_between() -> None:
    avx2 = PassCost.avx2().costs(0)
    assert len(avx2) == MAX_ROWS + 1
    assert [avx2[rows] for rows in (0, 1, 2, 3, 4, 64)] == [0.0, 1.0, 1.58, 2.2, 2.33, 40.5]
    assert avx2[5] == pytest.approx((2.33 + 3.7) / 2)
    assert avx2[48] == pytest.approx((20.5 + 40.5) / 2)
    assert set(PassCost.flat().costs(9000)[1:]) == {1.0}


def observed(cost: PassCost, context: int, passes: int, seconds: dict[int, float]) -> PassCost:
    """`passes` times each number of rows, in turns."""
    for _ in range(passes):
        for rows, taken in seconds.items():
            cost.observe(rows, context, taken)
    return cost


def test_costs_move_to_what_passes_take_the_more_of_them_the_further() -> None:
    cost, said = PassCost.avx2(), []
    for _ in range(5):
        observed(cost, 600, 8, {1: 0.050, 8: 0.100})
        said.append(cost.costs(600)[8])
    assert 5.0 > said[0] > said[1] > said[2] > 2.0
    assert said[-1] == pytest.approx(2.0, rel=0.4)
    assert cost.costs(600)[1] == 1.0, "a plain step costs 1, however long it takes"
    assert cost.costs(5000)[8] == 5.0, "another context"


def test_rows_that_were_not_tried_go_with_their_neighbours() -> None:
    """Else the table's untouched numbers would look cheaper than every number that was measured."""
    dear = observed(PassCost.shipped("avx2"), 0, 30, {1: 0.05, 8: 0.28, 16: 0.585})  # twice what the table says
    table, costs = PassCost.shipped("avx2").costs(0), dear.costs(0)
    factors = [costs[rows] / table[rows] for rows in range(1, MAX_ROWS + 1)]
    assert factors[0] == 1.0 and factors[:8] == sorted(factors[:8])
    assert all(1.5 < factor < 2.0 for factor in factors[7:]) and factors[-1] == pytest.approx(factors[15])


def test_one_disturbed_pass_changes_little() -> None:
    cost = observed(PassCost.shipped("avx2"), 0, 10, {1: 0.05, 8: 0.135})
    before = list(cost.costs(0))
    cost.observe(8, 0, 9.0)
    assert list(cost.costs(0)) == pytest.approx(before, rel=0.02)


def test_a_machine_that_gets_slower_is_not_a_table_that_is_wrong() -> None:
    """A neighbour halves every figure: first under wide passes alone, then under plain steps alone."""
    cost = PassCost.shipped("avx2")
    table = PassCost.shipped("avx2").costs(0)
    for slowness, rows in ((1.0, 1), (2.0, 8), (1.0, 8), (3.0, 1), (1.0, 4), (2.0, 8)) * 4:
        for _ in range(20):
            cost.observe(rows, 0, slowness * 0.05 * table[rows])
    assert all(0.5 < cost.costs(0)[rows] / table[rows] < 2.0 for rows in (4, 8, 16))


def test_a_table_that_is_right_stays() -> None:
    table = PassCost.shipped("avx512vnni").costs(0)
    cost = observed(PassCost.shipped("avx512vnni"), 0, 40, {rows: 0.03 * table[rows] for rows in (1, 5, 8, 20, 64)})
    assert list(cost.costs(0)) == pytest.approx(list(table))


def test_old_ratios_fade_when_what_a_pass_takes_changes_for_good() -> None:
    cost = observed(PassCost.avx2(), 0, 40, {1: 0.05, 4: 0.05 * 2.33})
    observed(cost, 0, 40, {1: 0.05, 4: 0.05})
    assert cost.costs(0)[4] < 1.5


@pytest.mark.parametrize(("rows", "seconds"), [(0, 1.0), (65, 1.0), (-1, 1.0), (1, 0.0), (1, -2.0)])
def test_impossible_passes_are_ignored(rows: int, seconds: float) -> None:
    cost = PassCost.avx2()
    for _ in range(9):
        cost.observe(rows, 0, seconds)
    assert cost.costs(0) == PassCost.avx2().costs(0)


@pytest.mark.parametrize("isa", ["avx2", "avxvnni", "avx512vnni", "scalar", "unheard-of"])
def test_every_variant_has_a_rising_table(isa: str) -> None:
    costs = PassCost.shipped(isa).costs(1024)
    assert costs[1] == 1.0 and list(costs) == sorted(costs)
    assert all(cost <= rows for rows, cost in enumerate(costs)), "a pass is never dearer than its rows one by one"


def test_what_was_measured_is_kept_and_taken_up_again() -> None:
    first = observed(PassCost.shipped("avx2"), 3000, 12, {8: 0.2, 1: 0.05})
    second = observed(PassCost.shipped("avx2"), 0, 12, {8: 0.4, 1: 0.05})
    second.restore(json.loads(json.dumps(first.snapshot())))
    assert list(second.costs(3000)) == list(first.costs(3000)) and second.costs(3000)[8] > 3.0
    assert second.snapshot() == first.snapshot()
    assert second.costs(0) == PassCost.shipped("avx2").costs(0)


BROKEN: list[dict[str, dict[str, list[float]]]] = [
    {"x": {}},
    {"0": {"65": [1.0]}},
    {"0": {"5": [1.0]}},
    {"0": {"y": [1.0]}},
    {"0": {"1": ["z"]}},  # type: ignore[list-item]
    {"0": {"8": [0.0]}},
    {"0": {"8": [float("inf")]}},
]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_snapshot_is_refused(broken: dict[str, dict[str, list[float]]]) -> None:
    cost = observed(PassCost.shipped("avx2"), 0, 12, {8: 0.4, 1: 0.05})
    before = cost.snapshot()
    with pytest.raises(ValueError):
        cost.restore({"1": {"1": [1.0]}, **broken})
    assert cost.snapshot() == before


def test_a_correction_that_is_not_confirmed_is_forgotten() -> None:
    cost = observed(PassCost.shipped("avx2"), 0, 20, {1: 0.05, 8: 5.0})
    assert cost.costs(0)[8] > 8.0
    observed(cost, 0, 221, {1: 0.05})
    assert cost.costs(0)[8] == PassCost.shipped("avx2").costs(0)[8]


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(-2, 70), st.integers(0, 5000), st.floats(1e-9, 1e9)), max_size=60))
def test_whatever_is_measured_costs_stay_numbers_that_can_be_chosen_by(passes: list[tuple[int, int, float]]) -> None:
    cost = PassCost.shipped("avx2")
    for rows, context, seconds in passes:
        cost.observe(rows, context, seconds)
        costs = cost.costs(context)
        assert len(costs) == MAX_ROWS + 1 and costs[1] == 1.0
        assert all(0.0 < one < float("inf") for one in costs[1:])


def test_what_torch_says_of_itself_finds_the_table_of_its_type() -> None:
    for words in ("bfloat16 sdpa", "bfloat16 eager", "bfloat16"):
        assert list(PassCost.shipped(words).costs(0)) == list(PassCost.shipped("bfloat16").costs(0))
    assert PassCost.shipped("float32 sdpa").costs(0)[64] < PassCost.shipped("avx2").costs(0)[64]
    assert list(PassCost.shipped("fp4 (compute float32) sdpa").costs(0)) == list(PassCost.shipped("nf4").costs(0))
    assert list(PassCost.shipped("float16 eager").costs(0)) == list(PassCost.avx2().costs(0))
