"""The drafter: cursor, then substitutions, then matches over prompt and output; as long as expected gain and cost say.

    guesses  -> places whose tokens may come next        (guesses.py, from the cursor and its indexes)
    ranking  -> the likeliest token and how sure it is   (ranking.py)
    length   -> tokens to draft for what a pass costs    (length_policy.py, pass_cost.py)
    observe  -> what was emitted teaches all of them

Knows tokens, and their spelling where that is handed in: no file name, no clock. Invariant: drafts depend on the ids
seen, their spelling and the costs handed in; memory grows with the number of tokens only, and the steps per token are
bounded.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from editor_engine.draft.cool_down import CoolDown
from editor_engine.draft.drafter import Draft, Origin
from editor_engine.draft.guesses import CURSOR, SUBSTITUTION, Guess, Memory, Pending, Step, look
from editor_engine.draft.length_policy import best_length, expected_tokens
from editor_engine.draft.ngram_index import BARRIER
from editor_engine.draft.pass_cost import PassCost
from editor_engine.draft.ranking import Choice, Ranking
from editor_engine.draft.renames import AROUND, Rewrite, Words
from editor_engine.draft.source_cursor import Site
from editor_engine.draft.substitutions import Substitution
from editor_engine.events import Provenance

_REOPENS = 8
"""Equal tokens before a guess that end a cool-down."""


@dataclass(frozen=True)
class Parts:
    """Which parts of the chain are on; all of them, but for measuring what each one brings."""

    resync: bool = True
    """Find the place again after an edit. Off: every edit is taken for one replaced token."""
    substitutions: bool = True
    ngrams: bool = True
    """Guess from output, prompt and frequencies, not from the source alone."""
    fixed_length: int | None = None
    """Tokens of every draft; None lets evidence and cost decide."""


class ChainDrafter:
    """Implements Drafter for one reply."""

    def __init__(
        self,
        prompt_ids: Sequence[int],
        source_ids: Sequence[int],
        stop_ids: Collection[int] = (),
        *,
        cost: PassCost | None = None,
        parts: Parts | None = None,
        words: Words | None = None,
    ) -> None:
        """`prompt_ids` hold file and instruction, `source_ids` the file as it would be emitted.

        `cost`: pass costs, corrected here by the passes observed; None takes the table shipped for AVX2.
        `words`: how ids are spelt, so that a rename is known in every tokenisation; without it, by its ids only.
        """
        self._parts = parts or Parts()
        self._memory = Memory(
            _without(prompt_ids, source_ids),
            tuple(source_ids),
            resync=self._parts.resync,
            words=words if self._parts.substitutions else None,
        )
        self._prompt_length = len(prompt_ids)
        self._stop_ids = frozenset(stop_ids)
        self._cost = cost or PassCost.shipped("avx2")
        self._ranking = Ranking()
        self._cool_down = CoolDown()
        self._guesses: list[Guess] = []
        self._choice: Choice | None = None
        self._steps: list[Step] = []

    def draft(self, room: int) -> Draft:
        """At most `room` tokens expected to come next (room >= 0)."""
        memory, parts = self._memory, self._parts
        self._guesses = self._look()
        self._choice = choice = self._ranking.choose(self._guesses)
        self._steps = []
        if not memory.source:  # free text: nothing to copy, so nothing that makes up for a long draft that fails
            room = self._cool_down.affordable(self._cost.costs(self._context), room)
        if choice is None or room <= 0 or (self._cool_down.resting and choice.guess.length < _REOPENS):
            return Draft()
        if parts.fixed_length is None:
            length = best_length(choice.first, choice.further, self._cost.costs(self._context), room)
        else:
            length = min(room, parts.fixed_length)
        if length > 0:
            self._steps = memory.copy(choice.guess, length, self._stop_ids, substitute=parts.substitutions)
        if not self._steps:
            return Draft()
        expected = expected_tokens(choice.first, choice.further, len(self._steps))
        return Draft(tuple(step.token for step in self._steps), choice.guess.drafter, self._steps[0].position, expected)

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        """Learn what a pass emitted: the first `accepted` tokens of `draft`, then the model's own."""
        if pass_s is not None:
            self._cost.observe(1 + len(draft.tokens), self._context, pass_s)
        costs = self._cost.costs(self._context)
        relative = costs[min(1 + len(draft.tokens), len(costs) - 1)] / costs[1]
        self._cool_down.observe(len(draft.tokens), accepted, len(emitted), relative)
        memory, choice = self._memory, self._choice
        if emitted:
            self._ranking.learn(self._guesses, choice, emitted[0])
        if choice is not None:
            self._ranking.learn_length(choice, len(draft.tokens), accepted)
            if not memory.cursor.following:
                memory.trail.start(choice.guess.place)
        steps = self._steps[: min(accepted, len(draft.tokens))]
        self._guesses, self._choice, self._steps = [], None, []
        origins: list[Origin] = []
        while len(origins) < len(emitted):
            at = len(origins)
            step = steps[at] if at < len(steps) else None
            if step is not None and step.substitution is not None and self._memory.pending is None:
                span = step.substitution.emitted
                if at + len(span) <= min(len(steps), len(emitted)):
                    origins += self._take_substituted(step, span)
                    continue
            origins.append(self._take(emitted[at], step, draft.drafter))
        return origins

    @property
    def _context(self) -> int:
        return self._prompt_length + self._memory.emitted

    def _look(self) -> list[Guess]:
        parts = self._parts
        return list(look(self._memory, resync=parts.resync, substitutions=parts.substitutions, ngrams=parts.ngrams))

    def _take(self, token: int, step: Step | None, drafter: str | None) -> Origin:
        """One token: accepted as `step`, or the model's own."""
        memory, cursor = self._memory, self._memory.cursor
        expected = cursor.position if cursor.following else None
        site = None if cursor.following else cursor.sites[-1:]
        pending = self._replaced_by(token)
        memory.append(token)
        streak = cursor.streak + 1
        on_source = cursor.advance(token, memory.tail, memory.emitted)
        if on_source:
            if expected is not None:
                memory.substitutions.unchanged(memory.source, expected)
                if memory.renames:
                    memory.renames.kept(expected, streak)
        elif cursor.following and cursor.streak:
            self._close(site[0] if site else None)
        memory.pending = self._go_on(pending) if pending else None
        source = expected if on_source else None
        if step is None:
            return Origin(Provenance.AGREED if on_source else Provenance.GENERATED, source)
        if step.substitution is not None:
            return Origin(Provenance.SUBSTITUTED, source)
        if drafter not in (CURSOR, SUBSTITUTION):
            return Origin(Provenance.DRAFTED, source)
        # Where the cursor had lost its place, the copy itself knows where it was taken from.
        return Origin(Provenance.COPIED, step.position if source is None else source)

    def _replaced_by(self, token: int) -> Pending | None:
        """The rewritten span that `token` begins or goes on with, seen from before it."""
        memory, cursor = self._memory, self._memory.cursor
        pending = memory.pending
        if pending is None and cursor.following and self._parts.substitutions:
            known = memory.replacement(cursor.position)
            if isinstance(known, Rewrite):
                pending = Pending(known, 0, cursor.position, cursor.streak, list(cursor.sites))
        return pending if pending is not None and pending.known.emitted[pending.done] == token else None

    def _go_on(self, pending: Pending) -> Pending | None:
        """One more token of a rewritten span came; after its last one the cursor goes on behind the source span."""
        pending = replace(pending, done=pending.done + 1)
        if pending.done < len(pending.known.emitted):
            return pending
        after = pending.position + len(pending.known.source)
        self._confirm(pending.known, after)
        self._memory.cursor.resume(after, pending.streak, pending.sites, self._memory.emitted)
        return None

    def _confirm(self, known: Substitution | Rewrite, after: int) -> None:
        known.confirm()
        if self._memory.renames:
            self._memory.renames.replaced(after)

    def _take_substituted(self, step: Step, span: Sequence[int]) -> list[Origin]:
        """A whole substitution came true: the cursor goes on behind its source span."""
        memory = self._memory
        for token in span:
            memory.append(token)
        if step.substitution is not None and step.after is not None:
            self._confirm(step.substitution, step.after)
            memory.cursor.jump(step.after, memory.emitted)
        return [Origin(Provenance.SUBSTITUTED, None) for _ in span]

    def _close(self, site: Site | None) -> None:
        """The cursor found its place again: what stood there before and stands there now may be a substitution."""
        memory, cursor = self._memory, self._memory.cursor
        if site is None or not self._parts.substitutions:
            return
        end = cursor.position - cursor.streak
        left = memory.output_at + site.output
        after = memory.tokens[left : len(memory.tokens) - cursor.streak]
        memory.substitutions.learn(memory.source[site.source : end], after)
        if memory.renames:
            memory.renames.resumed()
            if site.source <= end:
                before = memory.tokens[max(memory.output_at, left - AROUND) : left]
                memory.renames.learn(before, site.source, end, after, cursor.streak)


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
