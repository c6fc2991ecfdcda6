"""How the model's own choice is made: greedy by the fast path, or from full logits when drawn or scored.

Sits between the loops and the model, so that neither loop knows about temperature or scores.
"""

from collections.abc import Sequence

from editor_engine.models.sampling import Sampling
from editor_engine.models.target import TargetModel


class Chooser:
    """A `speculate.Choose` that also sums the log-likelihood of what was emitted."""

    def __init__(self, model: TargetModel, sampling: Sampling, score: bool) -> None:
        self._model = model
        self._sampling = sampling
        self._from_logits = score or sampling.temperature > 0
        self._last: list[float] = []
        self._total = 0.0
        self._count = 0

    def __call__(self, tokens: Sequence[int], head_rows: int) -> list[int]:
        if not self._from_logits:
            return self._model.forward(tokens, head_rows=head_rows)
        scored = self._model.sample(tokens, head_rows=head_rows, sampling=self._sampling)
        self._last = [choice.logprob for choice in scored]
        return [choice.token for choice in scored]

    def emitted(self, count: int) -> None:
        """The first `count` choices of the last call were emitted."""
        self._total += sum(self._last[:count])
        self._count += min(count, len(self._last))

    @property
    def mean_logprob(self) -> float | None:
        """Nats per emitted token; None where logits were not scored."""
        return self._total / self._count if self._count else None
