"""The float twin against transformers on the same dequantised weights (tiny ones; `test_real_weights` has the others).

Both compute in fp32 with sums in different orders, so they differ by rounding, and by nothing else when RoPE, eps and
layout are right. The bound: unit roundoff is 6e-8; a residual stream of about 30 layers, each with sums over some
thousand terms, keeps a relative error near 1e-6 to 1e-5, and logits are as large as 50. BOUND = 1e-3 is five to ten
times what that gives (measured: 1.0e-4 on smollm2, the 0.5B and the 1.5B, at most 2.1e-4 on tiny models), and it is
still below what the smallest fault does: an eps wrong by a tenth moves a logit by 2.3e-3
(`test_the_bound_finds_faults`), a wrong rotation by 12.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from editor_engine.models.native.checkpoint import Checkpoint, open_checkpoint
from editor_engine.models.native.float_twin import FloatTwin
from editor_engine.quant.gguf import GgufFile
from tests.support.tiny_gguf import LINEAR_TYPES, tiny_source

TOKENS = [index * 97 % 49000 for index in range(1, 49)]

BOUND = 1e-3
reference = pytest.importorskip("tests.support.reference_model", exc_type=ImportError)


def twin_logits(checkpoint: Checkpoint, tokens: list[int], **changes: Any) -> np.ndarray:
    changed = replace(checkpoint, config=replace(checkpoint.config, **changes))
    return FloatTwin(changed).logits(tokens)


def check(path: Path) -> None:
    tokens = list(range(40, 104))
    theirs = reference.reference_logits(reference.reference_model(path), tokens)
    reference.assert_same_model(twin_logits(open_checkpoint(GgufFile(path)), tokens), theirs, BOUND)


@pytest.mark.parametrize("family", ["qwen2", "llama"])
@pytest.mark.parametrize("kind", LINEAR_TYPES)
def test_tiny_models(tmp_path: Path, family: str, kind: str) -> None:
    path = tiny_source(family, kind=kind).write(tmp_path / "tiny.gguf")
    check(path)


def test_tied_head_biases_and_rope_factors(tmp_path: Path) -> None:
    source = tiny_source("llama", tied=True, biases=True, rope_factors=[1, 1, 1.5, 2, 3, 4, 6, 8])
    check(source.write(tmp_path / "tiny.gguf"))


@pytest.mark.model
def test_the_bound_finds_faults(smollm2_path: Path) -> None:
    checkpoint = open_checkpoint(GgufFile(smollm2_path))
    config = checkpoint.config
    right = twin_logits(checkpoint, TOKENS)
    for change in ({"rms_eps": config.rms_eps * 1.1}, {"rope_base": config.rope_base * 1.01}, {"rope_pairs": False}):
        assert np.abs(twin_logits(checkpoint, TOKENS, **change) - right).max() > 2 * BOUND, change


@pytest.mark.model
@pytest.mark.slow
def test_our_reading_of_weights_is_transformers_own(smollm2_path: Path) -> None:
    """The reference models above get their weights from us; here transformers loads the file by itself."""
    transformers = pytest.importorskip("transformers")
    own = transformers.AutoModelForCausalLM.from_pretrained(
        smollm2_path.parent, gguf_file=smollm2_path.name, dtype="float32", local_files_only=True
    ).eval()
    theirs = reference.reference_logits(own, TOKENS)
    ours = reference.reference_logits(reference.reference_model(smollm2_path), TOKENS)
    assert np.abs(ours - theirs).max() < BOUND
