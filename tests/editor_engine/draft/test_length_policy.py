"""The draft length against a twin that spells every sum out."""

from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.draft.length_policy import best_length
from editor_engine.draft.pass_cost import PassCost

CHANCES = st.integers(0, 100).map(lambda percent: percent / 100)


def obvious_length(first: float, further: float, costs: list[float], room: int) -> int:
    rate = max(sum(further**i for i in range(k + 1)) / costs[1 + k] for k in range(len(costs) - 1))
    values = [
        1.0 + sum(first * further**i for i in range(k)) - rate * costs[1 + k]
        for k in range(min(room, len(costs) - 2) + 1)
    ]
    return max(k for k, value in enumerate(values) if value >= max(values) - 1e-9)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(CHANCES, CHANCES, st.integers(0, 80), st.lists(st.integers(1, 40), min_size=2, max_size=12))
def test_it_is_the_best_length(first: float, further: float, room: int, steps: list[int]) -> None:
    costs = [0.0, *[sum(steps[: i + 1]) / 10 for i in range(len(steps))]]
    found = best_length(first, further, costs, room)
    assert 0 <= found <= room
    rate = max(sum(further**i for i in range(k + 1)) / costs[1 + k] for k in range(len(costs) - 1))

    def value(k: int) -> float:
        return 1.0 + sum(first * further**i for i in range(k)) - rate * costs[1 + k]

    assert abs(value(found) - value(obvious_length(first, further, costs, room))) < 1e-9


def test_free_rows_are_all_used_and_dear_ones_only_when_sure() -> None:
    flat, avx2 = PassCost.flat().costs(0), PassCost.avx2().costs(0)
    assert best_length(0.02, 0.9, flat, 63) == 63
    assert best_length(0.99, 0.995, flat, 17) == 17
    assert best_length(0.99, 0.995, avx2, 63) == 3
    assert best_length(0.60, 0.95, avx2, 63) == 0


def test_never_more_rows_than_the_table_knows() -> None:
    assert best_length(1.0, 1.0, PassCost.flat().costs(0), 1000) == 63
