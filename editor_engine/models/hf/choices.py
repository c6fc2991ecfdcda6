"""From the logits of a pass to choices, and how clearly each was made.

The one place where logits leave torch. Knows nothing of caches or passes. Invariant: ties go to the lowest id, and what
is drawn depends on seed, position and logits alone, as `models.sampling` says.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from editor_engine.models.hf.clearance import clearance
from editor_engine.models.hf.guard import Guard
from editor_engine.models.sampling import Sampling, Scored, choose


@dataclass(frozen=True)
class Choice:
    """What was chosen after one row."""

    scored: Scored
    near: bool
    """Rounding may have decided."""


Judge = Callable[[torch.Tensor, int], list[Choice]]
"""(logits [rows, vocabulary], position of the first choice) -> a choice for each row."""


def greedy(guard: Guard) -> Judge:
    """The greatest logit; it is not scored."""

    @torch.inference_mode()
    def judge(logits: torch.Tensor, position: int) -> list[Choice]:
        ids = logits.argmax(dim=-1)  # the first of equals, as `max` does not promise
        best = logits.gather(1, ids[:, None])
        magnitudes = torch.maximum(best, -logits.amin(dim=-1, keepdim=True))[:, 0].tolist()
        logits.scatter_(1, ids[:, None], float("-inf"))  # in place: a copy of 64 rows has 39 MB
        leads = (best - logits.amax(dim=-1, keepdim=True))[:, 0].tolist()
        logits.scatter_(1, ids[:, None], best)
        return [
            Choice(Scored(token, 0.0), guard.near(lead, magnitude))
            for token, lead, magnitude in zip(ids.tolist(), leads, magnitudes, strict=True)
        ]

    return judge


def scored(guard: Guard, sampling: Sampling) -> Judge:
    """As `sampling` says, with the log-likelihood of what was chosen."""

    def judge(logits: torch.Tensor, position: int) -> list[Choice]:
        choices = []
        for index, row in enumerate(logits.cpu().numpy()):
            clear = clearance(row, sampling, position + index)
            choices.append(Choice(choose(row, sampling, position + index), guard.near(clear, float(abs(row).max()))))
        return choices

    return judge
