"""The rejection rule gives the target's distribution exactly: every outcome of small vocabularies summed up.

The real loop, drafter and chooser run under draws that take every way there is, one after the other, each with its
chance: what comes out is no estimate.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.decode.draft_pair import DraftPair, Use
from editor_engine.decode.model_drafter import ModelDrafter
from editor_engine.decode.rejection import Draws, KeyedDraws, RejectionChooser, RejectionRule
from editor_engine.decode.speculate import speculate
from editor_engine.draft.drafter import Draft, Drafter, Origin
from editor_engine.draft.pass_cost import PassCost
from editor_engine.events import Provenance
from editor_engine.models.sampling import Distribution, acceptance, distribution, residual
from tests.support.fake_model import FakeModel, LogitsOf, greatest, random_logits
from tests.support.sinks import CountingSink

PROMPT = (1, 0, 2)


class EveryWay:
    """Draws that follow a script of ways, then take the first one possible; remembers what was left untried."""

    def __init__(self, script: Sequence[int]) -> None:
        self.ways: list[int] = []
        """The way taken at each draw."""
        self.counts: list[int] = []
        """Ways there were at each draw."""
        self.chance = 1.0
        self._script = script

    def index(self, mass: Distribution, position: int) -> int:
        likely = np.flatnonzero(mass > 0.0)
        way = self._take(len(likely))
        self.chance *= float(mass[likely[way]] / mass.sum())
        return int(likely[way])

    def accepts(self, chance: float, position: int) -> bool:
        if chance >= 1.0:
            return True
        way = self._take(2)
        self.chance *= chance if way == 0 else 1.0 - chance
        return way == 0

    def _take(self, count: int) -> int:
        at = len(self.ways)
        way = self._script[at] if at < len(self._script) else 0
        self.ways.append(way)
        self.counts.append(count)
        return way


def every_outcome(run: Callable[[Draws], tuple[int, ...]]) -> Counter[tuple[int, ...]]:
    """Output -> its chance, over every way the draws can fall."""
    found: Counter[tuple[int, ...]] = Counter()
    script: list[int] | None = []
    while script is not None:
        draws = EveryWay(script)
        found[run(draws)] += draws.chance  # type: ignore[assignment]  # chances, not counts
        last = max((at for at, way in enumerate(draws.ways) if way + 1 < draws.counts[at]), default=None)
        script = None if last is None else [*draws.ways[:last], draws.ways[last] + 1]
    return found


class Nothing:
    """Drafts nothing."""

    def draft(self, room: int) -> Draft:
        return Draft()

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        return [Origin(Provenance.GENERATED, None)] * len(emitted)


class Some(Nothing):
    """Drafts the same tokens every other time, as a chain that knows the text may."""

    def __init__(self) -> None:
        self._turn = 0

    def draft(self, room: int) -> Draft:
        self._turn += 1
        return Draft((0, 1)[:room], "some", None, 2.9) if self._turn % 2 else Draft()


def decode(target: LogitsOf, draft: LogitsOf, temperature: float, draws: Draws, chain: Drafter) -> tuple[int, ...]:
    """The first tokens, by the loop the engine runs; the clock makes draft passes cheap and target passes dear."""
    vocab = len(target(PROMPT))
    model = FakeModel(greatest(target), vocab_size=vocab, logits_of=target)
    small = FakeModel(greatest(draft), vocab_size=vocab, logits_of=draft)
    rule = RejectionRule(temperature, draws)
    choose = RejectionChooser(model, rule)
    clock = itertools.count().__next__
    pair = DraftPair(small, model.info, vocab, clock=clock)
    pair.use = Use.ALWAYS
    cost = PassCost.flat()
    cost.observe(1, 0, 40.0)
    drafter = ModelDrafter(chain, pair, PROMPT, (), cost, "text", 4, clock, rule)
    sink = CountingSink(4)
    first = choose(PROMPT, 1)[0]
    sink.push(first)
    drafter.observe(Draft(), 0, [first], None)
    for _ in speculate(model, choose, first, drafter, sink, (), clock):
        pass
    return tuple(sink.ids)


def expected(target: LogitsOf, temperature: float, length: int) -> dict[tuple[int, ...], float]:
    """The target's own distribution of outputs, by the chain rule."""
    found = {(): 1.0}
    for _ in range(length):
        found = {
            (*ids, token): chance * float(mass)
            for ids, chance in found.items()
            for token, mass in enumerate(distribution(target((*PROMPT, *ids)), temperature))
        }
    return found


@pytest.mark.parametrize("temperature", [0.7, 1.5])
@pytest.mark.parametrize(("target_seed", "draft_seed"), [(1, 2), (3, 3), (5, 8)])
@pytest.mark.parametrize("chain", [Nothing, Some])
def test_outputs_have_exactly_the_targets_distribution(
    temperature: float, target_seed: int, draft_seed: int, chain: type[Nothing]
) -> None:
    target, draft = random_logits(3, target_seed), random_logits(3, draft_seed)
    found = every_outcome(lambda draws: decode(target, draft, temperature, draws, chain()))
    wanted = expected(target, temperature, 4)
    assert found.keys() == wanted.keys()
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
    divergence = sum(chance * np.log(chance / wanted[ids]) for ids, chance in found.items())
    assert abs(divergence) < 1e-9
    assert sum(abs(chance - wanted[ids]) for ids, chance in found.items()) / 2 < 1e-9


def test_a_draft_model_that_keeps_only_its_likely_draws_would_be_caught() -> None:
    """The twin of the fault the rule must not have, so that the sum above is known to see it."""
    target, draft = random_logits(3, 1), random_logits(3, 2)
    p, q = distribution(target(PROMPT), 1.0), distribution(draft(PROMPT), 1.0)
    out = np.zeros(3)
    for token in range(3):
        if q[token] < q.max():  # not sure enough: the target draws itself
            out += q[token] * p
            continue
        stands = acceptance(p, q, token)
        out[token] += q[token] * stands
        rest = residual(p, q)
        out += q[token] * (1.0 - stands) * rest / rest.sum()
    assert abs(out - p).sum() > 1e-3


chances = st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4).filter(lambda found: sum(found) > 1e-6)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(target=chances, draft=chances)
def test_one_token_by_the_rule_has_the_targets_distribution(target: list[float], draft: list[float]) -> None:
    p, q = np.array(target) / sum(target), np.array(draft) / sum(draft)
    out = np.zeros(4)
    for token in np.flatnonzero(q):
        stands = acceptance(p, q, int(token))
        out[token] += q[token] * stands
        rest = residual(p, q)
        out += q[token] * (1.0 - stands) * rest / rest.sum()
    assert np.abs(out - p).max() < 1e-12


def test_keyed_draws_repeat_and_never_share_a_key() -> None:
    mass = np.array([0.25, 0.25, 0.5])

    def run(seed: int) -> list[int]:
        draws = KeyedDraws(seed)
        return [draws.index(mass, 7) for _ in range(60)]

    assert run(3) == run(3) != run(4)
    counts = Counter(run(3))  # one position, drawn again and again: fresh every time
    assert set(counts) == {0, 1, 2}
    draws = KeyedDraws(5)
    accepted = sum(draws.accepts(0.25, position) for position in range(4000))
    assert 900 < accepted < 1100
