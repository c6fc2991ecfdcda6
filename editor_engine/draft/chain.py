"""The drafter: guesses from the cursor, from matches in source, output and prompt, and from the shape of an edit.

Each guess is a place whose tokens may come next. Guesses that name the same token add up; the likeliest token wins and
the draft is copied on from its place, as long as expected gain and cost say. Knows tokens only: no text, no file name,
no clock. Invariant: the drafts depend on the ids seen, the costs handed in and nothing else; memory grows with the
number of tokens only, and the steps per token are bounded.
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass

from editor_engine.draft.acceptance import Acceptance
from editor_engine.draft.drafter import Draft, Origin
from editor_engine.draft.length_policy import best_length
from editor_engine.draft.ngram_index import BARRIER, Match, NgramIndex
from editor_engine.draft.pass_cost import PassCost
from editor_engine.draft.source_cursor import SourceCursor
from editor_engine.events import Provenance

CURSOR = "cursor"
NGRAM = "ngram"

_SURE = 12
"""Streak from which the cursor is not doubted: no other guess is looked for."""
_TAIL = 36
"""Last output tokens a match is compared with."""
_DELETED = 60
"""Source tokens looked ahead for a short deletion."""

_PRIORS: dict[Hashable, float] = {
    **{("cursor", step): 0.95 for step in range(4, 11)},
    ("cursor", 10): 0.997,
    ("cursor", 3): 0.9,
    ("cursor", 2): 0.68,
    ("cursor", 1): 0.47,
    ("insertion", True): 0.1,
    ("insertion", False): 0.01,
    ("replacement", 1): 0.26,
    ("replacement", 2): 0.17,
    **{("replacement", since): 0.04 for since in range(3, 7)},
}


@dataclass(frozen=True)
class _Guess:
    """A place whose tokens may come next."""

    kind: Hashable
    drafter: str
    place: int
    """Index into the token array."""


class ChainDrafter:
    """Implements Drafter for one reply."""

    def __init__(
        self,
        prompt_ids: Sequence[int],
        source_ids: Sequence[int],
        stop_ids: Collection[int] = (),
        *,
        cost: PassCost | None = None,
    ) -> None:
        """`prompt_ids` hold file and instruction, `source_ids` the file as it would be emitted.

        `cost`: measured or shipped pass costs; None takes the AVX2 table.
        """
        context = _without(prompt_ids, source_ids)
        self._index = NgramIndex([BARRIER, *context, BARRIER, *source_ids, BARRIER])
        self._source = source_ids
        self._source_at = len(context) + 2
        self._output_at = len(self._index.tokens)
        self._prompt_length = len(prompt_ids)
        self._stop_ids = frozenset(stop_ids)
        self._cost = cost or PassCost.avx2()
        self._cursor = SourceCursor(source_ids, self._index, self._source_at)
        self._first = Acceptance(_PRIORS, default=0.3, weight=6.0, window=40.0)
        self._further = Acceptance({}, default=0.95, weight=10.0, window=60.0)
        self._guesses: list[_Guess] = []
        self._chosen: _Guess | None = None

    def draft(self, room: int) -> Draft:
        """At most `room` tokens expected to come next (room >= 0)."""
        tokens = self._index.tokens
        self._guesses = list(self._look())
        self._chosen = None
        if room <= 0 or not self._guesses:
            return Draft()
        chances: dict[int, float] = {}
        best: dict[int, tuple[float, _Guess]] = {}
        for guess in self._guesses:
            chance = self._first.chance(guess.kind)
            token = tokens[guess.place]
            chances[token] = 1.0 - (1.0 - chances.get(token, 0.0)) * (1.0 - chance)
            if token not in best or chance > best[token][0]:
                best[token] = (chance, guess)
        token = max(chances, key=chances.__getitem__)
        guess = best[token][1]
        context = self._prompt_length + len(tokens) - self._output_at
        costs = self._cost.costs(context)
        length = best_length(chances[token], min(self._further.chance(guess.kind), 0.999), costs, room)
        drafted = self._copy(guess.place, length)
        if not drafted:
            return Draft()
        self._chosen = guess
        source = guess.place - self._source_at if self._in_source(guess.place) else None
        return Draft(drafted, guess.drafter, source)

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        """Learn what a pass emitted: the first `accepted` tokens of `draft`, then the model's own."""
        if pass_s is not None:
            context = self._prompt_length + len(self._index.tokens) - self._output_at
            self._cost.observe(1 + len(draft.tokens), context, pass_s)
        tokens = self._index.tokens
        for guess in self._guesses:
            self._first.learn(guess.kind, tokens[guess.place] == emitted[0])
        if self._chosen is not None and accepted:
            for i in range(1, min(accepted + 1, len(draft.tokens))):
                self._further.learn(self._chosen.kind, i < accepted)
        self._guesses = []
        return [self._take(token, draft if i < accepted else None) for i, token in enumerate(emitted)]

    def _take(self, token: int, draft: Draft | None) -> Origin:
        cursor = self._cursor
        expected = cursor.position if cursor.following else None
        self._index.append(token)
        tokens = self._index.tokens
        tail = tokens[max(self._output_at, len(tokens) - _TAIL) :]
        on_source = cursor.advance(token, tail, len(tokens) - self._output_at)
        source = expected if on_source else None
        if draft is None:
            return Origin(Provenance.AGREED if on_source else Provenance.GENERATED, source)
        return Origin(Provenance.COPIED if draft.drafter == CURSOR else Provenance.DRAFTED, source)

    def _look(self) -> Iterator[_Guess]:
        """Every guess worth counting, cursor first."""
        cursor, begin, end = self._cursor, self._source_at, self._output_at - 1
        if cursor.following:
            yield _Guess(("cursor", min(cursor.streak, 20) // 2), CURSOR, begin + cursor.position)
            if cursor.streak >= _SURE:
                return
        tokens = self._index.tokens
        if len(tokens) == self._output_at:
            return
        here = begin + (cursor.position if cursor.following or not cursor.sites else cursor.sites[-1].source)
        tail = tokens[max(self._output_at, len(tokens) - _TAIL) :]
        ahead = self._index.forward(tail, here, end)
        if ahead and not (cursor.following and ahead.position == here):
            yield self._match("ahead", ahead)
        behind = self._index.backward(tail, begin, here)
        if behind:
            yield self._match("behind", behind)
        output = self._index.backward(tail, self._output_at, len(tokens))
        if output:
            yield self._match("output", output)
        prompt = self._index.backward(tail, 0, begin - 1)
        if prompt:
            yield self._match("prompt", prompt)
        if not cursor.following and cursor.sites:
            yield from self._edit_guesses(here, end)

    def _edit_guesses(self, here: int, end: int) -> Iterator[_Guess]:
        """What an insertion, a replacement of the same length or a deletion at the open site would bring."""
        tokens = self._index.tokens
        last = tokens[-1]
        since = len(tokens) - self._output_at - self._cursor.sites[-1].output
        if here < end:
            yield _Guess(("insertion", tokens[here - 1] == last), CURSOR, here)
        if here + since < end:
            yield _Guess(("replacement", min(since, 6)), CURSOR, here + since)
        try:
            found = tokens.index(last, here + 1, min(end, here + _DELETED))
        except ValueError:
            return
        if found + 1 < end:
            distance = found - here
            yield _Guess(("deletion", 0 if distance < 4 else 1 if distance < 16 else 2), CURSOR, found + 1)

    def _match(self, region: str, match: Match) -> _Guess:
        drafter = CURSOR if self._in_source(match.position) else NGRAM
        return _Guess((region, min(match.length, 8)), drafter, match.position)

    def _in_source(self, place: int) -> bool:
        return self._source_at <= place < self._output_at - 1

    def _copy(self, place: int, length: int) -> tuple[int, ...]:
        """Up to `length` tokens from `place` on, not across a barrier or a stop token."""
        copied: list[int] = []
        for token in self._index.tokens[place : place + length]:
            if token == BARRIER or token in self._stop_ids:
                break
            copied.append(token)
        return tuple(copied)


def _without(prompt: Sequence[int], source: Sequence[int]) -> list[int]:
    """The prompt's tokens without the source among them, or all of them if it is not there token for token."""
    core = list(source[1:-1])  # its first and last token may have merged with their neighbours
    prompt = list(prompt)
    if len(core) < 8:
        return prompt
    start = -1
    while True:
        try:
            start = prompt.index(core[0], start + 1)
        except ValueError:
            return prompt
        if prompt[start : start + len(core)] == core:
            return [*prompt[:start], BARRIER, *prompt[start + len(core) :]]
