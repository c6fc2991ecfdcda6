"""Where the last tokens have occurred before: an index over one growing token array, in a few steps per token.

Seed n-grams of two fixed lengths point to the places that follow them; a match is found from a seed with an exact
compare and extended backwards to its true length. Knows nothing of source, prompt or output. Invariant: a lookup walks
at most `_WALK` places per seed and region, so its time does not grow with the text, however often a line repeats.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BARRIER = -1
"""A token that never matches: put between parts of the array that do not follow each other."""

_SEEDS = (4, 2)
_WALK = 24
_LONGEST = 32
"""Matches are not told apart beyond this length."""


@dataclass(frozen=True)
class Match:
    """A place whose preceding tokens equal the tokens asked about."""

    position: int
    """Index of the token that followed there."""
    length: int
    """How many preceding tokens are equal, 2 to 32."""


class NgramIndex:
    """Token array with seed n-grams; `tokens` is read by everybody and appended to by `append` only."""

    def __init__(self, tokens: Sequence[int] = ()) -> None:
        self.tokens: list[int] = []
        self._places: dict[tuple[int, ...], list[int]] = {}
        for token in tokens:
            self.append(token)

    def append(self, token: int) -> None:
        """Add one token; the n-grams before it now have a place that follows them."""
        tokens = self.tokens
        end = len(tokens)
        for seed in _SEEDS:
            if end >= seed:
                gram = tuple(tokens[end - seed : end])
                if BARRIER not in gram:
                    self._places.setdefault(gram, []).append(end)
        tokens.append(token)

    def forward(self, tail: Sequence[int], low: int, high: int) -> Match | None:
        """The longest match for the end of `tail` among the first places of [low, high); ties go to the lowest."""
        return self._best(tail, low, high, backward=False)

    def backward(self, tail: Sequence[int], low: int, high: int) -> Match | None:
        """The longest match for the end of `tail` among the last places of [low, high); ties go to the highest."""
        return self._best(tail, low, high, backward=True)

    def _best(self, tail: Sequence[int], low: int, high: int, *, backward: bool) -> Match | None:
        tokens = self.tokens
        for seed in _SEEDS:
            if len(tail) < seed:
                continue
            best_position, best_length = 0, 0
            for position in self._walk(tuple(tail[-seed:]), low, high, backward):
                if tokens[position] == BARRIER:
                    continue
                length = seed
                most = min(_LONGEST, len(tail), position)
                while length < most and tokens[position - 1 - length] == tail[-1 - length]:
                    length += 1
                if length > best_length:
                    best_position, best_length = position, length
                    if length == _LONGEST:
                        break
            if best_length:
                return Match(best_position, best_length)
        return None

    def _walk(self, gram: tuple[int, ...], low: int, high: int, backward: bool) -> Iterator[int]:
        places = self._places.get(gram)
        if not places:
            return iter(())
        first, last = bisect_left(places, low), bisect_left(places, high)
        if backward:
            return reversed(places[max(first, last - _WALK) : last])
        return iter(places[first : min(last, first + _WALK)])
