"""From a row of logits to a token and its log-likelihood, by a generator that is keyed, not shared.

Each draw depends on (seed, position, logits) alone, so a token is the same whether it was verified in a wide pass or
decoded by itself: a draft is accepted when the draw equals it, and drafting never changes what comes out.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen."""

    temperature: float
    """0 takes the greatest logit; above 0 logits are divided by it."""
    seed: int
    """Non-negative; with the position it keys the generator."""


@dataclass(frozen=True)
class Scored:
    """A chosen token."""

    token: int
    logprob: float
    """Natural logarithm of its probability at temperature 1."""


def uniform(seed: int, position: int) -> float:
    """The draw in [0, 1) that belongs to (seed, position): Philox 4x64-10 keyed by both (Salmon et al., SC 2011)."""
    mask = (1 << 64) - 1
    key = np.array([seed & mask, position & mask], np.uint64)  # a list with one beyond int64 would become floats
    return float(np.random.Generator(np.random.Philox(key=key)).random())


def choose(logits: npt.NDArray[np.float32], sampling: Sampling, position: int) -> Scored:
    """The token for `position`, from its logits [vocabulary]: the greatest, or the inverse of the cumulative softmax.

    Computed in float64. Ties of the greatest go to the lowest id.
    """
    scores = logits.astype(np.float64)
    scores -= scores.max()
    log_total = float(np.log(np.exp(scores).sum()))
    if sampling.temperature <= 0.0:
        token = int(scores.argmax())
    else:
        with np.errstate(over="ignore"):  # next to 0, whatever is not the greatest is infinitely far from it
            mass = np.cumsum(np.exp(scores / sampling.temperature))
        # A draw next to 1 may round up to the whole mass: the last token with any mass is meant then.
        last = int(np.searchsorted(mass, mass[-1], side="left"))
        token = min(int(np.searchsorted(mass, uniform(sampling.seed, position) * mass[-1], side="right")), last)
    return Scored(token, float(scores[token]) - log_total)
