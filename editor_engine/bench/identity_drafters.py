"""Drafters to try the verification with: our own, and hostile ones that propose truth, nonsense and what cannot be.

A hostile drafter knows how many tokens were emitted and what plain decoding emitted, and uses it against the loop.
Invariant: no chance and no clock; the same case meets the same drafts every time.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence

from editor_engine.bench.identity import MakeDrafters
from editor_engine.draft.chain import ChainDrafter
from editor_engine.draft.drafter import Draft, Drafter, Origin
from editor_engine.draft.pass_cost import MAX_ROWS, PassCost
from editor_engine.draft.renames import Words
from editor_engine.events import Provenance

Propose = Callable[[int, int], Sequence[int]]
"""(tokens emitted, room) -> a draft."""


class HostileDrafter:
    """Implements Drafter by a function that may propose anything."""

    def __init__(self, propose: Propose) -> None:
        self._propose = propose
        self._emitted = 0

    def draft(self, room: int) -> Draft:
        """Whatever it is, and from a source that does not exist."""
        return Draft(tuple(self._propose(self._emitted, room)), "hostile", 10**9)

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        """Count; learn nothing."""
        self._emitted += len(emitted)
        return [
            Origin(Provenance.DRAFTED if at < accepted else Provenance.GENERATED, None) for at in range(len(emitted))
        ]


def own_drafters(isa: str, words: Words) -> Mapping[str, MakeDrafters]:
    """The drafter of the product, with the lengths that suit this machine and with the longest there are."""

    def chain(cost: Callable[[], PassCost]) -> MakeDrafters:
        def make(prompt: Sequence[int], source: Sequence[int], stop_ids: Collection[int]) -> Drafter:
            return ChainDrafter(prompt, source, stop_ids, cost=cost(), words=words)

        return lambda plain_ids: make

    return {"drafted": chain(lambda: PassCost.shipped(isa)), "long drafts": chain(PassCost.flat)}


def no_drafts(prompt: Sequence[int], source: Sequence[int], stop_ids: Collection[int]) -> Drafter:
    """One that never drafts: what comes after it is asked at every token."""
    return HostileDrafter(lambda done, room: ())


def before_a_model(isa: str, words: Words) -> Mapping[str, MakeDrafters]:
    """What drafts before a draft model: nothing, and the drafter of the product as in an edit."""
    return {"draft model": lambda plain_ids: no_drafts, "draft model last": own_drafters(isa, words)["drafted"]}


def hostile_drafters(vocab_size: int) -> Mapping[str, MakeDrafters]:
    """Drafters that no sane engine has."""

    def truth(plain: Sequence[int]) -> Propose:
        return lambda done, room: plain[done : done + room]

    def spoilt(plain: Sequence[int]) -> Propose:
        """The truth, but for one token that moves through the draft: every length of rewind."""

        def propose(done: int, room: int) -> Sequence[int]:
            tokens = list(plain[done : done + room])
            wrong = done % 7
            if wrong < len(tokens):
                tokens[wrong] = (tokens[wrong] + 1) % vocab_size
            return tokens

        return propose

    def noise(plain: Sequence[int]) -> Propose:
        chance = random.Random(len(plain))
        return lambda done, room: [chance.randrange(vocab_size) for _ in range(room)]

    def unruly(plain: Sequence[int]) -> Propose:
        """More than there is room for, with ids the model does not have among the right ones."""
        return lambda done, room: [*plain[done : done + 2], vocab_size, -1, *plain, *range(MAX_ROWS)]

    def past_the_end(plain: Sequence[int]) -> Propose:
        """The whole reply and then its beginning again: on past its stop token."""
        return lambda done, room: [*plain[done:], *plain]

    ways = {"truth": truth, "spoilt truth": spoilt, "noise": noise, "unruly": unruly, "past the end": past_the_end}
    return {name: _making(way) for name, way in ways.items()}


def _making(way: Callable[[Sequence[int]], Propose]) -> MakeDrafters:
    return lambda plain_ids: lambda prompt, source, stop_ids: HostileDrafter(way(plain_ids))
