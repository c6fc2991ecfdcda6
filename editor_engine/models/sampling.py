"""From a row of logits to a token and its log-likelihood, by a generator that is keyed, not shared.

Each draw of `choose` depends on (seed, position, logits) alone, so a token is the same whether it was verified in a
wide pass or decoded by itself: a draft is accepted when the draw equals it, and drafting never changes what comes out.
Below it, the distributions that the rejection rule (`decode/rejection.py`) is made of.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from editor_engine.errors import NumericsError

Distribution = npt.NDArray[np.float64]
"""Probabilities of all tokens."""


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


def uniform(seed: int, position: int, again: int = 0) -> float:
    """The draw in [0, 1) that belongs to (seed, position): Philox 4x64-10 keyed by both (Salmon et al., SC 2011).

    `again` numbers further draws of the same key, each independent of the others.
    """
    mask = (1 << 64) - 1
    key = np.array([seed & mask, position & mask], np.uint64)  # a list with one beyond int64 would become floats
    counter = np.array([0, 0, 0, again & mask], np.uint64)
    return float(np.random.Generator(np.random.Philox(key=key, counter=counter)).random())


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
            mass = np.exp(scores / sampling.temperature)
        token = drawn(mass, uniform(sampling.seed, position))
    return Scored(token, float(scores[token]) - log_total)


def drawn(mass: Distribution, draw: float) -> int:
    """The token at `draw`, 0 to below 1, of the cumulative `mass`, which need not sum to 1; never one without mass."""
    total = np.cumsum(mass)
    # A draw next to 1 may round up to the whole mass: the last token with any mass is meant then.
    last = int(np.searchsorted(total, total[-1], side="left"))
    return min(int(np.searchsorted(total, draw * total[-1], side="right")), last)


def likeliest(logits: npt.NDArray[np.float32]) -> tuple[int, float]:
    """The greatest logit's token, the lowest of ties, and its probability at temperature 1, in float32: a draft model's
    confidence needs no more, and this runs once for each of its tokens. Raises NumericsError on NaN or infinity."""
    token = int(logits.argmax())
    with np.errstate(invalid="ignore"):
        total = float(np.exp(logits - logits[token]).sum())
    if not (np.isfinite(total) and np.isfinite(logits[token])):
        raise NumericsError("Its logits are not all numbers.")
    return token, 1.0 / total


def distribution(logits: npt.NDArray[np.float32], temperature: float) -> Distribution:
    """Probabilities at a temperature above 0. Raises NumericsError where the logits have NaN or no greatest."""
    scores = logits.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # as in `choose`
        scores -= scores.max()
        mass = np.exp(scores / temperature)
    total = float(mass.sum())
    if not np.isfinite(total):
        raise NumericsError("The logits are not all numbers.")
    return mass / total


def log_likelihood(logits: npt.NDArray[np.float32], token: int) -> float:
    """Natural logarithm of a token's probability at temperature 1."""
    scores = logits.astype(np.float64)
    scores -= scores.max()
    return float(scores[token]) - float(np.log(np.exp(scores).sum()))


def acceptance(target: Distribution, draft: Distribution, token: int) -> float:
    """Chance that a token drawn from `draft` stands where `target` is meant (Leviathan et al., Chen et al., 2023)."""
    wanted, proposed = float(target[token]), float(draft[token])
    return 1.0 if wanted >= proposed else wanted / proposed  # never a division by what is next to nothing


def residual(target: Distribution, draft: Distribution) -> Distribution:
    """What is drawn from in its place, up to a factor, when it does not stand: what `target` has over `draft`."""
    over = np.maximum(target - draft, 0.0)
    # Rounding may leave nothing where both are equal; nothing was refused there but by rounding.
    return over if over.sum() > 0.0 else target
