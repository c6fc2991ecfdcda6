"""The expected position in the source: follows the output, and finds its place again after an edit.

Knows tokens and positions only. Invariant: while `following`, the output's last `streak` tokens are the source tokens
right before `position` (those since the last re-synchronisation at least); every token costs a bounded number of steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from editor_engine.draft.ngram_index import NgramIndex

_FORWARD_NEEDS = 3
"""Equal tokens before the cursor jumps ahead."""
_BACKWARD_NEEDS = 5
"""Equal tokens before the cursor jumps back over text that was passed already."""
_SETTLED = 24
"""Equal tokens after which older edit sites are forgotten."""
_SITES = 3


@dataclass(frozen=True)
class Site:
    """A place where the output left the source."""

    source: int
    """Index into the source of the token that was not emitted."""
    output: int
    """Index into the output of the first token that differs."""


class SourceCursor:
    """Position in the source tokens, with the edit sites that are still open."""

    def __init__(self, source: Sequence[int], index: NgramIndex, offset: int, *, resync: bool = True) -> None:
        """`index` holds `source` at `offset`. Without `resync` it takes every edit for one replaced token."""
        self._source = source
        self._index = index
        self._offset = offset
        self._resync = resync
        self.position = 0
        """Index into the source of the token expected next, while `following`."""
        self.following = bool(source)
        self.streak = 0
        """Equal tokens in a row right before `position`."""
        self.sites: list[Site] = []
        """Edit sites, newest last; older ones are forgotten once the output follows the source again."""

    def advance(self, token: int, tail: Sequence[int], emitted: int) -> bool:
        """Take one output token; `tail` ends with it and `emitted` counts the output with it. True if as expected."""
        if self.following and self._source[self.position] == token:
            self.position += 1
            self.streak += 1
            if self.streak >= _SETTLED:
                self.sites.clear()
            if self.position == len(self._source):
                self._leave(emitted)
            return True
        if self.following:
            self._leave(emitted - 1)
        if self._resync:
            self._search(tail)
        elif self.position + 1 < len(self._source):
            self.position += 1
            self.following = True
        return False

    def jump(self, position: int, emitted: int) -> None:
        """Go on at `position` after a replacement that was foreseen; `emitted` counts the output with it."""
        self.position = position
        if position == len(self._source):
            self._leave(emitted)

    def resume(self, position: int, streak: int, sites: list[Site], emitted: int) -> None:
        """Go on at `position` after a foreseen replacement that was taken for an edit; `streak` as it was before it."""
        self.following, self.streak, self.sites = True, streak, sites
        self.jump(position, emitted)

    def _leave(self, output: int) -> None:
        self.sites = [*self.sites[1 - _SITES :], Site(self.position, output)]
        self.following = False
        self.streak = 0

    def _search(self, tail: Sequence[int]) -> None:
        """Longest match first, then the nearest forward."""
        if not self._source:
            return
        begin, end = self._offset, self._offset + len(self._source)
        here = begin + self.sites[-1].source
        ahead = self._index.forward(tail, here, end)
        behind = self._index.backward(tail, begin, here)
        if ahead and ahead.length < _FORWARD_NEEDS:
            ahead = None
        if behind and (behind.length < _BACKWARD_NEEDS or (ahead and ahead.length >= behind.length)):
            behind = None
        match = behind or ahead
        if match:
            self.position = match.position - begin
            self.streak = match.length
            self.following = True
