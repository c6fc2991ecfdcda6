"""The draft model in the chain: the same tokens whatever it says, asked while it pays and left out when it does not."""

import itertools
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.decode.draft_pair import DraftPair, Use
from editor_engine.decode.model_drafter import CATCH_UP, ModelDrafter
from editor_engine.decode.plain import plain
from editor_engine.decode.speculate import speculate
from editor_engine.draft.chain import ChainDrafter
from editor_engine.draft.drafter import Draft
from editor_engine.draft.pass_cost import PassCost
from editor_engine.errors import CancelledError, NumericsError, OutOfMemoryError
from editor_engine.events import DRAFT_MODEL, Provenance
from editor_engine.models.target import ModelInfo
from tests.support.fake_model import FakeModel, pseudo_random, script
from tests.support.sinks import CountingSink
from tests.support.timed_pair import VOCAB, Run, Silent, TimedPair, right_so_often

STOP = 63
TRUTH = pseudo_random(VOCAB)
PROMPT = [random.Random(1).randrange(VOCAB) for _ in range(20)]


def stopping(sink: CountingSink) -> Callable[[], bool]:
    return lambda: len(sink.ids) < sink.limit and STOP not in sink.ids


def emitted_plain(prompt: Sequence[int], length: int, *, stops: bool = False) -> list[int]:
    model = FakeModel(TRUTH, rows=64)
    first = model.forward(prompt, head_rows=1)[0]
    sink = CountingSink(length, [first])
    if stops:
        sink.wants_more = stopping(sink)  # type: ignore[method-assign]
    list(plain(lambda tokens, rows: model.forward(tokens, head_rows=rows), first, sink, itertools.count().__next__))
    return sink.ids


class HostileModel(FakeModel):
    """Says anything, and fails in every way there is after so many passes."""

    def __init__(self, seed: int, fails_after: int, failure: type[Exception] | None, context: int, vocab: int) -> None:
        super().__init__(pseudo_random(vocab), vocab_size=vocab, rows=5, context=context)
        self._chance = np.random.default_rng(seed)
        self._left = fails_after
        self._failure = failure

    def logits(self, tokens: Sequence[int], *, head_rows: int) -> npt.NDArray[np.float32]:
        self._left -= 1
        if self._left < 0 and self._failure is not None:
            raise self._failure("it broke.")
        rows = super().logits(tokens, head_rows=head_rows)
        rows += self._chance.normal(0.0, 20.0, rows.shape).astype(np.float32)
        kind = self._chance.integers(0, 12)
        if kind == 0:
            rows[:] = np.nan
        elif kind == 1:
            rows[:, 0] = np.inf
        elif kind == 2:
            rows[:] = -np.inf
        return rows


PAIRS = {
    "prompt": st.lists(st.integers(0, 62), min_size=1, max_size=30),
    "source": st.lists(st.integers(0, 62), max_size=30),
    "limit": st.integers(1, 60),
    "seed": st.integers(0, 99),
    "fails_after": st.integers(0, 20),
    "failure": st.sampled_from([None, NumericsError, OutOfMemoryError, MemoryError]),
    "context": st.integers(8, 80),
    "vocab": st.sampled_from([40, 64, 80]),
    "use": st.sampled_from([Use.ALWAYS, Use.MEASURED]),
}


def check_any_draft_model(
    prompt: list[int],
    source: list[int],
    limit: int,
    seed: int,
    fails_after: int,
    failure: type[Exception] | None,
    context: int,
    vocab: int,
    use: Use,
) -> None:
    small = HostileModel(seed, fails_after, failure, context, vocab)
    target = FakeModel(TRUTH, rows=64)
    clock = itertools.count().__next__
    pair = DraftPair(small, target.info, min(vocab, VOCAB), clock=clock)
    pair.use = use
    cost = PassCost.shipped("avx2")
    cost.observe(1, 0, 40.0)
    for _ in range(2):  # the second reply finds the draft model's cache as the first one left it
        target.truncate(0)
        first = target.forward(prompt, head_rows=1)[0]
        chain = ChainDrafter(prompt, source, {STOP}, cost=cost)
        drafter = ModelDrafter(chain, pair, prompt, {STOP}, cost, "text", limit, clock)
        sink = CountingSink(limit, [first])
        sink.wants_more = stopping(sink)  # type: ignore[method-assign]
        drafter.observe(Draft(), 0, [first], None)
        list(
            speculate(
                target, lambda tokens, rows: target.forward(tokens, head_rows=rows), first, drafter, sink, {STOP}, clock
            )
        )
        assert sink.ids == emitted_plain(prompt, limit, stops=True)
        assert small.cache == pair._cached and len(small.cache) <= context
        stats = drafter.finish()
        assert all(stood <= seen for seen, stood in stats.by_position)
        assert stats.cache_bytes == 4 * len(small.cache)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(**PAIRS)
def test_any_draft_model_gives_the_tokens_of_the_target_alone(**case: Any) -> None:
    check_any_draft_model(**case)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=5000)
@given(**PAIRS)
def test_thousands_of_draft_models_give_the_tokens_of_the_target_alone(**case: Any) -> None:
    check_any_draft_model(**case)


def test_a_draft_model_that_is_always_right_is_asked_and_believed() -> None:
    pair = TimedPair(TRUTH, 0.1)
    pair.reply(PROMPT, 60)
    run = pair.reply(PROMPT, 200)
    assert run.ids == emitted_plain(PROMPT, 200)
    assert run.seconds < 0.5 * 199
    assert all(seen == stood for seen, stood in run.stats.by_position) and len(run.stats.by_position) >= 4
    assert run.stats.gain is not None and run.stats.gain > 2.0
    assert "drafted where it paid" in run.stats.decision and f"{run.stats.gain:.2f} of plain" in run.stats.decision
    drafted = [record for record in run.records if record.draft.drafter == DRAFT_MODEL]
    for record in drafted:
        kinds = [origin.provenance for origin in record.origins]
        assert kinds[: record.accepted] == [Provenance.DRAFTED] * record.accepted
        assert kinds[record.accepted :] == [Provenance.GENERATED] * (len(kinds) - record.accepted)
    seen = run.stats.by_position[0][0]
    assert seen == len(drafted)


@pytest.mark.parametrize(("share", "draft_s"), [(0.0, 0.1), (0.0, 0.3), (0.3, 0.3), (0.4, 0.5), (0.7, 0.6), (1.0, 1.0)])
def test_a_draft_model_that_does_not_pay_costs_a_bounded_trial_once_and_a_hundredth_after_it(
    share: float, draft_s: float
) -> None:
    pair = TimedPair(right_so_often(TRUTH, share), draft_s)
    first, second = pair.reply(PROMPT, 120), pair.reply(PROMPT, 600)
    assert second.ids == emitted_plain(PROMPT, 600)
    assert first.seconds < 119 + 20
    assert second.seconds < 1.0101 * 599
    assert second.stats.gain is None or second.stats.gain < 1.0
    assert "was not asked" in second.stats.decision or "left out again" in second.stats.decision
    assert ("expected to" in second.stats.decision) == (second.stats.gain is None)


@pytest.mark.parametrize(("share", "draft_s", "most"), [(0.7, 0.1, 0.8), (0.8, 0.3, 0.92), (0.9, 0.4, 0.9)])
def test_a_draft_model_that_pays_is_in(share: float, draft_s: float, most: float) -> None:
    pair = TimedPair(right_so_often(TRUTH, share), draft_s)
    pair.reply(PROMPT, 120)
    run = pair.reply(PROMPT, 400)
    assert run.seconds < most * 399
    seen, stood = run.stats.by_position[0]
    assert stood / seen == pytest.approx(share, abs=0.1)


def test_it_comes_back_in_when_it_starts_to_pay() -> None:
    says = [0.0]
    pair = TimedPair(lambda tokens: right_so_often(TRUTH, says[0])(tokens), 0.1)
    pair.reply(PROMPT, 100)
    assert pair.reply(PROMPT, 100).stats.passes == 0
    says[0] = 1.0
    runs = [pair.reply(PROMPT, 400) for _ in range(12)]
    assert runs[-1].seconds < 0.6 * 399


def test_a_long_prompt_is_not_read_for_a_short_reply() -> None:
    prompt = [random.Random(7).randrange(VOCAB) for _ in range(600)]
    pair = TimedPair(TRUTH, 0.3)
    run = pair.reply(prompt, 30)
    assert (run.stats.passes, run.stats.read_tokens, pair.draft.passes) == (0, 0, [])
    assert re.search(r"to read 60\d tokens takes \d+\.\d s, more than its drafts", run.stats.decision)
    assert run.seconds == pytest.approx(29.0)


def test_what_was_read_for_one_request_is_not_read_again_for_the_next() -> None:
    pair = TimedPair(TRUTH, 0.1)
    first = pair.reply(PROMPT, 60)
    again = pair.reply([*PROMPT, *first.ids, 5, 6, 7], 60)
    assert first.stats.read_tokens >= len(PROMPT)
    assert again.stats.read_tokens <= 3 * len(again.records) and again.stats.read_s == 0.0
    assert len(first.ids) + 3 > CATCH_UP


def test_a_weak_draft_of_the_chain_gives_way_to_a_draft_model_that_does_better() -> None:
    class Weak(Silent):
        def __init__(self, expected: float | None) -> None:
            self._expected = expected

        def draft(self, room: int) -> Draft:
            return Draft((0,), "weak", None, self._expected) if room else Draft()

    def drafters(expected: float | None) -> list[str | None]:
        pair = TimedPair(TRUTH, 0.1)
        pair.reply(PROMPT, 100)
        return [record.draft.drafter for record in pair.reply(PROMPT, 60, Weak(expected)).records]

    weak, strong, silent = drafters(1.01), drafters(9.0), drafters(None)
    assert weak.count(DRAFT_MODEL) > len(weak) // 2
    assert set(strong[:-1]) == set(silent[:-1]) == {"weak"}


@pytest.mark.parametrize("use", [Use.MEASURED, Use.ALWAYS])
def test_only_what_the_text_does_not_hold_is_left_to_a_draft_model_that_pays(use: Use) -> None:
    chance = random.Random(3)
    source, added = ([chance.randrange(VOCAB) for _ in range(length)] for length in (400, 99))
    now = [script(len(source), [*source[:200], *added, *source[200:]])]
    pair = TimedPair(right_so_often(lambda tokens: now[0](tokens), 0.95), 0.02, target=lambda tokens: now[0](tokens))
    pair.pair.use = use

    def left_to_it(length: int) -> tuple[int, int]:
        """(passes it drafted for, tokens between the first and the last of them)"""
        records = pair.reply(source, length, ChainDrafter(source, source, cost=pair.cost)).records
        its = [number for number, record in enumerate(records) if record.draft.drafter == DRAFT_MODEL]
        return len(its), sum(len(record.emitted) for record in records[its[0] : its[-1] + 1]) if its else 0

    for _ in range(2):
        passes, tokens = left_to_it(len(source) + len(added))
        assert passes > 5 and tokens < len(added) + 20  # until the cursor has found its place again
    now[0] = script(len(source), source)
    assert left_to_it(len(source)) == (0, 0)


@pytest.mark.parametrize("failure", [NumericsError, OutOfMemoryError, MemoryError])
def test_an_error_of_the_draft_model_is_said_and_ends_its_part_only(failure: type[Exception]) -> None:
    pair = TimedPair(TRUTH, 0.1)
    pair.reply(PROMPT, 60)

    def fail() -> None:
        raise failure("something about the layer 7.")

    pair.draft.before_pass = fail
    run = pair.reply(PROMPT, 60)
    assert run.ids == emitted_plain(PROMPT, 60)
    assert "given up for this reply: something about the layer 7." in run.stats.decision
    assert pair.draft.length == 0
    pair.draft.before_pass = lambda: None
    assert pair.reply(PROMPT, 60).stats.passes > 0


def test_a_cancelled_pass_of_the_draft_model_cancels_the_request() -> None:
    pair = TimedPair(TRUTH, 0.1)
    pair.reply(PROMPT, 60)
    pair.draft.before_pass = pair.draft.interrupt
    with pytest.raises(CancelledError):
        pair.reply(PROMPT, 60)
    pair.draft.before_pass = lambda: None
    pair.draft.resume()
    assert pair.reply(PROMPT, 60).ids == emitted_plain(PROMPT, 60)


def test_its_own_context_ends_its_part() -> None:
    pair = TimedPair(TRUTH, 0.1, context=len(PROMPT) + 30)
    run = pair.reply(PROMPT, 90)
    assert run.ids == emitted_plain(PROMPT, 90)
    assert "its context of 50 tokens is full" in run.stats.decision
    assert run.stats.passes > 0


def test_ids_only_one_of_them_has_are_never_drafted() -> None:
    pair = TimedPair(TRUTH, 0.1, known_ids=32)
    pair.pair.use = Use.ALWAYS
    run = pair.reply(PROMPT, 90)
    assert run.ids == emitted_plain(PROMPT, 90)
    assert max(run.ids) >= 32
    assert all(token < 32 for record in run.records for token in record.draft.tokens)
    assert run.stats.passes > 0


def keeping(folder: Path) -> tuple[TimedPair, Run]:
    pair = TimedPair(right_so_often(TRUTH, 0.0), 0.3)
    info = pair.target.info
    pair.pair = DraftPair(pair.draft, info, VOCAB, folder=folder / "d", target_folder=folder / "t", clock=pair.clock)
    run = pair.reply(PROMPT, 120)
    pair.pair.save()
    return pair, run


def test_what_was_learned_is_known_after_a_restart(tmp_path: Path) -> None:
    first, again = keeping(tmp_path), keeping(tmp_path)
    assert first[1].stats.passes > 0 == again[1].stats.passes
    assert "measured to give" in again[1].stats.decision
    (kept,) = (tmp_path / "t").iterdir()
    pair = again[0]
    for change in (
        {"threads": 2},
        {"isa": "avx2"},
        {"device": "cuda:0"},
        {"contract_version": 2},
        {"sha256": "1" * 64},
    ):
        other = replace(pair.target.info, **change)  # type: ignore[arg-type]
        DraftPair(pair.draft, other, VOCAB, target_folder=tmp_path / "t", clock=pair.clock).save()
    assert kept.exists() and len(list((tmp_path / "t").iterdir())) == 6


@pytest.mark.parametrize(
    "damage", ["", "[]", "{}", '{"chances": 3}', "\x00", '{"chances": {"a": [1]}, "measured": {}}']
)
def test_a_damaged_memory_means_nothing_was_learned(tmp_path: Path, damage: str) -> None:
    keeping(tmp_path)
    (file,) = (tmp_path / "t").iterdir()
    file.write_text(damage)
    assert keeping(tmp_path)[1].stats.passes > 0
    (tmp_path / "file").write_text("")
    keeping(tmp_path / "file")


def test_sizes_stand_in_for_seconds_until_a_pass_was_timed() -> None:
    def share(draft: int, target: int) -> float:
        model = FakeModel(TRUTH)
        model._info = ModelInfo("d", "a", "0" * 64, 64, 99, "cpu", 1, "scalar", 1, weights_bytes=draft)
        info = ModelInfo("t", "a", "1" * 64, 64, 99, "cpu", 1, "scalar", 1, weights_bytes=target)
        pair = DraftPair(model, info, 64, clock=itertools.count().__next__)
        guessed = pair.pass_seconds(5, 2.0)
        pair.logits([1])
        assert pair.pass_seconds(5, 2.0) == 1.0
        return guessed / 2.0

    assert share(1, 4) == 0.25
    assert 0.0 < share(0, 0) < 1.0
