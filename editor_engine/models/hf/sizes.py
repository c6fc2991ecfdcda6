"""In which type a checkpoint is run, and how many bytes its weights take then. Light: no torch, so that a model can be
looked at without being loaded.

Knows the shapes of the tensors and what bitsandbytes does to them. Invariant: the load takes the type that is said
here, and its weights the bytes that are said here, but for what the allocator rounds up.
"""

from collections.abc import Mapping
from math import prod

from editor_engine.config import HfOptions
from editor_engine.machine import multiplies_bfloat16
from editor_engine.models.hf.checkpoint import Checkpoint
from editor_engine.quant.safetensors import StoredTensor

WORKSPACE_BYTES = 1 << 30
"""Python, torch and transformers themselves (0.5 GB), activations and logits of a full pass."""

ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_STORED = {"F32": "float32", "F64": "float32", "BF16": "bfloat16", "F16": "float16"}

_BLOCK = 64
"""Weights that share a scale in nf4 and fp4."""
_NESTED_BLOCK = 256
"""Scales that share a scale when they are quantised as well."""

KEPT = ("lm_head", "embed_out", "embed", "wte", "wpe", "word_embeddings", "tok_embeddings")
"""Parts of the names of matrices that stay as they are: bitsandbytes packs the linear layers, never the embedding, and
the head is left alone because its rounding shows in every choice."""


def stored_dtype(checkpoint: Checkpoint) -> str:
    """The type most of the weights are stored in; of packed ones, the type of what is not packed."""
    counts = checkpoint.parameters
    known = {name: counts[name] for name in _STORED if name in counts}
    return _STORED[max(known, key=lambda name: known[name])] if known else "float32"


def chosen_dtype(checkpoint: Checkpoint, options: HfOptions, device: str) -> str:
    """What `auto` means, by the checkpoint and the kind of device (`cpu`, `cuda`).

    A graphics processor takes the weights as they are stored. So does a CPU with a unit for bfloat16, where wide passes
    cost little more than narrow ones (an edit on 0.5B: 27 tok/s drafted, 6 in float32); another CPU takes float32.
    """
    if options.dtype != "auto":
        return options.dtype
    stored = stored_dtype(checkpoint)
    if device != "cpu" or (stored == "bfloat16" and multiplies_bfloat16()):
        return stored
    return "float32"


def computed_dtype(options: HfOptions, dtype: str) -> str:
    """What linear layers are multiplied in: `dtype`, unless the weights are packed and another type was asked for."""
    if options.quantise in ("nf4", "fp4") and options.compute_dtype != "auto":
        return options.compute_dtype
    return dtype


def weights_bytes(checkpoint: Checkpoint, options: HfOptions, dtype: str) -> int:
    """Bytes of the loaded weights; a checkpoint that is packed already stays as it is."""
    if checkpoint.config.get("quantization_config") is not None:
        return checkpoint.weights_bytes
    return sum(_bytes(tensor, options, dtype) for tensor in _loaded(checkpoint).values())


def _loaded(checkpoint: Checkpoint) -> Mapping[str, StoredTensor]:
    """Without a stored copy of a head that is the embedding."""
    if checkpoint.config.get("tie_word_embeddings") is not True:
        return checkpoint.tensors
    return {name: tensor for name, tensor in checkpoint.tensors.items() if not name.endswith("lm_head.weight")}


def _bytes(tensor: StoredTensor, options: HfOptions, dtype: str) -> int:
    elements = prod(tensor.shape)
    if options.quantise is None or len(tensor.shape) != 2 or any(part in tensor.name for part in KEPT):
        return elements * ITEM_BYTES[dtype]
    if options.quantise == "int8":
        return elements + 4 * tensor.shape[0]
    scales = -(-elements // _BLOCK)
    if not options.double_quant:
        return -(-elements // 2) + 4 * scales
    return -(-elements // 2) + scales + 4 * -(-scales // _NESTED_BLOCK)
