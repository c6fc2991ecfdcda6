"""Ways to drive a `HfModel` in tests: through an engine with every drafter, and pass by pass.

Knows the engine's own check of identity. Nothing here has an opinion on what should come out.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from editor_engine.bench.identity import IdentityCase, IdentityFigures, check_identity
from editor_engine.bench.identity_drafters import hostile_drafters, own_drafters
from editor_engine.models.hf.model import HfModel
from editor_engine.requests import CompletionRequest, Message
from editor_engine.text.folder_tokenizer import load_folder_tokenizer

_LINES = (
    "def load(path):",
    "    return open(path).read()",
    "import os",
    "class Stock:",
    "    def count(self):",
    "        return self.items",
    "    for item in self.items:",
    "        total = total + item.price",
    "",
    "if total == 0:",
    "    self.empty = (1, 2)",
)


def random_edits(count: int, seed: int, tokens: int = 32) -> list[IdentityCase]:
    """Edits of random little files, every other one drawn instead of greedy."""
    chance = random.Random(seed)
    cases = []
    for number in range(count):
        source = "\n".join(chance.choices(_LINES, k=chance.randint(2, 7))) + "\n"
        messages = (Message("user", f"{source}\n{chance.choice(['Rename it', 'Keep it', 'Add types'])}."),)
        drawn = 0.8 if number % 2 else 0.0
        request = CompletionRequest(messages, tokens, source=source, temperature=drawn, seed=number)
        cases.append(IdentityCase(f"edit {number}", request))
    return cases


def check_drafts(model: HfModel, folder: Path, cases: Sequence[IdentityCase], hostile: bool = True) -> IdentityFigures:
    """Each case plainly and with every drafter there is."""
    text = load_folder_tokenizer(folder, rows=model.info.vocab_size)
    assert text.template is not None
    drafters = dict(own_drafters("avx2", text.tokenizer))
    if hostile:
        drafters |= hostile_drafters(model.info.vocab_size)
    return check_identity(model, text.tokenizer, text.template, cases, drafters, lambda words: None)


def scores(model: HfModel, tokens: Sequence[int], chunk: int = 64) -> npt.NDArray[np.float32]:
    """Logits after every token, in passes of `chunk` rows."""
    parts = [tokens[at : at + chunk] for at in range(0, len(tokens), chunk)]
    return np.concatenate([model.logits(part, head_rows=len(part)) for part in parts])
