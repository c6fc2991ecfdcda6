"""Types and bytes that are said of a checkpoint before it is loaded."""

from dataclasses import replace
from pathlib import Path

import pytest

from editor_engine.config import HfOptions
from editor_engine.models.hf import sizes
from editor_engine.models.hf.checkpoint import Checkpoint
from editor_engine.models.hf.sizes import chosen_dtype, computed_dtype, stored_dtype, weights_bytes
from editor_engine.quant.safetensors import SafetensorsFile, StoredTensor


def checkpoint(dtype: str, tied: bool = False, **config: object) -> Checkpoint:
    shapes = {
        "model.embed_tokens.weight": (100, 64),
        "model.layers.0.mlp.up_proj.weight": (128, 64),
        "model.layers.0.mlp.up_proj.bias": (128,),
        "model.norm.weight": (64,),
        "lm_head.weight": (100, 64),
    }
    tensors = {name: StoredTensor(name, dtype, shape, 0, 1) for name, shape in shapes.items()}
    file = SafetensorsFile(Path("model.safetensors"), b"", tensors, 1)
    return Checkpoint(
        Path("tiny"), "tiny", "LlamaForCausalLM", {"tie_word_embeddings": tied, **config}, {}, (file,), tensors, False
    )


EMBEDDING, LINEAR, VECTORS = 6400, 8192, 192


@pytest.mark.parametrize(
    ("stored", "device", "asked", "dtype"),
    [
        ("F32", "cpu", "auto", "float32"),
        ("BF16", "cpu", "auto", "float32"),
        ("BF16", "cpu", "bfloat16", "bfloat16"),
        ("F16", "cpu", "auto", "float32"),
        ("F16", "cuda", "auto", "float16"),
        ("BF16", "cuda", "auto", "bfloat16"),
        ("F64", "cuda", "auto", "float32"),
        ("F32", "cpu", "float16", "float16"),
    ],
)
def test_the_type(stored: str, device: str, asked: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "multiplies_bfloat16", lambda: False)
    assert chosen_dtype(checkpoint(stored), HfOptions(dtype=asked), device) == dtype


@pytest.mark.parametrize(("stored", "dtype"), [("BF16", "bfloat16"), ("F16", "float32"), ("F32", "float32")])
def test_a_cpu_with_a_unit_for_it_takes_bfloat16(stored: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "multiplies_bfloat16", lambda: True)
    assert chosen_dtype(checkpoint(stored), HfOptions(), "cpu") == dtype


def test_packed_weights_are_multiplied_in_what_was_asked_for() -> None:
    assert computed_dtype(HfOptions(quantise="nf4", compute_dtype="bfloat16"), "float32") == "bfloat16"
    assert computed_dtype(HfOptions(quantise="nf4"), "float32") == "float32"
    assert computed_dtype(HfOptions(compute_dtype="bfloat16"), "float32") == "float32"


@pytest.mark.parametrize(
    ("options", "dtype", "expected"),
    [
        (HfOptions(), "float32", 4 * (2 * EMBEDDING + LINEAR + VECTORS)),
        (HfOptions(), "bfloat16", 2 * (2 * EMBEDDING + LINEAR + VECTORS)),
        (HfOptions(quantise="nf4"), "float32", 4 * (2 * EMBEDDING + VECTORS) + LINEAR // 2 + LINEAR // 64 * 4),
        (HfOptions(quantise="int8"), "bfloat16", 2 * (2 * EMBEDDING + VECTORS) + LINEAR + 128 * 4),
        (
            HfOptions(quantise="fp4", double_quant=True),
            "float16",
            2 * (2 * EMBEDDING + VECTORS) + LINEAR // 2 + LINEAR // 64 + 4,
        ),
    ],
)
def test_the_bytes(options: HfOptions, dtype: str, expected: int) -> None:
    assert weights_bytes(checkpoint("F32"), options, dtype) == expected


def test_a_tied_head_is_counted_once() -> None:
    whole, tied = checkpoint("F32"), checkpoint("F32", tied=True)
    assert weights_bytes(whole, HfOptions(), "float32") - weights_bytes(tied, HfOptions(), "float32") == 4 * EMBEDDING


def test_what_is_packed_already_stays_as_it_is() -> None:
    packed = checkpoint("F32", quantization_config={"quant_method": "bitsandbytes"})
    assert weights_bytes(packed, HfOptions(), "float32") == packed.weights_bytes
    only = replace(packed, tensors={"a": StoredTensor("a", "U8", (4, 4), 0, 16)})
    assert stored_dtype(only) == "float32"
