"""Brings the KV cache to the end of the prompt, in passes of the model's own width."""

from collections.abc import Generator, Sequence

from editor_engine.decode.speculate import Choose
from editor_engine.events import Prefill
from editor_engine.models.target import TargetModel


def prefill(model: TargetModel, choose: Choose, prompt: Sequence[int], cached: int) -> Generator[Prefill, None, int]:
    """Forward `prompt[cached:]` (at least one token); yields progress, returns the first output token.

    The cache must hold exactly `prompt[:cached]`. How the prompt is cut into passes never changes a bit.
    """
    total = len(prompt) - cached
    yield Prefill(0, total)
    choices: list[int] = []
    for start in range(cached, len(prompt), model.rows):
        rows = prompt[start : start + model.rows]
        last = start + len(rows) == len(prompt)
        choices = choose(rows, 1) if last else model.forward(rows, head_rows=0)
        yield Prefill(start + len(rows) - cached, total)
    return choices[-1]
