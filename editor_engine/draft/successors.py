"""What most often, and what last, followed the last one to three tokens: constant time per token and per lookup.

Complements the exact matches of `ngram_index`: many short contexts together say more than one long one. Knows nothing
of source or prompt but a weight per token. Invariant: the counts are those of the tokens added, nothing decays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from editor_engine.draft.ngram_index import BARRIER

ORDERS = (1, 2, 3)


@dataclass
class _Context:
    """Running facts of one n-gram; mutable, because it changes with every token."""

    total: int = 0
    """Sum of weights of all followers."""
    best: int = BARRIER
    """Follower of the highest weight, the later one on a tie."""
    best_weight: int = 0
    last: int = BARRIER
    """Follower seen last."""


@dataclass(frozen=True)
class Successor:
    """A token that followed this context before."""

    order: int
    """Tokens of context."""
    place: int
    """Where it followed last."""
    frequent: bool
    """True: the most frequent follower. False: the last one, when it is another."""
    share: float
    """Its part of the context's weight, 0 to 1."""
    total: int
    """The context's weight, at least 1."""


class Successors:
    """Counts followers of every 1-, 2- and 3-gram."""

    def __init__(self) -> None:
        self._contexts: dict[tuple[int, ...], _Context] = {}
        self._followers: dict[tuple[int, ...], tuple[int, int]] = {}  # n-gram and follower -> (weight, last place)

    def add(self, tokens: Sequence[int], place: int, weight: int) -> None:
        """Count the token at `place` as follower of those before it."""
        token = tokens[place]
        if token == BARRIER:
            return
        for order in ORDERS:
            if place < order or tokens[place - order] == BARRIER:
                return
            gram = tuple(tokens[place - order : place])
            context = self._contexts.get(gram)
            if context is None:
                context = self._contexts[gram] = _Context()
            key = (*gram, token)
            count = self._followers.get(key, (0, 0))[0] + weight
            self._followers[key] = (count, place)
            context.total += weight
            context.last = token
            if count >= context.best_weight:
                context.best, context.best_weight = token, count

    def after(self, tail: Sequence[int]) -> list[Successor]:
        """Followers of the end of `tail`, shortest context first, at most two per order."""
        found = []
        for order in ORDERS[: len(tail)]:
            gram = tuple(tail[-order:])
            context = self._contexts.get(gram)
            if context is None:
                break
            for token in dict.fromkeys((context.best, context.last)):
                weight, place = self._followers[(*gram, token)]
                share = weight / context.total
                found.append(Successor(order, place, token == context.best, share, context.total))
        return found
