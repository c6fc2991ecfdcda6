"""What may come next: every place worth a thought, each with the kind of evidence it rests on.

Order is the chain's: cursor, substitution, then matches and frequencies over source, prompt and output. Knows tokens
and places; knows no chances, lengths or costs. Invariant: at most about 15 guesses, found in a bounded number of steps.
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass

from editor_engine.draft.copy_trail import CopyTrail
from editor_engine.draft.ngram_index import BARRIER, Match, NgramIndex
from editor_engine.draft.renames import Renames, Rewrite, Words
from editor_engine.draft.source_cursor import Site, SourceCursor
from editor_engine.draft.substitutions import Substitution, Substitutions
from editor_engine.draft.successors import Successors

CURSOR = "cursor"
SUBSTITUTION = "substitution"
NGRAM = "ngram"

SURE = 12
"""Streak from which the cursor is not doubted and nothing else is looked for."""
_TAIL = 36
"""Last output tokens a match is compared with."""
_DELETED = 60
"""Source tokens looked ahead for a short deletion."""
_OUTPUT_WEIGHT = 2
"""An emitted token counts so much in frequencies, a token of prompt or source 1."""


@dataclass(frozen=True)
class Guess:
    """Tokens that may come next."""

    kind: Hashable
    """What it rests on; guesses of one kind share their running acceptance."""
    drafter: str
    place: int
    """Index into the token array where the copy starts."""
    token: int
    """The first token."""
    length: int = 0
    """Equal tokens right before `place`, as far as they were counted."""
    substitution: Substitution | Rewrite | None = None
    """Replaces the source span at `place`, when there is one."""
    done: int = 0
    """Tokens of the replacement that are emitted already."""


@dataclass(frozen=True)
class Pending:
    """A rewritten span of which the output has the first tokens.

    Spans of `Substitution` are not followed so: they end where tokens differ, not where names do, and it made replays
    slightly worse.
    """

    known: Rewrite
    done: int
    """Tokens of it emitted, fewer than it has."""
    position: int
    """Where its source span starts."""
    streak: int
    """The cursor's before it."""
    sites: list[Site]
    """The cursor's before it."""


class Memory:
    """Everything one reply has shown: prompt, source and output in one indexed array."""

    def __init__(
        self, context: Sequence[int], source: Sequence[int], *, resync: bool = True, words: Words | None = None
    ) -> None:
        """`context`: the prompt without the source. `resync`: see SourceCursor. `words`: see ChainDrafter."""
        self.index = NgramIndex([BARRIER, *context, BARRIER, *source, BARRIER])
        self.tokens = self.index.tokens
        self.source = source
        self.source_at = len(context) + 2
        self.output_at = len(self.tokens)
        self.cursor = SourceCursor(source, self.index, self.source_at, resync=resync)
        self.substitutions = Substitutions()
        self.renames = None if words is None else Renames(words, context, source)
        self.successors = Successors()
        for place in range(self.output_at):
            self.successors.add(self.tokens, place, 1)
        self.trail = CopyTrail()
        self.pending: Pending | None = None

    @property
    def emitted(self) -> int:
        """Output tokens so far."""
        return len(self.tokens) - self.output_at

    @property
    def tail(self) -> list[int]:
        """The last output tokens."""
        return self.tokens[max(self.output_at, len(self.tokens) - _TAIL) :]

    def append(self, token: int) -> None:
        """Add one output token to everything but the cursor."""
        self.index.append(token)
        self.successors.add(self.tokens, len(self.tokens) - 1, _OUTPUT_WEIGHT)
        self.trail.advance(self.tokens)

    def source_index(self, place: int) -> int | None:
        """Index into the source of a place in the array, None outside it."""
        return place - self.source_at if self.source_at <= place < self.output_at - 1 else None

    def replacement(self, position: int) -> Substitution | Rewrite | None:
        """What is expected in place of the source span at `position`: a renamed name first, tokenised in its line."""
        renamed = self.renames.at(position) if self.renames else None
        return renamed or self.substitutions.at(self.source, position)

    def copy(self, guess: Guess, length: int, stop_ids: Collection[int], *, substitute: bool) -> list["Step"]:
        """Up to `length` tokens along a guess, substitutions applied, not across a barrier or a stop token."""
        steps: list[Step] = []
        place, known, done = guess.place, guess.substitution, guess.done
        while len(steps) < length:
            if place >= len(self.tokens):  # the copy runs into what it drafts itself
                steps.append(Step(steps[place - len(self.tokens)].token, None, None, None))
                place += 1
                continue
            position = self.source_index(place)
            if substitute and known is None and position is not None:
                known = self.replacement(position)
            if known is not None and position is not None:
                after = position + len(known.source)
                steps += [Step(token, position, known, after) for token in known.emitted[done:]]
                place += len(known.source)
                known, done = None, 0
                continue
            token = self.tokens[place]
            if token == BARRIER:
                break
            steps.append(Step(token, position, None, None))
            place += 1
        del steps[length:]
        for at, step in enumerate(steps):
            if step.token in stop_ids:
                return steps[:at]
        return steps


@dataclass(frozen=True)
class Step:
    """One drafted token."""

    token: int
    position: int | None
    """Source index it stands for, None off the source."""
    substitution: Substitution | Rewrite | None
    after: int | None
    """Source index after the substituted span; None without one."""


def look(memory: Memory, *, resync: bool, substitutions: bool, ngrams: bool) -> Iterator[Guess]:
    """Every guess worth counting, cursor first.

    Without `ngrams` only what follows from source and cursor, without `resync` only the cursor's own.
    """
    tokens, cursor, begin = memory.tokens, memory.cursor, memory.source_at
    here = begin + (cursor.position if cursor.following or not cursor.sites else cursor.sites[-1].source)
    pending = memory.pending
    if pending is not None:
        place, token = begin + pending.position, pending.known.emitted[pending.done]
        yield Guess(("pending", 0), SUBSTITUTION, place, token, pending.streak, pending.known, pending.done)
    if cursor.following:
        known = memory.replacement(cursor.position) if substitutions else None
        if known is not None:
            yield Guess(
                ("substitution", min(known.right, 4)), SUBSTITUTION, here, known.emitted[0], cursor.streak, known
            )
        yield Guess(("cursor", min(cursor.streak, 20) // 2), CURSOR, here, tokens[here], cursor.streak)
        if cursor.streak >= SURE and known is None and pending is None:
            return
    if memory.emitted:
        if resync:
            yield from _matches(memory, here, ngrams=ngrams)
        if not cursor.following and cursor.sites:
            yield from _edits(memory, here)
        if ngrams:
            yield from _habits(memory)


def _matches(memory: Memory, here: int, *, ngrams: bool) -> Iterator[Guess]:
    """The longest exact match ahead of and behind the cursor, in the output and in the rest of the prompt."""
    index, tail, begin = memory.index, memory.tail, memory.source_at
    ahead = index.forward(tail, here, memory.output_at - 1)
    if ahead and not (memory.cursor.following and ahead.position == here):
        yield _guess(memory, "ahead", CURSOR, ahead)
    behind = index.backward(tail, begin, here)
    if behind:
        yield _guess(memory, "behind", CURSOR, behind)
    if ngrams:
        output = index.backward(tail, memory.output_at, len(memory.tokens))
        if output:
            yield _guess(memory, "output", NGRAM, output)
        prompt = index.backward(tail, 0, begin - 1)
        if prompt:
            yield _guess(memory, "prompt", NGRAM, prompt)


def _guess(memory: Memory, kind: str, drafter: str, match: Match) -> Guess:
    return Guess((kind, min(match.length, 8)), drafter, match.position, memory.tokens[match.position], match.length)


def _edits(memory: Memory, here: int) -> Iterator[Guess]:
    """What an insertion, a replacement of the same length or a deletion at the open site would bring."""
    tokens, end = memory.tokens, memory.output_at - 1
    last = tokens[-1]
    since = memory.emitted - memory.cursor.sites[-1].output
    if here < end:
        yield Guess(("insertion", tokens[here - 1] == last), CURSOR, here, tokens[here])
    if here + since < end:
        yield Guess(("replacement", min(since, 6)), CURSOR, here + since, tokens[here + since])
    try:
        found = tokens.index(last, here + 1, min(end, here + _DELETED))
    except ValueError:
        return
    if found + 1 < end:
        distance = found - here
        near = 0 if distance < 4 else 1 if distance < 16 else 2
        yield Guess(("deletion", near), CURSOR, found + 1, tokens[found + 1])


def _habits(memory: Memory) -> Iterator[Guess]:
    """Where an earlier copy broke off, and what usually follows the last tokens."""
    tokens = memory.tokens
    if not memory.cursor.following:
        resumed = memory.trail.resumed(tokens)
        if resumed is not None and tokens[resumed[1]] != BARRIER:
            yield Guess(("resumed", resumed[0]), NGRAM, resumed[1], tokens[resumed[1]])
    for found in memory.successors.after(memory.tail[-3:]):
        size = min(found.total.bit_length(), 5)
        kind = ("frequent" if found.frequent else "latest", found.order, size, int(4 * found.share))
        yield Guess(kind, NGRAM, found.place, tokens[found.place])
