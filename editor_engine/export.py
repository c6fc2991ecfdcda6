"""Writes the model of a GGUF file as a folder with a Hugging Face checkpoint, its weights dequantised.

For comparing this engine's two ways of running a model, and for tools that read no GGUF. Needs numpy and no torch.
Invariant: the folder appears under its name whole or not at all; in float32 every weight is the file's, bit for bit;
never more than one stretch of rows is in memory.
"""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from editor_engine.errors import ModelFileError, RequestError, UnsupportedModelError
from editor_engine.models.native.checkpoint import EMBEDDING, HEAD, ROPE_FACTORS, Checkpoint, open_checkpoint
from editor_engine.quant.dequantise import dequantise
from editor_engine.quant.gguf import GgufFile
from editor_engine.quant.safetensors import PlannedTensor, shards, write_header
from editor_engine.store.sources import require_space
from editor_engine.text.export import write_tokenizer
from editor_engine.text.stop_ids import CONFIG
from editor_engine.text.tokenizer import Tokenizer, load_tokenizer

DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
"""What weights may be written in, and safetensors' name of it."""

SHARD_BYTES = 2 << 30
"""Of data in one file, as is usual where files are fetched one by one."""

_STRETCH_BYTES = 32 << 20  # of float32 in memory at once

_NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTER = {EMBEDDING: "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", HEAD: "lm_head.weight"}


@dataclass(frozen=True)
class Exported:
    """A folder that was written."""

    folder: Path
    files: tuple[str, ...]
    """Names of the files with weights."""
    weights_bytes: int


def export_folder(
    source: Path,
    folder: Path,
    dtype: str = "float16",
    on_bytes: Callable[[int, int], None] = lambda done, total: None,
    shard_bytes: int = SHARD_BYTES,
) -> Exported:
    """Write the model at `source` to `folder`, which must not exist or be empty; `on_bytes` is told (done, total).

    Raises ModelMissingError, ModelFileError, UnsupportedModelError, RequestError for a folder that is taken or a type
    that is none, FetchError where the disk has no room.
    """
    if dtype not in DTYPES:
        raise RequestError(f"Weights cannot be written as {dtype!r}; {', '.join(DTYPES)} can.")
    file = GgufFile(source)
    checkpoint = open_checkpoint(file)
    _refuse_what_has_no_place(checkpoint)
    tokenizer = load_tokenizer(file.metadata)
    plan = {_hf_name(name): name for name in file.tensors}
    tensors = [PlannedTensor(name, DTYPES[dtype], file.tensors[plan[name]].shape) for name in plan]
    total = sum(tensor.nbytes for tensor in tensors)
    groups = shards(tensors, shard_bytes)
    try:
        with _new_folder(folder) as scratch:
            require_space(scratch, total)
            done = 0
            names = [_file_name(number, len(groups)) for number in range(1, len(groups) + 1)]
            for name, group in zip(names, groups, strict=True):
                with (scratch / name).open("wb") as stream:
                    write_header(stream, group, {"format": "pt"})
                    for tensor in group:
                        for stretch in _stretches(checkpoint, plan[tensor.name]):
                            done += _write(stream, stretch, dtype, tensor.name)
                            on_bytes(done, total)
                    stream.flush()
                    os.fsync(stream.fileno())
            if len(groups) > 1:
                _write_json(scratch / "model.safetensors.index.json", _index(names, groups, total))
            write_tokenizer(file.metadata, tokenizer, scratch)
            _write_json(scratch / CONFIG, _config(checkpoint, tokenizer, dtype))
    except OSError as error:
        raise ModelFileError(f"{folder} cannot be written: {error.strerror or error}.") from error
    return Exported(folder, tuple(names), total)


def _refuse_what_has_no_place(checkpoint: Checkpoint) -> None:
    name = checkpoint.file.path.name
    if ROPE_FACTORS in checkpoint.vectors:
        raise UnsupportedModelError(f"{name} stretches its context by factors that a config.json has no place for.")
    if checkpoint.config.architecture == "llama" and checkpoint.biased:
        raise UnsupportedModelError(
            f"{name} has biases on some of its attention, which a Llama config.json cannot say."
        )


def _hf_name(name: str) -> str:
    if name in _OUTER:
        return _OUTER[name]
    _, layer, part, kind = name.split(".")  # blk.3.attn_q.weight; `open_checkpoint` lets no other name through
    return f"model.layers.{layer}.{_NAMES[part]}.{kind}"


def _file_name(number: int, count: int) -> str:
    return "model.safetensors" if count == 1 else f"model-{number:05}-of-{count:05}.safetensors"


def _stretches(checkpoint: Checkpoint, name: str) -> Iterator[npt.NDArray[np.float32]]:
    """The tensor's rows in order, as float32, some at a time."""
    tensor, raw = checkpoint.file.tensors[name], checkpoint.file.raw(name)
    rows = tensor.shape[0]
    inputs = tensor.shape[1] if len(tensor.shape) == 2 else 1
    by_row = raw.reshape(rows, -1)
    order = _row_order(checkpoint, name, rows)
    step = max(1, _STRETCH_BYTES // (4 * inputs))
    for start in range(0, rows, step):
        stretch = slice(start, min(rows, start + step))
        some = by_row[stretch] if order is None else by_row[order[stretch]]
        yield dequantise(tensor.type_name, np.ascontiguousarray(some).reshape(-1), (len(some), *tensor.shape[1:]))


def _row_order(checkpoint: Checkpoint, name: str, rows: int) -> npt.NDArray[np.intp] | None:
    """Which of the file's rows comes where; None: as they are.

    GGUF files of the llama family keep the rows that are rotated together side by side, transformers half a head apart.
    """
    if not checkpoint.config.rope_pairs or not (".attn_q." in name or ".attn_k." in name):
        return None
    pairs = np.arange(rows, dtype=np.intp).reshape(-1, checkpoint.config.head_dim // 2, 2)
    return pairs.swapaxes(1, 2).reshape(rows)


def _write(stream: BinaryIO, values: npt.NDArray[np.float32], dtype: str, name: str) -> int:
    """Write `values` as `dtype`; returns the bytes. Raises ModelFileError where they do not fit it."""
    if not np.isfinite(values).all():
        raise ModelFileError(f"The tensor {name} is damaged: a value is NaN or infinite.")
    if dtype == "float32":
        data = values.astype("<f4").tobytes()
    elif dtype == "float16":
        with np.errstate(over="ignore"):
            halves = values.astype("<f2")
        if not np.isfinite(halves).all():
            raise ModelFileError(f"The tensor {name} has a value beyond float16; take bfloat16 or float32.")
        data = halves.tobytes()
    else:
        data = to_bfloat16(values).astype("<u2").tobytes()
    return stream.write(data)


def to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The upper half of each finite float32, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def _index(names: Sequence[str], groups: Sequence[Sequence[PlannedTensor]], total: int) -> dict[str, object]:
    places = {tensor.name: name for name, group in zip(names, groups, strict=True) for tensor in group}
    return {"metadata": {"total_size": total}, "weight_map": places}


def _config(checkpoint: Checkpoint, tokenizer: Tokenizer, dtype: str) -> dict[str, object]:
    """config.json as transformers writes it for this family."""
    config = checkpoint.config
    family: dict[str, object] = {
        "qwen2": {"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": False},
        "llama": {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "mlp_bias": False},
    }[config.architecture]
    return family | {
        "model_type": config.architecture,
        "vocab_size": checkpoint.vocab_size,
        "hidden_size": config.hidden,
        "intermediate_size": config.ffn,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": config.rms_eps,
        "rope_theta": config.rope_base,
        "max_position_embeddings": config.context_length,
        "tie_word_embeddings": checkpoint.tied,
        "bos_token_id": tokenizer.bos_id,
        "eos_token_id": tokenizer.eos_id,
        "dtype": dtype,
    }


def _write_json(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into, which takes the name `folder` when nothing failed. Raises OSError, RequestError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(f"{folder} is there already and not an empty folder; name another one.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = folder.parent / f".{folder.name}-{secrets.token_hex(4)}.new"
    scratch.mkdir()
    try:
        yield scratch
        os.replace(scratch, folder)  # over an empty folder, too
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
