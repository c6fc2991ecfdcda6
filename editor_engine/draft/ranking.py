"""Which guess to draft and how sure to be of it.

Guesses that name the same token add up as if they were independent; they are not, so the sum only picks the token, and
the chance it gets is the one such sums had so far. Knows kinds and tokens, nothing of places. Invariant: everything
learned comes from what was emitted, drafted or not, so a class recovers that is not drafted at the moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from editor_engine.draft.acceptance import Acceptance
from editor_engine.draft.guesses import Guess
from editor_engine.draft.priors import AGREED_PRIORS, FIRST_PRIORS


@dataclass(frozen=True)
class Choice:
    """The guess that won."""

    guess: Guess
    first: float
    """Chance that its first token is right."""
    further: float
    """Chance of each token after a right one."""
    score: tuple[int, int] | None
    """Bucket of agreement the chance was read from, None for a lone guess."""


class Ranking:
    """Running acceptance of guesses in one reply."""

    def __init__(self) -> None:
        self._first = Acceptance(FIRST_PRIORS, default=0.2, weight=6.0, window=40.0)
        self._agreed = Acceptance(AGREED_PRIORS, default=0.5, weight=12.0, window=80.0)
        self._further = Acceptance({}, default=0.97, weight=10.0, window=60.0)

    def choose(self, guesses: Sequence[Guess]) -> Choice | None:
        """The guess of the likeliest token, None without guesses; of those that name it the longest match goes on."""
        together: dict[int, float] = {}
        for guess in guesses:
            chance = self._first.chance(guess.kind)
            together[guess.token] = 1.0 - (1.0 - together.get(guess.token, 0.0)) * (1.0 - chance)
        if not together:
            return None
        token = max(together, key=together.__getitem__)
        agreed = [guess for guess in guesses if guess.token == token]
        alone = max(self._first.chance(guess.kind) for guess in agreed)
        guess = max(agreed, key=lambda guess: (guess.length, self._first.chance(guess.kind)))
        score = None if len(guesses) == 1 else (_logit_step(together[token]), _logit_step(alone) // 2)
        first = alone if score is None else self._agreed.chance(score)
        return Choice(guess, first, min(self._further.chance(guess.kind), 0.999), score)

    def learn(self, guesses: Sequence[Guess], choice: Choice | None, token: int) -> None:
        """`token` came where `guesses` were made."""
        for guess in guesses:
            self._first.learn(guess.kind, guess.token == token)
        if choice is not None and choice.score is not None:
            self._agreed.learn(choice.score, choice.guess.token == token)

    def learn_length(self, choice: Choice, drafted: int, accepted: int) -> None:
        """Of `drafted` tokens the first `accepted` came true."""
        for right in range(1, min(accepted + 1, drafted) if accepted else 0):
            self._further.learn(choice.guess.kind, right < accepted)


def _logit_step(chance: float) -> int:
    """Half-unit steps of the log odds, cut to 6 both ways."""
    chance = min(max(chance, 1e-6), 1.0 - 1e-6)
    return int(max(-6.0, min(6.0, 2.0 * log(chance / (1.0 - chance)))))
