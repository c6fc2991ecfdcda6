"""Tiny Hugging Face checkpoints that answer given requests with given texts: taught by heart, in a few seconds.

Random weights write nonsense, which every check of an edit refuses; these make whole edits come to their end. Knows the
engine's own prompts; nothing of what is tested. The same lessons give the same weights on one machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from editor_engine.request_tokens import tokenise
from editor_engine.requests import CompletionRequest
from editor_engine.text.folder_tokenizer import load_folder_tokenizer
from tests.support.tiny_checkpoints import make_checkpoint

MOST_STEPS = 600
MARGIN = 3.0
"""By so much every token of a lesson leads at the end: far beyond what rounding does."""


@dataclass(frozen=True)
class Lesson:
    """What is to be said after a request's prompt and the reply's opening."""

    request: CompletionRequest
    reply: str


def teach(folder: Path, family: str, lessons: Sequence[Lesson], change: Mapping[str, Any] | None = None) -> Path:
    """Write a checkpoint to `folder` that says each reply, greedily, then ends it."""
    import torch
    import transformers

    make_checkpoint(folder, family, change={"initializer_range": 0.08, **(change or {})})
    text = load_folder_tokenizer(folder)
    assert text.template is not None
    pairs = []
    for lesson in lessons:
        prompt = tokenise(lesson.request, text.tokenizer, text.template).prompt
        reply = text.tokenizer.encode_continuation(prompt, lesson.request.prefill, lesson.reply)
        pairs.append((prompt, [*reply, text.tokenizer.eos_id]))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    model.train()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model only waits for a second one
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for _ in range(MOST_STEPS):
            optimiser.zero_grad()
            leads = []
            for prompt, reply in pairs:
                ids = torch.tensor([prompt + reply[:-1]])
                targets = torch.tensor(reply)
                logits = model(ids, use_cache=False, logits_to_keep=len(reply)).logits[0]
                torch.nn.functional.cross_entropy(logits, targets).backward()
                right = logits.gather(1, targets[:, None])[:, 0]
                leads.append((right - logits.scatter(1, targets[:, None], float("-inf")).amax(1)).min().item())
            if min(leads) > MARGIN:
                break
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
        else:
            raise AssertionError(f"{family} did not learn its lessons: {leads}")
    torch.set_num_threads(threads)
    model.eval()
    model.save_pretrained(folder)
    return folder
