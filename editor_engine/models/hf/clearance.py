"""How clearly a token was chosen: what noise on the logits it would take to choose another.

The margin that the guard looks at, for greedy and for drawn tokens alike. Knows nothing of passes. Invariant: it never
chooses; `models.sampling.choose` does.
"""

import numpy as np
import numpy.typing as npt

from editor_engine.models.sampling import Sampling, uniform


def clearance(logits: npt.NDArray[np.float32], sampling: Sampling, position: int) -> float:
    """How far two logits may move towards each other before `choose` may take another token.

    Greedy: the lead of the greatest. Drawn: the lead that would move a bound of the drawn token's interval to the draw,
    to first order; infinite where the interval has no bound that can move.
    """
    scores = logits.astype(np.float64)
    if sampling.temperature <= 0.0:
        second, first = np.partition(scores, -2)[-2:]
        return float(first - second)
    with np.errstate(over="ignore"):  # as in `choose`
        mass = np.cumsum(np.exp((scores - scores.max()) / sampling.temperature))
    bounds = mass / mass[-1]
    drawn = uniform(sampling.seed, position)
    above = int(np.searchsorted(bounds, drawn, side="right"))
    leads = [
        abs(bound - drawn) * sampling.temperature / (bound * (1.0 - bound))
        for bound in bounds[max(above - 1, 0) : above + 1]
        if 0.0 < bound < 1.0
    ]
    return float(min(leads, default=np.inf))
