"""Edits that repeat: which source span was replaced by which tokens, and whether that keeps coming true.

A rename is a span replaced again and again. One sighting proves nothing (drafting after one made replays worse), so a
pair is used from its second sighting on, and no longer once it fails more often than it comes true. Spans are token
ids, so each tokenisation of a name (with and without the space before it) is learned on its own. Invariant: at most
`_SPANS` spans are kept, the oldest forgotten first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_LONGEST = 6
"""Tokens of a span, source or emitted."""
_CONFIRMED = 2
_SPANS = 256


@dataclass
class Substitution:
    """A source span and what the output had in its place."""

    source: tuple[int, ...]
    emitted: tuple[int, ...]
    right: int = 1
    """Sightings, and drafts that came true."""
    wrong: int = 0
    """Times the span came and was not replaced so."""

    @property
    def usable(self) -> bool:
        """Seen twice, and right more often than wrong."""
        return self.right >= _CONFIRMED and self.right > self.wrong

    def confirm(self) -> None:
        """It was drafted and came true."""
        self.right += 1


class Substitutions:
    """What was learned in one reply."""

    def __init__(self) -> None:
        self._by_span: dict[tuple[int, ...], Substitution] = {}
        self._by_first: dict[int, list[Substitution]] = {}

    def learn(self, source: Sequence[int], emitted: Sequence[int]) -> None:
        """The output had `emitted` where the source has `source`."""
        if not (0 < len(source) <= _LONGEST and 0 < len(emitted) <= _LONGEST):
            return
        span, new = tuple(source), tuple(emitted)
        known = self._by_span.get(span)
        if known is not None and known.emitted == new:
            known.right += 1
            return
        if known is not None:
            known.wrong += 1
            if known.wrong < known.right:
                return
            self._forget(known)
        elif len(self._by_span) >= _SPANS:
            self._forget(next(iter(self._by_span.values())))
        fresh = Substitution(span, new)
        self._by_span[span] = fresh
        self._by_first.setdefault(span[0], []).append(fresh)

    def unchanged(self, source: Sequence[int], position: int) -> None:
        """The output kept the source token at `position`: a span that starts there was not replaced."""
        for known in self._by_first.get(source[position], ()):
            if tuple(source[position : position + len(known.source)]) == known.source:
                known.wrong += 1

    def at(self, source: Sequence[int], position: int) -> Substitution | None:
        """The usable substitution whose span starts at `position`, the longest one."""
        best: Substitution | None = None
        for known in self._by_first.get(source[position], ()):
            if known.usable and tuple(source[position : position + len(known.source)]) == known.source:
                if best is None or len(known.source) > len(best.source):
                    best = known
        return best

    def _forget(self, known: Substitution) -> None:
        del self._by_span[known.source]
        self._by_first[known.source[0]].remove(known)
