"""The last drafter of the chain: another, smaller model, asked where the chain has no draft or a weak one.

    chain    -> what file, prompt and output give; good for nothing in new text     (draft/chain.py)
    wanted   -> is there a gain, and does it pay to bring the model into step?      (draft/pair_gain.py)
    ask      -> its own choice, token by token, as long as one more is worth it     (decode/draft_pair.py)
    observe  -> what was verified teaches how sure its tokens are, and what it gains

Knows tokens, chances and seconds. Invariants: it proposes and never decides, so the output is the target's whatever the
draft model says; an error of the draft model ends its part in the reply, not the reply.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from editor_engine.decode.draft_pair import DraftPair, Use
from editor_engine.draft.drafter import Draft, Drafter, Origin
from editor_engine.draft.pair_gain import TRIAL, Place
from editor_engine.draft.pass_cost import PassCost
from editor_engine.errors import CancelledError, EngineError
from editor_engine.events import DRAFT_MODEL, DraftModelStats, Provenance
from editor_engine.models.sampling import likeliest

FIRST_LENGTH = 4
"""Most tokens of a draft that follows a refused one, and what each accepted draft adds: chances are only learned."""

CATCH_UP = 8
"""Tokens the draft model may take in with the pass that drafts; more are read apart, when that pays."""


class Rule(Protocol):
    """How a token is taken from the draft model's logits."""

    def look(self, logits: npt.NDArray[np.float32]) -> float:
        """How sure the draft model is here, 0 to 1. Raises NumericsError."""

    def propose(self, position: int) -> int:
        """The token for `position`, from the logits looked at last."""

    def withdraw(self) -> None:
        """The tokens proposed so far will not be verified any more."""


class LikeliestRule:
    """The draft model's likeliest token; whether it stands is for the target's own choice to say."""

    def __init__(self) -> None:
        self._token = 0

    def look(self, logits: npt.NDArray[np.float32]) -> float:
        """See `Rule`."""
        self._token, confidence = likeliest(logits)
        return confidence

    def propose(self, position: int) -> int:
        """See `Rule`."""
        return self._token

    def withdraw(self) -> None:
        """See `Rule`: nothing is kept."""


@dataclass
class _Attempt:
    """One time the draft model was asked."""

    place: Place
    tokens: list[int] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    """The draft model's own probability of each."""
    seconds: float = 0.0


class ModelDrafter:
    """Implements Drafter for one reply."""

    def __init__(
        self,
        chain: Drafter,
        pair: DraftPair,
        prompt_ids: Sequence[int],
        stop_ids: Collection[int],
        cost: PassCost,
        kind: str,
        most_tokens: int,
        clock: Callable[[], float],
        rule: Rule | None = None,
    ) -> None:
        """`chain` drafts first. `cost`: of the target's passes, corrected here by those observed.

        `kind` of reply: gains are measured apart. `most_tokens`: the reply has no more. `rule`: None proposes the
        likeliest token.
        """
        self._chain = chain
        self._pair = pair
        self._stop_ids = frozenset(stop_ids)
        self._cost = cost
        self._kind = kind
        self._end = len(prompt_ids) + most_tokens
        self._clock = clock
        self._rule = rule or LikeliestRule()
        self._tokens = list(prompt_ids)
        self._held = 0
        self._attempt: _Attempt | None = None
        self._streak = 0  # attempts in a row of which everything was accepted
        self._left_over = self._run = 0  # tokens the chain had no draft for, in all and in a row up to here
        self._trial = 0  # attempts left of a trial
        self._asked = False
        self._given_up: str | None = None
        self._why = ""  # it was not asked
        self._passes = self._read_tokens = 0
        self._read_s = self._seconds = 0.0
        self._by_position: list[tuple[int, int]] = []

    def draft(self, room: int) -> Draft:
        """At most `room` tokens expected to come next (room >= 0)."""
        self._withdraw()
        proposed = self._chain.draft(room)
        if self._given_up is None and self._pair.use is not Use.NEVER:
            started = self._clock()
            try:
                self._ask(room, proposed)
            except CancelledError:
                raise
            except (EngineError, MemoryError) as error:
                self._give_up(str(error) or "it ran out of memory.")
            self._seconds += self._clock() - started
        if self._attempt is not None and self._attempt.tokens:
            return Draft(tuple(self._attempt.tokens), DRAFT_MODEL)
        return proposed

    def _withdraw(self) -> None:
        self._attempt = None
        self._rule.withdraw()

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        """Learn what a pass emitted: the first `accepted` tokens of `draft`, then the model's own."""
        attempt, self._attempt = self._attempt, None
        if pass_s is not None:
            self._cost.observe(1 + len(draft.tokens), len(self._tokens), pass_s)
        # What passes cost is counted here, so the chain gets no seconds: it would count them again.
        if attempt is None or draft.drafter != DRAFT_MODEL:
            origins = self._chain.observe(draft, accepted, emitted, None)
            if attempt is not None and pass_s is not None:  # it was not sure enough of anything
                self._attempted(attempt.seconds + pass_s, pass_s)
            elif not draft.tokens and pass_s is not None:
                self._pair.gain.stepped(self._kind, pass_s)
        else:
            origins = self._chain.observe(Draft(), 0, emitted, None)
            origins[:accepted] = [replace(origin, provenance=Provenance.DRAFTED) for origin in origins[:accepted]]
            if pass_s is not None:
                self._attempted(attempt.seconds + pass_s, len(emitted) * attempt.place.plain_s)
            self._learn(attempt, len(draft.tokens), accepted, len(emitted))
        if pass_s is not None:
            self._pair.gain.passed(1 + len(draft.tokens), pass_s)
        self._tokens.extend(emitted)
        self._count(len(emitted) if draft.drafter in (None, DRAFT_MODEL) else 0)
        return origins

    def finish(self) -> DraftModelStats:
        """The reply is over: learn how much of it was left to the draft model; its figures."""
        self._count(0)
        self._pair.gain.counted(self._kind, "reply", self._left_over)
        info = self._pair.model.info
        return DraftModelStats(
            name=info.name,
            passes=self._passes,
            read_tokens=self._read_tokens,
            read_s=self._read_s,
            seconds=self._seconds,
            by_position=tuple(self._by_position),
            gain=self._pair.gain.measured(self._kind),
            decision=self._decision(),
            weights_bytes=info.weights_bytes,
            cache_bytes=self._pair.cache_bytes,
        )

    def _count(self, left_over: int) -> None:
        """Take one pass; one that leaves nothing over ends a run."""
        self._left_over += left_over
        self._run += left_over
        if not left_over and self._run:
            self._pair.gain.counted(self._kind, "run", self._run)
            self._run = 0

    def _decision(self) -> str:
        name, gain = self._pair.model.info.name, self._pair.gain.measured(self._kind)
        if self._given_up is not None:
            return f"The draft model {name} was given up for this reply: {self._given_up}"
        if not self._asked or gain is None:
            return f"The draft model {name} was not asked: {self._why or 'nothing was left for it'}."
        if gain > 1.0:
            return f"The draft model {name} drafted where it paid: {gain:.2f} of plain decoding there."
        return f"The draft model {name} was asked and left out again: {gain:.2f} of plain decoding."

    def _ask(self, room: int, proposed: Draft) -> None:
        """Let the draft model draft, if that is expected to pay; the attempt is kept where `draft` finds it."""
        pair, info = self._pair, self._pair.model.info
        plain_s = pair.gain.plain_s or self._cost.step_seconds(len(self._tokens))
        if room < 1 or plain_s is None:  # the first pass of all tells what passes take
            return
        if pair.gain.plain_is_due and not proposed.tokens:  # without a draft this is a plain step, to be timed
            return
        costs = self._cost.costs(len(self._tokens))
        place = Place(plain_s, pair.pass_seconds(len(self._tokens), plain_s), costs)
        # Of k drafted tokens all but the last are put into its cache.
        room = min(room, len(costs) - 2, info.context_length - len(self._tokens) + 1)
        if room < 1:
            self._give_up(f"its context of {info.context_length} tokens is full.")
            return
        self._held = pair.rewind(self._tokens, self._held)
        count = len(self._tokens) - self._held
        apart = 0 if count <= min(CATCH_UP, pair.model.rows) else count - 1
        if self._wanted(place, proposed, apart, room):
            missing = self._tokens[self._held :]
            if max(missing) >= info.vocab_size:
                self._give_up(f"it does not know the token {max(missing)}.")
                return
            self._asked = True
            if apart:
                self._read(missing[:apart])
            self._draft(place, missing[apart:], min(room, FIRST_LENGTH * (1 + self._streak)))

    def _wanted(self, place: Place, proposed: Draft, apart: int, room: int) -> bool:
        """Decide by gain and cost; the reason for a no is kept for the report."""
        gains, kind = self._pair.gain, self._kind
        if self._pair.use is Use.ALWAYS or self._trial:
            return not proposed.tokens
        if proposed.tokens and apart:  # nothing is read to better a draft that is there
            return False
        gain = gains.gain(kind, place)
        reading_s = self._pair.reading_seconds(apart, len(self._tokens), place.plain_s)
        if gain <= 1.0:
            known = "measured" if gains.measured(kind) is not None else "expected"
            self._why = f"its drafts are {known} to give {gain:.2f} of plain decoding"
            if proposed.tokens or not gains.may_try(kind, place, reading_s):
                return False
            self._trial = TRIAL
            gains.spent(reading_s)
            return True
        if proposed.tokens and not self._weak(place, proposed, gain):
            return False
        stretch = "run" if self._asked else "reply"
        tokens = min(gains.left_over(kind, stretch), self._end - len(self._tokens))
        if apart and not gains.worth_reading(kind, place, reading_s, tokens):
            self._why = (
                self._why
                or f"to read {apart} tokens takes {reading_s:.1f} s, more than its drafts are expected to save"
            )
            return False
        self._why = "its tokens were seldom right here"
        return gains.worth_asking(kind, place, self._streak, room) or gains.may_probe(place)

    def _weak(self, place: Place, proposed: Draft, gain: float) -> bool:
        """The chain's draft promises fewer tokens for its time than the draft model was seen to give."""
        if proposed.expected is None or self._pair.gain.measured(self._kind) is None:
            return False
        rows = min(1 + len(proposed.tokens), len(place.costs) - 1)
        return proposed.expected / place.costs[rows] < gain

    def _read(self, tokens: Sequence[int]) -> None:
        self._read_s += self._pair.read(tokens)
        self._read_tokens += len(tokens)
        self._held += len(tokens)

    def _draft(self, place: Place, rows: Sequence[int], room: int) -> None:
        """Token by token, each worth the row that verifies it and the next one worth the pass that finds it."""
        self._attempt = attempt = _Attempt(place)
        self._read_tokens += len(rows) - 1
        self._trial = max(0, self._trial - 1)
        started = self._clock()
        try:
            self._extend(attempt, rows, room)
        finally:  # what was drafted before an error is as good as ever, and drawn tokens must be verified
            attempt.seconds = self._clock() - started

    def _extend(self, attempt: _Attempt, rows: Sequence[int], room: int) -> None:
        pair, gains, place, chance = self._pair, self._pair.gain, attempt.place, 1.0
        while True:
            logits = pair.logits(rows)
            self._passes += 1
            drafted = len(attempt.tokens)
            confidence = self._rule.look(logits)
            chance *= gains.chance(drafted, confidence)
            if not gains.worth_a_row(self._kind, place, chance, drafted):
                break
            token = self._rule.propose(len(self._tokens) + drafted)
            attempt.tokens.append(token)
            attempt.confidences.append(confidence)
            if token in self._stop_ids or len(attempt.tokens) >= room:
                break
            if not gains.worth_a_pass(self._kind, place, chance, len(attempt.tokens)):
                break
            rows = [token]

    def _attempted(self, seconds: float, plain_s: float) -> None:
        self._pair.gain.attempted(self._kind, seconds, plain_s)

    def _learn(self, attempt: _Attempt, drafted: int, accepted: int, emitted: int) -> None:
        """Of `drafted` verified tokens the first `accepted` stood; the next one was seen to fail unless the reply ended
        before it."""
        for position in range(min(drafted, accepted + 1)):
            right = position < accepted
            if not right and emitted <= accepted:
                break
            self._pair.gain.learn(position, attempt.confidences[position], right, self._streak)
            if position == len(self._by_position):
                self._by_position.append((0, 0))
            seen, stood = self._by_position[position]
            self._by_position[position] = seen + 1, stood + right
        self._streak = self._streak + 1 if accepted == drafted else 0

    def _give_up(self, reason: str) -> None:
        self._given_up = reason
        self._held = 0
        self._pair.forget()
