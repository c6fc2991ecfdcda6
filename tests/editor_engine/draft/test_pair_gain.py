"""What a draft model is taken to gain: by costs first, by what was measured soon, and never by less than was kept."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.draft.pair_gain import CONFIDENCES, TRIAL, PairGain, Place
from editor_engine.draft.pass_cost import PassCost

DEAR = PassCost.shipped("avx2").costs(0)
FLAT = PassCost.flat().costs(0)


def place(draft_s: float, costs: object = DEAR, plain_s: float = 1.0) -> Place:
    return Place(plain_s, draft_s, costs)  # type: ignore[arg-type]


def test_what_costs_promise_falls_with_the_draft_models_share() -> None:
    gains = [PairGain().expected(place(share)) for share in (0.05, 0.2, 0.4, 0.7, 1.0)]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 1.3 > 1.0 > gains[-1]
    # By hand: one drafted token, right in 7 of 10, for 0.4 steps and a pass of two rows.
    assert PairGain().expected(place(0.4)) == pytest.approx(1.7 / (0.4 + DEAR[2]))
    assert PairGain().expected(place(0.2, FLAT, 2.0)) > PairGain().expected(place(0.2, DEAR, 2.0))


def test_the_gain_is_measured_per_kind_and_takes_over_from_what_was_expected() -> None:
    gain, here = PairGain(), place(0.3)
    assert gain.measured("edit") is None and gain.gain("edit", here) == pytest.approx(gain.expected(here))
    for _ in range(200):
        gain.attempted("edit", 2.0, 1.0)
    assert gain.measured("edit") == pytest.approx(0.5)
    assert 0.5 < gain.gain("edit", here) < 0.7
    assert gain.measured("text") is None and gain.gain("text", here) > 1.0


def test_what_is_confident_counts_as_likely_until_it_was_seen_to_be_wrong() -> None:
    gain = PairGain()
    assert gain.chance(0, 0.999) > gain.chance(0, 0.6) > gain.chance(0, 0.05)
    for _ in range(100):
        gain.learn(0, 0.999, False, 0)
    assert gain.chance(0, 0.999) < 0.2 < gain.chance(1, 0.999)


def test_a_row_and_a_pass_are_worth_it_where_they_bring_more_than_they_cost() -> None:
    gain, cheap, dear = PairGain(), place(0.05), place(0.6)
    row = DEAR[2] - DEAR[1]
    assert gain.worth_a_row("text", dear, row + 0.01, 0) and not gain.worth_a_row("text", dear, row - 0.01, 0)
    assert gain.worth_a_pass("text", cheap, 0.9, 1) and not gain.worth_a_pass("text", dear, 0.9, 1)
    assert gain.worth_asking("text", cheap, 0, 8) and not gain.worth_asking("text", place(0.9), 0, 8)
    assert not gain.worth_asking("text", cheap, 0, 0)


def test_reading_is_worth_it_for_enough_tokens_and_never_without_a_gain() -> None:
    gain, here = PairGain(), place(0.2)
    share = 1.0 - 1.0 / gain.expected(here)
    assert gain.worth_reading("text", here, 10.0 * share, 10.1) and not gain.worth_reading("text", here, 10.0, 9.9)
    assert not gain.worth_reading("text", place(2.0), 0.001, 10**9)


def test_the_gain_is_taken_over_plain_steps_that_were_timed_lately() -> None:
    gain = PairGain()
    assert gain.plain_s is None and not gain.plain_is_due
    gain.passed(4, 9.0)
    assert gain.plain_s is None
    for seconds in (1.0, 50.0, 1.2):  # one of them was disturbed
        gain.passed(1, seconds)
    assert gain.plain_s == 1.2
    attempts = 0
    while not gain.plain_is_due:
        gain.attempted("text", 1.0, 1.0)
        attempts += 1
    assert 10 < attempts < 50
    gain.passed(1, 3.0)
    assert not gain.plain_is_due
    for _ in range(20):
        gain.passed(1, 3.0)
    assert gain.plain_s == 3.0


def test_a_token_is_worth_what_all_steps_give_not_what_the_best_ones_do() -> None:
    """A draft model that is asked only where it is sure must not raise the price of asking it elsewhere."""
    sure, all_of_it = PairGain(), PairGain()
    for _ in range(100):
        for gain in (sure, all_of_it):
            gain.attempted("text", 1.0, 2.0)
        for _ in range(9):
            all_of_it.stepped("text", 1.0)
    assert sure.measured("text") == all_of_it.measured("text") == pytest.approx(2.0)
    chance = 1.5 * (DEAR[2] - DEAR[1])
    assert all_of_it.worth_a_row("text", place(0.3), chance, 0) and not sure.worth_a_row("text", place(0.3), chance, 0)


def test_lengths_follow_the_replies() -> None:
    gain = PairGain()
    before = gain.left_over("edit", "reply")
    for _ in range(40):
        gain.counted("edit", "reply", 7)
    assert gain.left_over("edit", "reply") == pytest.approx(7, abs=0.1)
    assert gain.left_over("text", "reply") == before
    assert gain.left_over("edit", "run") == PairGain().left_over("edit", "run")


def test_trials_are_paid_by_a_hundredth_of_the_passes() -> None:
    gain, here = PairGain(), place(0.5)
    loss = 0.5 + DEAR[2] - DEAR[1]
    passes = 0
    while not gain.may_try("text", here, 3.0):
        gain.passed(1, 1.0)
        passes += 1
    assert passes == pytest.approx(100 * (3.0 + TRIAL * loss), abs=2)
    gain.spent(3.0)
    for _ in range(TRIAL):
        gain.attempted("text", 1.0 + loss, 1.0)
    assert not gain.may_probe(here)
    while not gain.may_probe(here):
        gain.passed(1, 1.0)
    gain.attempted("text", 1.0 + loss, 1.0)
    assert not gain.may_probe(here)


numbers = st.floats(0.0, 50.0)
events = st.lists(
    st.one_of(
        st.tuples(st.just("attempted"), st.sampled_from(["edit", "text"]), numbers, numbers),
        st.tuples(st.just("learn"), st.integers(0, 3), st.floats(0.0, 1.0), st.booleans(), st.integers(0, 9)),
        st.tuples(st.just("counted"), st.sampled_from(["edit", "text"]), st.just("run"), st.integers(0, 99)),
    ),
    max_size=30,
)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(events=events, draft_s=st.floats(0.01, 3.0), confidence=st.floats(0.0, 1.0))
def test_what_was_learned_comes_back_through_json(
    events: list[tuple[object, ...]], draft_s: float, confidence: float
) -> None:
    gain, again = PairGain(), PairGain()
    for name, *values in events:
        getattr(gain, str(name))(*values)
    again.restore(json.loads(json.dumps(gain.snapshot())))
    here = place(draft_s)
    for kind in ("edit", "text"):
        assert again.gain(kind, here) == gain.gain(kind, here)
        assert again.left_over(kind, "run") == gain.left_over(kind, "run")
    assert again.chance(1, confidence) == gain.chance(1, confidence)
    assert 0.0 <= gain.chance(0, confidence) <= 1.0


@pytest.mark.parametrize(
    "damage",
    [
        {},
        {"chances": {}, "measured": {}},
        {"chances": {"0.1": [1]}, "measured": {}, "lengths": {}},
        {"chances": {"0.1": [2, 1]}, "measured": {}, "lengths": {}},
        {"chances": {}, "measured": {"edit": [1, 2, -3]}, "lengths": {}},
        {"chances": {}, "measured": {"edit": [1, 2, float("nan")]}, "lengths": {}},
        {"chances": {}, "measured": {}, "lengths": {"edit run": ["x"]}},
        {"chances": {}, "measured": {}, "lengths": {"edit run": [1e300]}},
    ],
)
def test_a_damaged_memory_changes_nothing(damage: dict[str, dict[str, list[float]]]) -> None:
    gain = PairGain()
    with pytest.raises((ValueError, KeyError)):
        gain.restore(damage)
    assert gain.snapshot() == PairGain().snapshot()


def test_every_confidence_has_a_bucket() -> None:
    gain = PairGain()
    found = [gain.chance(0, confidence) for confidence in (0.0, *CONFIDENCES, 1.0)]
    assert found == sorted(found)
