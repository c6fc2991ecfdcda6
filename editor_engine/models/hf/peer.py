"""transformers decoding by itself, plainly or with its own prompt lookup: what our drafting is compared with.

Uses the very weights a `HfModel` runs, so both sides multiply the same numbers. Knows nothing of requests or text.
Invariant: the model's own cache is not touched.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from editor_engine.models.hf.model import HfModel
from editor_engine.models.hf.packages import hushed


@dataclass(frozen=True)
class Generated:
    """One greedy reply of transformers."""

    ids: tuple[int, ...]
    """What was emitted, a stop token among them."""
    decode_s: float
    """From the first token to the end; the pass over the prompt is left out."""
    passes: int
    """After the one over the prompt."""


def generate(
    model: HfModel,
    prompt: Sequence[int],
    max_tokens: int,
    stop_ids: Sequence[int],
    lookup: int | None,
    clock: Callable[[], float] = time.perf_counter,
) -> Generated:
    """Decode with `generate`; `lookup` is its `prompt_lookup_num_tokens`, None decodes token by token."""
    module = model.network.module
    ends: list[float] = []

    def passed(*_: object) -> None:
        ends.append(clock())

    handle = module.register_forward_hook(passed)
    ids = torch.tensor([list(prompt)], device=model.network.device)
    options: dict[str, Any] = {} if lookup is None else {"prompt_lookup_num_tokens": lookup}
    try:
        with hushed(), torch.inference_mode():
            out = module.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=max_tokens,
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                repetition_penalty=1.0,
                eos_token_id=list(stop_ids),
                pad_token_id=stop_ids[0],
                **options,
            )
            emitted = tuple(out[0, len(prompt) :].tolist())
        return Generated(emitted, clock() - ends[0], len(ends) - 1)
    finally:
        handle.remove()
