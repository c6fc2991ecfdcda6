"""The rejection rule: a token drawn from the draft model stands so often that what comes out is the target's.

A token x drawn from the draft's distribution q stands with chance min(1, p(x) / q(x)); where it does not, one is drawn
from what p has over q (Leviathan et al. 2023, Chen et al. 2023). More drafts are accepted than when only the target's
own draw is; the tokens of a seed are no longer those of plain decoding, their distribution is.

Knows distributions and draws, nothing of when to draft. Invariant: every draw is fresh, and whether a token is proposed
was settled before it was drawn; with the two, the distribution of every output is exactly the target's.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from editor_engine.decode.choosing import Chooser
from editor_engine.models.sampling import (
    Distribution,
    Sampling,
    acceptance,
    distribution,
    drawn,
    log_likelihood,
    residual,
    uniform,
)
from editor_engine.models.target import TargetModel


class Draws(Protocol):
    """Where chance comes from."""

    def index(self, mass: Distribution, position: int) -> int:
        """A token for `position`, as likely as its part of `mass`, which need not sum to 1."""

    def accepts(self, chance: float, position: int) -> bool:
        """True with this chance."""


class KeyedDraws:
    """Draws keyed by seed, position and their number in the request: no two share a key, a repeat gives the same."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._count = 0

    def index(self, mass: Distribution, position: int) -> int:
        """See `Draws`."""
        return drawn(mass, self._next(position))

    def accepts(self, chance: float, position: int) -> bool:
        """See `Draws`."""
        return self._next(position) < chance

    def _next(self, position: int) -> float:
        self._count += 1
        return uniform(self._seed, position, self._count)


class RejectionRule:
    """Proposals of one pass, and the draws of a request."""

    def __init__(self, temperature: float, draws: Draws) -> None:
        """`temperature` is above 0."""
        self.temperature = temperature
        self.draws = draws
        self._proposed: list[tuple[int, Distribution]] = []
        self._mass = np.zeros(0)

    def look(self, logits: npt.NDArray[np.float32]) -> float:
        """The greatest probability of the distribution the next token would be drawn from.

        A token is judged by that, never by which one it is: to keep only some draws would change what the rule gives.
        """
        self._mass = distribution(logits, self.temperature)
        return float(self._mass.max())

    def propose(self, position: int) -> int:
        """Draw the token for `position` from what was looked at; it is to be verified, or its draw would count."""
        token = self.draws.index(self._mass, position)
        self._proposed.append((token, self._mass))
        return token

    def withdraw(self) -> None:
        """Nothing is proposed."""
        self._proposed.clear()

    def take(self, tokens: Sequence[int]) -> list[tuple[int, Distribution]]:
        """The proposals among the drafted `tokens` of a pass, which are a beginning of them; and none are left."""
        proposed = self._proposed[: len(tokens)]
        self.withdraw()
        return proposed if [token for token, _ in proposed] == list(tokens) else []


class RejectionChooser(Chooser):
    """A `Chooser` whose tokens are drawn by the rule: for a row it gives the draft's own token where that stands."""

    def __init__(self, model: TargetModel, rule: RejectionRule) -> None:
        super().__init__(model, Sampling(rule.temperature, 0), score=True)
        self.rule = rule

    def __call__(self, tokens: Sequence[int], head_rows: int) -> list[int]:
        first = self._model.length + len(tokens) - head_rows + 1
        logits = self._model.logits(tokens, head_rows=head_rows)
        proposed = self.rule.take(tokens[len(tokens) - head_rows + 1 :])
        choices: list[int] = []
        for row in range(head_rows):
            token, stood = self._choose(logits[row], proposed[row] if row < len(proposed) else None, first + row)
            choices.append(token)
            if not stood:
                break
        self._last = [log_likelihood(logits[row], token) for row, token in enumerate(choices)]
        # Nothing after a refused token is emitted; the rows only want a choice each.
        return choices + choices[-1:] * (head_rows - len(choices))

    def _choose(
        self, logits: npt.NDArray[np.float32], proposed: tuple[int, Distribution] | None, position: int
    ) -> tuple[int, bool]:
        """The token of a row, and whether the rows after it count."""
        draws, target = self.rule.draws, distribution(logits, self.rule.temperature)
        if proposed is None:
            return draws.index(target, position), True
        token, mass = proposed
        draft = np.zeros_like(target)
        draft[: len(mass)] = mass
        if draws.accepts(acceptance(target, draft, token), position):
            return token, True
        return draws.index(residual(target, draft), position), False
