"""What a load takes against what is there: numbers that add up, contexts found exactly, and choices that fit."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.errors import OutOfMemoryError
from editor_engine.memory import (
    CHECKED_TOKENS,
    CPU,
    FEWEST_TOKENS,
    WORKSPACE_BYTES,
    Choice,
    MemoryPlan,
    Need,
    nearest,
    refuse_if_short,
    size_words,
)

GB = 10**9
BIG = Need("big", 5 * GB, 20_000, 0)
SMALL = Need("small", 1 * GB, 10_000, 0, drafts=True)

BYTES = st.integers(0, 10**6)
TOKENS = st.integers(1, 5000)
NEEDS = st.builds(
    Need,
    name=st.just("n"),
    weights=BYTES,
    cache_per_token=st.integers(0, 300),
    workspace=BYTES,
    place=st.sampled_from([CPU, "cuda:0"]),
    drafts=st.booleans(),
    most_tokens=st.none() | TOKENS,
)
PLANS = st.builds(
    MemoryPlan,
    needs=st.tuples(NEEDS) | st.tuples(NEEDS, NEEDS) | st.tuples(NEEDS, NEEDS, NEEDS),
    context=TOKENS,
    asked=st.booleans(),
    copies=BYTES,
    free=st.dictionaries(st.sampled_from([CPU, "cuda:0"]), st.none() | st.integers(0, 3 * 10**6)),
    cap=st.none() | st.integers(1, 5 * 10**6),
)


def fits_plainly(plan: MemoryPlan) -> bool:
    """The slow twin: every place and the cap, added up one by one."""
    tokens = plan.context if plan.asked or plan.context < CHECKED_TOKENS else CHECKED_TOKENS
    here = {CPU: 0, "cuda:0": 0}
    whole = plan.copies
    for need in plan.needs:
        for count, total in ((tokens, "here"), (plan.context, "whole")):
            kept = count if need.most_tokens is None or need.most_tokens > count else need.most_tokens
            size = need.weights + need.workspace + need.cache_per_token * kept
            if total == "here":
                here[need.place] += size
            else:
                whole += size
    for place, size in here.items():
        free = plan.free.get(place)
        if free is not None and size > free and any(need.place == place for need in plan.needs):
            return False
    return plan.cap is None or whole <= plan.cap


@settings(derandomize=True, deadline=None, max_examples=300)
@given(PLANS)
def test_a_plan_fits_where_every_sum_does(plan: MemoryPlan) -> None:
    assert plan.fits == fits_plainly(plan)
    assert sum(map(plan.needed, plan.places)) == sum(need.bytes(plan.tokens) for need in plan.needs)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(PLANS)
def test_the_longest_context_fits_and_one_token_more_does_not(plan: MemoryPlan) -> None:
    longest = plan.longest_context()
    assert 0 <= longest <= plan.context
    assert longest == 0 or fits_plainly(plan.with_context(longest))
    assert longest == plan.context or not fits_plainly(plan.with_context(longest + 1))


@settings(derandomize=True, deadline=None, max_examples=300)
@given(PLANS, PLANS)
def test_a_choice_that_is_offered_fits(plan: MemoryPlan, other: MemoryPlan) -> None:
    choice = nearest(plan, [Choice("another", other)])
    if choice is not None:
        assert fits_plainly(choice.plan)
        numbers = re.findall(r"--context-length (\d+)", choice.words)
        assert all(int(number) == choice.plan.context >= FEWEST_TOKENS for number in numbers)
    else:
        assert not fits_plainly(other) and plan.longest_context() < FEWEST_TOKENS
    if fits_plainly(plan):
        refuse_if_short(plan)
        return
    with pytest.raises(OutOfMemoryError) as caught:
        refuse_if_short(plan, lambda: [Choice("another", other)])
    assert ("no smaller choice" in str(caught.value)) == (choice is None)
    assert choice is None or choice.words in str(caught.value)


def refusal(plan: MemoryPlan, *others: Choice) -> str:
    with pytest.raises(OutOfMemoryError) as caught:
        refuse_if_short(plan, lambda: others)
    return str(caught.value)


def test_every_number_is_in_the_sentence() -> None:
    plan = MemoryPlan((BIG, SMALL), 100_000, True, free={CPU: 8 * GB})
    assert refusal(plan) == (
        "big needs about 9.00 GB of memory (weights 5.00 GB, its cache of 100000 tokens 2.00 GB, draft model 1.00 GB, "
        "its cache of 100000 tokens 1.00 GB, workspace 0 MB) and 8.00 GB is available; the nearest choice that fits is "
        "a context of 66666 tokens (--context-length 66666)."
    )


def test_a_cache_that_holds_fewer_tokens_says_so() -> None:
    plan = MemoryPlan((BIG, replace(SMALL, most_tokens=500)), 100_000, True, free={CPU: 8 * GB - 1})
    assert "draft model 1.00 GB, its cache of 500 tokens 5 MB" in refusal(plan)


def test_choices_come_in_the_order_of_what_they_cost_the_user() -> None:
    plan = MemoryPlan((BIG, SMALL), 100_000, True, free={CPU: 8 * GB})
    nf4 = Choice("4-bit weights", MemoryPlan((replace(BIG, weights=1 * GB),), 100_000, True, free={CPU: 3 * GB}))
    words = []
    for free in (8, 6.005, 5.5, 3, 1.5, 0.5):
        room = {CPU: int(free * GB)}
        choice = nearest(replace(plan, free=room), [replace(nf4, plan=replace(nf4.plan, free=room))])
        words.append(None if choice is None else choice.words)
    assert words == [
        "a context of 66666 tokens (--context-length 66666)",
        "no draft model with a context of 50250 tokens (--context-length 50250)",
        "no draft model with a context of 25000 tokens (--context-length 25000)",
        "4-bit weights",
        "4-bit weights with a context of 25000 tokens (--context-length 25000)",
        None,
    ]


def test_without_its_draft_model_it_may_fit_as_it_is() -> None:
    plan = MemoryPlan((BIG, replace(SMALL, weights=3 * GB)), 1000, True, free={CPU: 6 * GB})
    choice = nearest(plan)
    assert choice is not None and (choice.words, choice.plan.needs) == ("no draft model", (BIG,))


def test_a_context_nobody_asked_for_needs_room_for_its_beginning_only() -> None:
    need = Need("n", GB, 10**6, 0)
    free: dict[str, int | None] = {CPU: GB + CHECKED_TOKENS * 10**6}
    assert MemoryPlan((need,), 10**6, free=free).fits
    assert not MemoryPlan((need,), 10**6, asked=True, free=free).fits
    assert MemoryPlan((need,), CHECKED_TOKENS, asked=True, free=free).fits


def test_the_cap_counts_all_that_may_come() -> None:
    need = Need("n", GB, 10**5, 0)
    plan = MemoryPlan((need,), 10_000, free={CPU: 100 * GB}, cap=2 * GB)
    assert plan.fits
    sentence = refusal(replace(plan, copies=512 << 20))
    assert "copies of caches 537 MB" in sentence and "--max-memory allows 2.00 GB" in sentence
    assert sentence.endswith(
        "the nearest choice that fits is 0 MiB for the prompts of other conversations (--cache-mb 0)."
    )
    choice = nearest(replace(plan, copies=512 << 20, cap=GB + GB + (100 << 20)))
    assert choice is not None and choice.plan.copies == 100 << 20 and "(--cache-mb 100)" in choice.words
    assert refusal(replace(plan, cap=1)).endswith("no smaller choice that is known here fits; allow it more.")
    assert "a context of 5000 tokens" in refusal(replace(plan, cap=GB + 5 * 10**8))
    assert "a context of 5000 tokens" in refusal(replace(plan, copies=512 << 20, cap=GB + 5 * 10**8))


def test_where_nothing_is_known_only_the_cap_refuses() -> None:
    plan = MemoryPlan((replace(BIG, weights=10**15),), 1000, free={CPU: None})
    refuse_if_short(plan)
    refuse_if_short(replace(plan, free={}))
    refusal(replace(plan, cap=10**9))


def test_a_device_is_named() -> None:
    sentence = refusal(MemoryPlan((replace(BIG, place="cuda:1"),), 1, True, free={"cuda:1": GB, CPU: 0}))
    assert "1.00 GB is available on cuda:1; no smaller choice that is known here fits" in sentence


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 10**13))
def test_sizes_are_rounded_to_the_side_that_is_asked_for(size: int) -> None:
    def read(words: str) -> float:
        number, unit = words.split()
        return float(number) * {"MB": 10**6, "GB": 10**9}[unit]

    assert read(size_words(size)) <= size + 1 and read(size_words(size, up=True)) >= size - 1
    assert read(size_words(size, up=True)) - read(size_words(size)) <= max(10**7, 10**6) + 1


def test_our_own_kernels_need_little_beside_the_model() -> None:
    assert Need("n", 0, 0).bytes(5) == WORKSPACE_BYTES
