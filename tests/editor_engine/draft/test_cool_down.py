"""Failed drafts bring ever longer rests, and free text never pays much for them."""

import pytest

from editor_engine.draft.cool_down import CoolDown


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
