"""The last place tokens were copied from off the cursor, and what may follow where the copy broke off.

Code repeats itself with small changes: after a differing token the earlier text usually goes on. Knows places in the
token array only. Invariant: a broken trail is remembered for `_MEMORY` tokens, not longer.
"""

from collections.abc import Sequence

_WORTH = 2
"""Tokens a copy must have run for its end to mean something."""
_MEMORY = 6


class CopyTrail:
    """Follows one copy at a time."""

    def __init__(self) -> None:
        self._place: int | None = None
        self._run = 0
        self._broken: tuple[int, int] | None = None  # (place that was not emitted, index of the token that was)

    def start(self, place: int) -> None:
        """A guess at `place` is being tried."""
        self._place = place
        self._run = 0

    def advance(self, tokens: Sequence[int]) -> None:
        """Take the last token of the array as emitted."""
        if self._place is None:
            return
        if tokens[self._place] == tokens[-1]:
            self._run += 1
            self._place += 1
            return
        if self._run >= _WORTH:
            self._broken = (self._place, len(tokens) - 1)
        self._place = None

    def resumed(self, tokens: Sequence[int]) -> tuple[int, int] | None:
        """(tokens since the break, the place as far behind it), for as long as the break is fresh."""
        if self._broken is None:
            return None
        place, at = self._broken
        since = len(tokens) - at
        if since > _MEMORY or place + since >= len(tokens):
            return None
        return since, place + since
