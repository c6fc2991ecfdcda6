"""A draft model that is not asked costs nothing: pass for pass, the drafts are those of an engine without one."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.decode.draft_pair import Use
from editor_engine.decode.speculate import PassRecord
from editor_engine.draft.chain import ChainDrafter
from tests.support.fake_model import pseudo_random, script
from tests.support.sinks import CountingSink
from tests.support.timed_pair import VOCAB, TimedPair

UNASKED = {
    "its drafts are expected to give 0.": (0.95, 20, Use.MEASURED),
    "more than its drafts are expected to save": (0.3, 600, Use.MEASURED),
    "nothing was left for it": (0.1, 20, Use.NEVER),
}
"""What is said of it: seconds of its passes, tokens before the source, and when it is asked."""


def edited(source: list[int], seed: int, share: float) -> list[int]:
    """`source` with so many of its places replaced, left out or followed by new tokens."""
    chance = random.Random(seed)
    reply: list[int] = []
    for token in source:
        kind = chance.choice(("replaced", "left out", "followed")) if chance.random() < share else "kept"
        if kind in ("kept", "followed"):
            reply.append(token)
        if kind in ("replaced", "followed"):
            reply += [chance.randrange(VOCAB) for _ in range(chance.randrange(1, 4))]
    return reply or [0]


def passes(
    why: str, source: list[int], replies: list[list[int]], noise: float, *, paired: bool
) -> tuple[list[PassRecord], object, list[str]]:
    """All passes of some replies one after the other, what their times taught of costs, and what was said of a pair."""
    draft_s, before, use = UNASKED[why]
    prompt = [*(random.Random(3).randrange(VOCAB) for _ in range(before)), *source]
    texts = iter(replies)
    now = [script(len(prompt), next(texts))]
    pair = TimedPair(pseudo_random(VOCAB), draft_s, target=lambda tokens: now[0](tokens), noise=noise)
    pair.pair.use = use
    records: list[PassRecord] = []
    said: list[str] = []
    for reply in replies:
        now[0] = script(len(prompt), reply)
        chain = ChainDrafter(prompt, source, cost=pair.cost)
        if paired:
            run = pair.reply(prompt, len(reply), chain)
            assert run.ids == reply and run.stats.passes == 0 == len(pair.draft.passes)
            records += run.records
            said.append(run.stats.decision)
        else:
            records += pair.passes(prompt, chain, CountingSink(len(reply)))
    return records, pair.cost.snapshot(), said


EDITS = {
    "source": st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=200),
    "seeds": st.lists(st.integers(0, 99), min_size=1, max_size=2),
    "share": st.floats(0.0, 0.3),
    "noise": st.sampled_from([0.0, 0.3, 1.5]),
}


def check_unasked(why: str, source: list[int], seeds: list[int], share: float, noise: float) -> None:
    replies = [edited(source, seed, share) for seed in seeds]
    alone, paired = (passes(why, source, replies, noise, paired=paired) for paired in (False, True))
    assert paired[:2] == alone[:2]


@pytest.mark.parametrize("why", UNASKED)
@settings(derandomize=True, deadline=None, max_examples=10)
@given(**EDITS)
def test_passes_are_those_without_a_draft_model(why: str, **case: Any) -> None:
    check_unasked(why, **case)


@pytest.mark.slow
@pytest.mark.parametrize("why", UNASKED)
@settings(derandomize=True, deadline=None, max_examples=1000)
@given(**EDITS)
def test_passes_are_those_without_a_draft_model_in_a_thousand_edits(why: str, **case: Any) -> None:
    check_unasked(why, **case)


@pytest.mark.parametrize("why", UNASKED)
def test_the_drafts_compared_are_long_ones_and_short_ones_at_the_costs_learned(why: str) -> None:
    source = [random.Random(5).randrange(VOCAB) for _ in range(300)]
    lengths = {}
    for noise in (0.0, 1.5):
        records, _, said = passes(why, source, [edited(source, 1, 0.1)] * 2, noise, paired=True)
        lengths[noise] = [len(record.draft.tokens) for record in records]
        assert len(set(lengths[noise])) > 3 and 0 in lengths[noise]
        assert noise or all(why in words for words in said)
    assert lengths[0.0] != lengths[1.5]
