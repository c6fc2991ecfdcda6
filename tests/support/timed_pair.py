"""A target and a draft model without weights on a clock that only their passes move, to see what drafting costs.

Knows nothing of engines. Invariant: the same arguments take the same time, to the last bit.
"""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from editor_engine.decode.draft_pair import DraftPair
from editor_engine.decode.model_drafter import ModelDrafter
from editor_engine.decode.speculate import PassRecord, speculate
from editor_engine.draft.drafter import Draft, Drafter, Origin
from editor_engine.draft.pass_cost import PassCost
from editor_engine.events import DraftModelStats, Provenance
from tests.support.fake_model import FakeModel, NextToken, pseudo_random
from tests.support.sinks import CountingSink

VOCAB = 64


class Clock:
    """Seconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class TimedModel(FakeModel):
    """A pass over M rows takes `seconds` times what the table says of M rows, times 2 ** -`noise` to 2 ** `noise`."""

    def __init__(
        self, next_token: NextToken, clock: Clock, seconds: float, *, context: int = 4096, noise: float = 0.0
    ) -> None:
        super().__init__(next_token, vocab_size=VOCAB, rows=64, context=context)
        self._info = replace(self._info, weights_bytes=int(seconds * 1e9))
        self._clock = clock
        self._costs = PassCost.shipped("avx2").costs(0)
        self._noise = noise
        self._chance = random.Random(1)
        self.seconds = seconds

    def forward(self, tokens: Sequence[int], *, head_rows: int) -> list[int]:
        disturbed = 2.0 ** self._chance.uniform(-self._noise, self._noise)
        self._clock.now += self.seconds * self._costs[len(tokens)] * disturbed
        return super().forward(tokens, head_rows=head_rows)


def right_so_often(target: NextToken, share: float, seed: int = 0) -> NextToken:
    """The target's token with this chance, another one otherwise."""

    def choose(tokens: Sequence[int]) -> int:
        token = target(tokens)
        chance = random.Random(f"{seed} {len(tokens)} {tuple(tokens[-3:])}")
        return token if chance.random() < share else (token + 1 + chance.randrange(VOCAB - 2)) % VOCAB

    return choose


class Silent:
    """A chain that has nothing to copy."""

    def draft(self, room: int) -> Draft:
        return Draft()

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        return [Origin(Provenance.GENERATED, None)] * len(emitted)


@dataclass
class Run:
    """One reply."""

    ids: list[int]
    seconds: float
    """Of decoding, all drafting in it."""
    stats: DraftModelStats
    records: list[PassRecord]


class TimedPair:
    """A target whose plain step takes 1 s, and a draft model."""

    def __init__(
        self,
        draft: NextToken,
        draft_s: float,
        *,
        target: NextToken | None = None,
        noise: float = 0.0,
        context: int = 4096,
        known_ids: int = VOCAB,
    ) -> None:
        """`noise`: of the target's passes. `target` None: a fixed function of the last tokens."""
        self.clock = Clock()
        self.target = TimedModel(target or pseudo_random(VOCAB), self.clock, 1.0, noise=noise)
        self.draft = TimedModel(draft, self.clock, draft_s, context=context)
        self.cost = PassCost.shipped("avx2")
        self.pair = DraftPair(self.draft, self.target.info, known_ids, clock=self.clock)

    def reply(
        self, prompt: Sequence[int], length: int, chain: Drafter | None = None, stop_ids: Collection[int] = ()
    ) -> Run:
        """Decode so many tokens after a prompt."""
        chain = chain or Silent()
        drafter = ModelDrafter(chain, self.pair, prompt, stop_ids, self.cost, "text", length, self.clock)
        sink = CountingSink(length)
        records = list(self.passes(prompt, drafter, sink, stop_ids))
        return Run(sink.ids, sum(record.seconds + record.drafter_s for record in records), drafter.finish(), records)

    def passes(
        self, prompt: Sequence[int], drafter: Drafter, sink: CountingSink, stop_ids: Collection[int] = ()
    ) -> Iterator[PassRecord]:
        """Decode after a prompt, whoever drafts, the pair or not."""
        self.target.truncate(0)
        for start in range(0, len(prompt), self.target.rows):
            (first,) = self.target.forward(prompt[start : start + self.target.rows], head_rows=1)
        sink.push(first)
        drafter.observe(Draft(), 0, [first], None)

        def choose(tokens: Sequence[int], head_rows: int) -> list[int]:
            return self.target.forward(tokens, head_rows=head_rows)

        return speculate(self.target, choose, first, drafter, sink, stop_ids, self.clock)
