"""Failed drafts bring ever longer rests, and free text never pays much for them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.draft.cool_down import CoolDown
from editor_engine.draft.pass_cost import PassCost


def rest_after_failure(cool_down: CoolDown) -> int:
    cool_down.observe(3, 0, 1, 2.33)
    tokens = 0
    while cool_down.resting and tokens < 2000:
        cool_down.observe(0, 0, 1, 1.0)
        tokens += 1
    return tokens


def test_rests_double_up_to_a_bound() -> None:
    cool_down = CoolDown()
    cool_down.observe(63, 63, 64, 2.0)  # enough won that the balance does not matter
    assert [rest_after_failure(cool_down) for _ in range(9)] == [1, 2, 4, 8, 16, 32, 64, 64, 64]


def test_a_right_draft_ends_the_rest() -> None:
    cool_down = CoolDown()
    cool_down.observe(63, 63, 64, 2.0)
    for _ in range(5):
        cool_down.observe(3, 0, 1, 2.33)
    assert cool_down.resting
    cool_down.observe(3, 1, 2, 2.33)
    assert not cool_down.resting


def test_free_rows_need_no_rest() -> None:
    cool_down = CoolDown()
    for _ in range(100):
        cool_down.observe(63, 0, 1, 1.0)
        assert not cool_down.resting


@pytest.mark.parametrize("tokens", [300, 1000, 4000])
def test_drafting_that_always_fails_costs_little(tokens: int) -> None:
    cool_down, cost = CoolDown(), 0.0
    for _ in range(tokens):
        drafted, pass_cost = (0, 1.0) if cool_down.resting else (3, 2.33)
        cool_down.observe(drafted, 0, 1, pass_cost)
        cost += pass_cost
    assert cost / tokens <= 1.0 + 0.005 + 2.0 / tokens


COSTS = PassCost.shipped("avx2").costs(0)


def test_what_can_be_afforded_grows_with_what_was_won() -> None:
    cool_down = CoolDown()
    assert COSTS[1 + cool_down.affordable(COSTS, 63)] - 1.0 <= 0.5
    first = cool_down.affordable(COSTS, 63)
    cool_down.observe(1, 1, 9, 2.0)
    assert cool_down.affordable(COSTS, 63) > first
    assert cool_down.affordable(COSTS, 2) == 2 and cool_down.affordable(COSTS, 0) == 0
    assert CoolDown().affordable(PassCost.flat().costs(0), 63) == 63, "a row that costs nothing can always be had"


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), max_size=200))
def test_affordable_drafts_never_cost_more_than_the_allowance(wishes: list[tuple[int, int]]) -> None:
    """Whatever is wished for, and however much of it comes true."""
    cool_down, cost, emitted = CoolDown(), 0.0, 0
    for wished, right in wishes:
        drafted = min(wished, cool_down.affordable(COSTS, 63))
        accepted = min(right, drafted)
        cool_down.observe(drafted, accepted, accepted + 1, COSTS[1 + drafted])
        cost += COSTS[1 + drafted]
        emitted += accepted + 1
        assert cost <= emitted * 1.005 + 0.5 + 1e-9
