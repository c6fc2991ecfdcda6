"""The speculative loop against its plain twin: whatever a drafter does, the same tokens come out."""

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.decode.plain import plain
from editor_engine.decode.speculate import Choose, PassRecord, speculate
from editor_engine.decode.verify import common_prefix, usable_draft
from editor_engine.draft.chain import ChainDrafter
from editor_engine.draft.drafter import Draft, Drafter, Origin
from editor_engine.events import Provenance
from tests.support.fake_model import FakeModel, pseudo_random

STOP = 63


class ListSink:
    """Stops at a stop token or a limit, as the real reply does."""

    def __init__(self, limit: int) -> None:
        self.ids: list[int] = []
        self._limit = limit

    def wants_more(self) -> bool:
        return len(self.ids) < self._limit and STOP not in self.ids

    @property
    def room(self) -> int:
        return self._limit - len(self.ids)

    def push(self, token: int) -> None:
        assert self.wants_more()
        self.ids.append(token)


class Hostile:
    """Proposes whatever it was told to, without regard to room, vocabulary or stop tokens."""

    def __init__(self, proposals: Sequence[Sequence[int]]) -> None:
        self._proposals = itertools.cycle(proposals or [[]])

    def draft(self, room: int) -> Draft:
        return Draft(tuple(next(self._proposals)), "hostile", 10**9)

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        return [Origin(Provenance.GENERATED, None)] * len(emitted)


class Truthful(Hostile):
    """Knows the target."""

    def __init__(self, model: FakeModel, first: int) -> None:
        super().__init__([])
        self._model = model
        self._last = first

    def draft(self, room: int) -> Draft:
        ahead, tokens = [*self._model.cache, self._last], []
        for _ in range(room):
            tokens.append(pseudo_random(64)(ahead))
            ahead.append(tokens[-1])
        return Draft(tuple(tokens), "truth")

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        self._last = emitted[-1]
        return super().observe(draft, accepted, emitted, pass_s)


def greedy(model: FakeModel) -> Choose:
    return lambda tokens, head_rows: model.forward(tokens, head_rows=head_rows)


def start(prompt: Sequence[int], rows: int, context: int = 4096) -> tuple[FakeModel, int]:
    model = FakeModel(pseudo_random(64), rows=rows, context=context)
    first = 0
    for token in prompt:
        first = model.forward([token], head_rows=1)[0]
    return model, first


def run_plain(prompt: Sequence[int], limit: int) -> list[int]:
    model, first = start(prompt, 8)
    sink = ListSink(limit)
    sink.push(first)
    list(plain(greedy(model), first, sink, itertools.count().__next__))
    return sink.ids


def run_drafted(prompt: Sequence[int], limit: int, drafter: Drafter | None, rows: int) -> tuple[list[int], FakeModel]:
    model, first = start(prompt, rows)
    drafter = drafter or Truthful(model, first)
    sink = ListSink(limit)
    sink.push(first)
    records = list(speculate(model, greedy(model), first, drafter, sink, {STOP}, itertools.count().__next__))
    check_records(records, sink.ids)
    assert model.cache == [*prompt, *sink.ids[:-1]]
    return sink.ids, model


def check_records(records: Sequence[PassRecord], ids: Sequence[int]) -> None:
    assert list(itertools.chain.from_iterable(record.emitted for record in records)) == list(ids[1:])
    for record in records:
        assert len(record.origins) == len(record.emitted) >= 1
        assert record.accepted <= min(len(record.draft.tokens), len(record.emitted))
        assert record.draft.tokens[: record.accepted] == record.emitted[: record.accepted]
        assert (record.draft.drafter is None) == (not record.draft.tokens)


tokens = st.lists(st.integers(0, 62), min_size=1, max_size=30)
wild = st.lists(st.lists(st.integers(-3, 80), max_size=20), max_size=8)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(prompt=tokens, proposals=wild, limit=st.integers(1, 60), rows=st.integers(1, 9))
def test_a_hostile_drafter_never_changes_the_output(
    prompt: list[int], proposals: list[list[int]], limit: int, rows: int
) -> None:
    assert run_drafted(prompt, limit, Hostile(proposals), rows)[0] == run_plain(prompt, limit)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(prompt=tokens, source=tokens, limit=st.integers(1, 120), rows=st.integers(1, 64))
def test_the_chain_drafter_never_changes_the_output(
    prompt: list[int], source: list[int], limit: int, rows: int
) -> None:
    drafter = ChainDrafter(prompt, source, {STOP})
    assert run_drafted(prompt, limit, drafter, rows)[0] == run_plain(prompt, limit)


def test_a_drafter_that_knows_the_truth_fills_every_pass() -> None:
    prompt = [1, 2, 3]
    expected = run_plain(prompt, 100)
    ids, model = run_drafted(prompt, 100, None, 8)
    assert ids == expected
    # 100 tokens: one from the prefill, the rest eight at a time.
    assert len(model.passes) - len(prompt) == -(-(len(ids) - 1) // 8)


def test_a_full_context_ends_drafting_not_the_loop() -> None:
    prompt = [5, 6, 7]
    model, first = start(prompt, 8, context=20)
    sink = ListSink(17)
    sink.push(first)
    rng = random.Random(1)
    drafter = Hostile([[rng.randrange(64) for _ in range(30)] for _ in range(5)])
    list(speculate(model, greedy(model), first, drafter, sink, {STOP}, itertools.count().__next__))
    assert sink.ids == run_plain(prompt, 17)


def test_a_consumer_that_leaves_finds_the_cache_whole() -> None:
    model, first = start([4, 5], 8)
    sink = ListSink(50)
    sink.push(first)
    passes = speculate(model, greedy(model), first, Truthful(model, first), sink, {STOP}, itertools.count().__next__)
    next(passes)
    next(passes)
    passes.close()  # type: ignore[attr-defined]
    assert model.cache == [4, 5, *sink.ids[:-1]]


@pytest.mark.parametrize(
    ("draft", "room", "expected"),
    [
        ([1, 2, 3], 2, (1, 2)),
        ([1, 2, 3], 0, ()),
        ([1, 2, 3], -1, ()),
        ([1, STOP, 3], 9, (1, STOP)),
        ([1, 64, 3], 9, (1,)),
        ([-1, 2], 9, ()),
    ],
)
def test_a_draft_is_cut_to_what_can_be_used(draft: list[int], room: int, expected: tuple[int, ...]) -> None:
    assert usable_draft(draft, room, 64, {STOP}) == expected


@pytest.mark.parametrize(
    ("draft", "choices", "count"),
    [([], [7], 0), ([1, 2], [1, 2, 3], 2), ([1, 2], [1, 9, 3], 1), ([1, 2], [9, 2, 3], 0)],
)
def test_the_common_prefix_is_accepted(draft: list[int], choices: list[int], count: int) -> None:
    assert common_prefix(draft, choices) == count
