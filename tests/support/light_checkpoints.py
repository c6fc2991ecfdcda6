"""Makes folders that look like Hugging Face checkpoints without transformers: settings, zeros as weights, a tokenizer.

Knows file names and the fewest settings; nothing of what is tested. tiny_checkpoints makes those that can be loaded.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from editor_engine.quant.safetensors import BITS, PlannedTensor, write_header
from tests.support.tiny_checkpoints import ROWS, STOP, token_ids, write_tokenizer

CONFIG: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": ROWS,
    "hidden_size": 8,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "eos_token_id": token_ids()[STOP],
    "tie_word_embeddings": False,
}

TENSORS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "model.embed_tokens.weight": ("BF16", (ROWS, 8)),
    "model.layers.0.self_attn.q_proj.weight": ("BF16", (8, 8)),
    "model.norm.weight": ("F32", (8,)),
    "lm_head.weight": ("BF16", (ROWS, 8)),
}
"""Name to type and shape."""


def write_weights(path: Path, tensors: Mapping[str, tuple[str, tuple[int, ...]]], byte: int = 0) -> Path:
    """A safetensors file of those tensors, every byte of them `byte`."""
    planned = [PlannedTensor(name, dtype, shape) for name, (dtype, shape) in tensors.items()]
    assert all(tensor.dtype in BITS for tensor in planned)
    with path.open("wb") as stream:
        write_header(stream, planned, {"format": "pt"})
        stream.write(bytes([byte]) * sum(tensor.nbytes for tensor in planned))
    return path


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), "utf-8")
    return path


def light_checkpoint(
    folder: Path, change: Mapping[str, Any] | None = None, tensors: Mapping[str, tuple[str, tuple[int, ...]]] = TENSORS
) -> Path:
    """A whole folder; `change` goes into its config.json, where None takes a setting out."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {name: value for name, value in {**CONFIG, **(change or {})}.items() if value is not None}
    write_json(folder / "config.json", settings)
    write_weights(folder / "model.safetensors", tensors)
    write_tokenizer(folder)
    return folder
