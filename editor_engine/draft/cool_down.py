"""When to stop trying: after drafts of which nothing came true, and while drafting has cost more than it brought.

Counts tokens and plain steps, not seconds. Invariant: a rest is never longer than `_LONGEST` tokens, one right draft
ends it, and while only short matches are drafted a reply costs at most one failed draft over its allowance; where no
draft is longer than `affordable`, it never costs more than the allowance.
"""

from collections.abc import Sequence

_LONGEST = 64
_DEAR = 1.05
"""Cost of a pass over that of a plain step from which a wrong draft counts; a free one needs no rest."""
_ALLOWANCE = 0.5
_ALLOWANCE_PER_TOKEN = 0.005
"""Plain steps that guesses may lose on the way: half of the 1 % that free text may cost more than plain decoding."""


class CoolDown:
    """Rests between failed drafts of one reply."""

    def __init__(self) -> None:
        self._rest = 0
        self._left = 0
        self._emitted = 0
        self._gain = 0.0  # plain steps won by drafting so far

    @property
    def resting(self) -> bool:
        """True while only a long match is worth a draft."""
        return self._left > 0 or self._gain < -self._allowance

    @property
    def _allowance(self) -> float:
        return _ALLOWANCE + _ALLOWANCE_PER_TOKEN * self._emitted

    def affordable(self, costs: Sequence[float], room: int) -> int:
        """The longest draft, at most `room` tokens, that may come to nothing without costing more than is left.

        `costs[rows]` is in plain steps; what drafting has won so far may be lost again.
        """
        length = 0
        while length < min(room, len(costs) - 2) and costs[length + 2] - costs[1] <= self._gain + self._allowance:
            length += 1
        return length

    def observe(self, drafted: int, accepted: int, emitted: int, relative_cost: float) -> None:
        """Take one pass; `relative_cost` is its cost over that of a plain step."""
        self._emitted += emitted
        self._left = max(0, self._left - emitted)
        if drafted:
            self._gain += emitted - relative_cost
        if accepted:
            self._rest = self._left = 0
        elif drafted and relative_cost > _DEAR:
            self._rest = min(_LONGEST, max(1, 2 * self._rest))
            self._left = self._rest
