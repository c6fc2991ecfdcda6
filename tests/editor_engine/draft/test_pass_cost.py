"""Costs are the table's until enough passes were seen, then their medians."""

import json

import pytest

from editor_engine.draft.pass_cost import MAX_ROWS, PassCost


def test_tables_have_the_shipped_values_and_are_linear_between() -> None:
    avx2 = PassCost.avx2().costs(0)
    assert len(avx2) == MAX_ROWS + 1
    assert [avx2[rows] for rows in (0, 1, 2, 3, 4, 64)] == [0.0, 1.0, 1.58, 2.2, 2.33, 40.5]
    assert avx2[5] == pytest.approx((2.33 + 3.7) / 2)
    assert avx2[48] == pytest.approx((20.5 + 40.5) / 2)
    assert set(PassCost.flat().costs(9000)[1:]) == {1.0}


def test_medians_replace_the_table_for_the_rows_and_context_seen() -> None:
    cost = PassCost.avx2()
    for seconds in (0.050, 0.050, 0.051, 9.0, 0.049):
        cost.observe(1, 600, seconds)
    for _ in range(4):
        cost.observe(8, 600, 0.100)
    assert cost.costs(600)[8] == 5.0, "four passes prove nothing yet"
    cost.observe(8, 700, 0.100)
    assert cost.costs(600)[8] == pytest.approx(0.100 / 0.050)
    assert cost.costs(600)[4] == 2.33
    assert cost.costs(5000)[8] == 5.0, "another context"


def test_without_a_plain_pass_the_unit_comes_from_the_table() -> None:
    cost = PassCost.avx2()
    for _ in range(9):
        cost.observe(4, 10, 0.0233)
    assert cost.costs(10)[4] == pytest.approx(2.33)


def test_old_medians_fade_when_the_machine_changes() -> None:
    cost = PassCost.flat()
    for seconds, passes in ((0.05, 15), (0.10, 8)):
        for _ in range(passes):
            cost.observe(1, 0, 0.05)
            cost.observe(2, 0, seconds)
    assert cost.costs(0)[2] == pytest.approx(2.0)


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
    first = PassCost.shipped("avx2")
    for _ in range(6):
        first.observe(8, 3000, 0.2)
        first.observe(1, 3000, 0.05)
    kept = json.loads(json.dumps(first.snapshot()))
    second = PassCost.shipped("avx2")
    second.restore(kept)
    assert second.costs(3000)[8] == pytest.approx(4.0)
    assert second.snapshot() == first.snapshot()
    assert second.costs(0) == PassCost.shipped("avx2").costs(0)


@pytest.mark.parametrize("broken", [{"x": {}}, {"0": {"65": [1.0]}}, {"0": {"y": [1.0]}}, {"0": {"1": ["z"]}}])
def test_a_broken_snapshot_is_refused(broken: dict[str, dict[str, list[float]]]) -> None:
    with pytest.raises(ValueError):
        PassCost.flat().restore(broken)


def test_a_number_of_rows_not_used_again_goes_back_to_the_table() -> None:
    cost = PassCost.shipped("avx2")
    for _ in range(5):
        cost.observe(1, 0, 0.05)
        cost.observe(8, 0, 5.0)
    assert cost.costs(0)[8] == pytest.approx(100.0)
    for _ in range(201):
        cost.observe(1, 0, 0.05)
    assert cost.costs(0)[8] == PassCost.shipped("avx2").costs(0)[8]
