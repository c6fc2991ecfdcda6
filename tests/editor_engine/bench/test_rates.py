"""Rates and pass costs on a model whose passes take known times."""

from collections.abc import Callable, Sequence

import pytest

from editor_engine.bench.measure import Spread
from editor_engine.bench.rates import over_base, pass_costs, pass_lines, plain_rates, prefill_rates, seconds_here
from editor_engine.errors import RequestError
from tests.support.fake_model import FakeModel, pseudo_random

TOKENS = [n % 64 for n in range(400)]


class TimedModel(FakeModel):
    """A fake whose clock moves by `cost(rows, context)` seconds in each pass."""

    def __init__(self, cost: Callable[[int, int], float], rows: int = 8, context: int = 400) -> None:
        super().__init__(pseudo_random(64), rows=rows, context=context)
        self.now = 0.0
        self.heads: list[tuple[int, int, int]] = []
        self._cost = cost

    def forward(self, tokens: Sequence[int], *, head_rows: int) -> list[int]:
        self.now += self._cost(len(tokens), len(self.cache))
        self.heads.append((len(self.cache), len(tokens), head_rows))
        return super().forward(tokens, head_rows=head_rows)

    def clock(self) -> float:
        return self.now


def quiet(_: str) -> None:
    pass


def test_prefill_counts_each_length_from_the_empty_cache() -> None:
    model = TimedModel(lambda rows, context: rows * 0.5 if context < 100 else rows * 2.0)
    rates = prefill_rates(model, TOKENS, [300, 100, 100], 2, model.clock, quiet)
    assert rates[100].runs == (2.0, 2.0)
    assert rates[300].runs == (300 / 450, 300 / 450)
    # Each length ends a pass that has a head, as a prompt does; no other pass has one.
    ends = {start + rows for start, rows, head in model.heads[2:] if head}
    assert ends == {100, 300} and max(model.passes) == model.rows


def test_longer_prompts_are_compared_with_the_base_run_by_run() -> None:
    rates = {512: Spread((9.0, 9.0)), 1000: Spread((8.0, 4.0)), 8192: Spread((6.0, 2.0))}
    assert over_base(rates) == (1000, {8192: Spread((0.75, 0.5))})
    assert over_base({9: Spread((4.0,)), 70: Spread((2.0,))}) == (9, {70: Spread((0.5,))})
    assert over_base({70: Spread((2.0,))}) == (70, {})


def test_plain_steps_are_greedy_and_forgotten() -> None:
    model = TimedModel(lambda rows, context: 0.25 if rows == 1 else 9.0)
    rates = plain_rates(model, TOKENS, [50, 90], 10, 3, model.clock, quiet)
    assert [spread.runs for spread in rates.values()] == [(4.0,) * 3] * 2
    assert model.cache == TOKENS[:90]
    singles = [start for start, rows, _ in model.heads[2:] if rows == 1]
    assert singles == [*range(50, 60)] * 3 + [*range(90, 100)] * 3


def test_a_pass_is_compared_with_the_single_row_before_it() -> None:
    speeds = iter([1.0, 1.0] + [1.0] * 7 + [1.0, 1.0, 1.0, 1.0, 10.0, 10.0, 10.0, 10.0])

    def cost(rows: int, context: int) -> float:
        return next(speeds) * (1.0 if rows == 1 else rows * 0.5)

    model = TimedModel(cost)
    (table,) = pass_costs(model, TOKENS, [56], [2, 8], 2, model.clock, quiet)
    # The second round ran on a machine ten times slower; the costs do not show it, the seconds do.
    assert table.cost[2].runs == (1.0, 1.0) and table.cost[8].runs == (4.0, 4.0)
    assert table.seconds[8].runs == (4.0, 40.0)
    assert table.best_rows == 2 and table.best_gain.runs == (2.0, 2.0)
    assert table.fields()["rows"] == [2, 8] and table.fields()["cost"] == [1.0, 4.0]
    assert pass_lines(table).splitlines()[0].startswith("context 56: best pass 2 rows, 2.00 (2.00-2.00) times plain")
    assert model.cache == TOKENS[:56]
    assert all(head == rows for start, rows, head in model.heads if start == 56)


def test_contexts_beyond_the_model_are_refused_before_any_pass() -> None:
    model = TimedModel(lambda rows, context: 1.0)
    with pytest.raises(RequestError, match=r"Context 395 cannot be measured: the model holds 400 tokens"):
        plain_rates(model, TOKENS, [10, 395], 10, 1, model.clock, quiet)
    with pytest.raises(RequestError, match="at least one token"):
        prefill_rates(model, TOKENS, [], 1, model.clock, quiet)
    with pytest.raises(RequestError, match="1 to 8 rows"):
        pass_costs(model, TOKENS, [10], [9], 1, model.clock, quiet)
    assert model.passes == []


def test_passes_at_this_place_leave_the_cache_alone_and_give_medians() -> None:
    model = TimedModel(lambda rows, context: {1: 1.0, 2: 1.0, 4: 4.0, 8: 2.0}[rows])
    model.forward(TOKENS[:8], head_rows=0)
    before, slow = list(model.cache), iter([10.0, 0.0])
    model.before_pass = lambda: setattr(model, "now", model.now + next(slow, 0.0))  # the first pass of 2 is disturbed
    assert seconds_here(model, TOKENS, (2, 4, 8, 64), 3, model.clock) == {2: 1.0, 4: 4.0, 8: 2.0}
    assert model.passes[1:] == [2, 4, 8] * 3
    assert model.cache == before


def test_without_room_there_is_no_pass() -> None:
    model = TimedModel(lambda rows, context: 1.0, context=9)
    model.forward(TOKENS[:8], head_rows=0)
    assert seconds_here(model, TOKENS, (2, 4), 3, model.clock) == {}


def test_a_cache_smaller_than_a_pass_is_warmed_up_too() -> None:
    model = TimedModel(lambda rows, context: 1.0, context=6)
    assert prefill_rates(model, TOKENS, [5], 1, model.clock, quiet)[5].runs == (5.0,)
    assert model.passes[0] == 6
