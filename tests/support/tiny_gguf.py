"""Writes tiny random GGUF checkpoints of both families, each with a small working tokenizer and chat template.

Knows nothing of the engine: the file layout is written here from the public GGUF specification, so that the reader is
tested against other eyes than its own. Invariant: the same arguments give the same bytes.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

TYPE_IDS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q2_K": 10} | {
    "Q4_K": 12,
    "Q5_K": 13,
    "Q6_K": 14,
}
"""ggml's ids of the tensor types a test can ask for."""

LINEAR_TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
"""Every type the engine runs in a linear layer."""

CHAT_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou edit files.<|im_end|>\\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

# Inputs and bytes of a block.
BLOCKS = {"Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34)} | {
    "Q2_K": (256, 84),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
}
# Byte offsets of the fp16 fields of a block: the scale d, then a minimum where there is one.
SCALE_AT = {"Q4_0": 0, "Q4_1": 0, "Q5_0": 0, "Q5_1": 0, "Q8_0": 0, "Q2_K": 80, "Q4_K": 0, "Q5_K": 0, "Q6_K": 208}
MINIMUM_AT = {"Q4_1": 2, "Q5_1": 2, "Q2_K": 82, "Q4_K": 2, "Q5_K": 2}
# Root mean square of one weight when d = 1 (and the minimum is chosen as below): keeps activations near 1.
_SPREAD = {"Q4_0": 4.6, "Q4_1": 4.6, "Q5_0": 9.2, "Q5_1": 9.2, "Q8_0": 74.0, "Q2_K": 12.0, "Q4_K": 180.0} | {
    "Q5_K": 360.0,
    "Q6_K": 1370.0,
}
# Minimum over d that centres the weights: about half the largest quant (K-quants: both sides have 6-bit sub scales).
_CENTRE = {"Q4_1": -7.5, "Q5_1": -15.5, "Q2_K": 1.5, "Q4_K": 7.5, "Q5_K": 15.5}


def bytes_to_unicode() -> dict[int, str]:
    """The byte alphabet of GPT-2's byte-level BPE: printable stand-ins for all 256 bytes."""
    kept = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    return {byte: chr(byte) for byte in kept} | {byte: chr(256 + i) for i, byte in enumerate(others)}


_WORDS = ("return", "self", "import", "def", "class", "None", "value", "result", "name", "line", "for", "in", "if")


def tiny_vocabulary() -> tuple[list[str], list[int], list[str]]:
    """Tokens, token types (1 normal, 3 control) and merges of a working byte-level BPE of a few hundred tokens."""
    alphabet = bytes_to_unicode()
    space, newline = alphabet[32], alphabet[10]
    tokens = [alphabet[byte] for byte in range(256)]
    merges: list[str] = []

    def merge(left: str, right: str) -> str:
        if f"{left} {right}" not in merges:
            merges.append(f"{left} {right}")
        if left + right not in tokens:
            tokens.append(left + right)
        return left + right

    double = merge(space, space)
    merge(double, double)
    merge(newline, newline)
    for word in _WORDS:
        built = word[0]
        for letter in word[1:]:
            built = merge(built, letter)
        merge(space, built)
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    types = [1] * len(tokens) + [3] * len(specials)
    return tokens + specials, types, merges


@dataclass
class GgufSource:
    """What a GGUF file is made of; tests change it before `to_bytes`."""

    metadata: dict[str, object] = field(default_factory=dict)
    """int -> uint32, float -> float32, bool, str, list of str or of int (int32), or a pair (type id, raw payload)."""
    tensors: dict[str, tuple[str, tuple[int, ...], bytes]] = field(default_factory=dict)
    """Name to type name, dims in GGUF order (contiguous first) and raw bytes."""
    version: int = 3
    alignment: int = 32

    def to_bytes(self) -> bytes:
        """The file."""
        head = [b"GGUF", struct.pack("<IQQ", self.version, len(self.tensors), len(self.metadata))]
        head += [_string(key) + _value(value) for key, value in self.metadata.items()]
        data: list[bytes] = []
        offset = 0
        for name, (kind, dims, raw) in self.tensors.items():
            head.append(_string(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims))
            head.append(struct.pack("<IQ", TYPE_IDS[kind], offset))
            padded = raw + b"\0" * (-len(raw) % self.alignment)
            data.append(padded)
            offset += len(padded)
        table = b"".join(head)
        return table + b"\0" * (-len(table) % self.alignment) + b"".join(data)

    def write(self, path: Path) -> Path:
        """Writes the file and returns its path."""
        path.write_bytes(self.to_bytes())
        return path


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: object) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value, tuple):
        kind, payload = value
        assert isinstance(kind, int) and isinstance(payload, bytes)
        return struct.pack("<I", kind) + payload
    assert isinstance(value, list)
    if value and isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_string(item) for item in value)
    return struct.pack("<IIQ", 9, 5, len(value)) + np.asarray(value, "<i4").tobytes()


def random_blocks(rng: np.random.Generator, kind: str, n: int, k: int, gain: float = 1.0) -> bytes:
    """Raw bytes of a random [n, k] matrix of type `kind` whose rows have a norm near `gain`."""
    if kind in ("F32", "F16"):
        values: np.ndarray = rng.standard_normal((n, k)) * gain / np.sqrt(k)
        return values.astype("<f4" if kind == "F32" else "<f2").tobytes()
    elements, size = BLOCKS[kind]
    if k % elements:
        raise ValueError(f"{kind} needs rows of a multiple of {elements}, not {k}")
    blocks = rng.integers(0, 256, (n * k // elements, size), dtype=np.uint8)
    scale = (
        gain / np.sqrt(k) / _SPREAD[kind] * rng.uniform(0.5, 1.5, len(blocks)) * rng.choice([1.0, -1.0], len(blocks))
    )
    at = SCALE_AT[kind]
    blocks[:, at : at + 2] = scale.astype("<f2").view(np.uint8).reshape(-1, 2)
    if kind in MINIMUM_AT:
        at = MINIMUM_AT[kind]
        blocks[:, at : at + 2] = (scale * _CENTRE[kind]).astype("<f2").view(np.uint8).reshape(-1, 2)
    return blocks.tobytes()


@dataclass(frozen=True)
class TinyShape:
    """Sizes of a tiny checkpoint. K-quants need `hidden`, `heads * head_dim` and `ffn` to be multiples of 256."""

    layers: int = 2
    hidden: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    ffn: int = 96
    context: int = 512


WIDE = TinyShape(hidden=256, heads=8, kv_heads=2, head_dim=32, ffn=512)
"""A shape every type of `LINEAR_TYPES` fits."""


def tiny_source(
    family: str = "qwen2",
    *,
    kind: str | Callable[[str], str] = "Q8_0",
    shape: TinyShape | None = None,
    seed: int = 0,
    tied: bool = False,
    biases: bool | None = None,
    rope_factors: Sequence[float] | None = None,
    metadata: Mapping[str, object] | None = None,
) -> GgufSource:
    """A random checkpoint of `family` (`qwen2` or `llama`), ready to be changed or written.

    `kind` is the type of every matrix, or a function from the tensor's name to it. `biases` on q, k, v: None follows
    the family (qwen2 has them). `tied` leaves `output.weight` out. `shape` None takes the smallest one `kind` fits.
    """
    kind_of: Callable[[str], str] = kind if callable(kind) else lambda _: str(kind)
    if shape is None:
        shape = WIDE if isinstance(kind, str) and kind.endswith("_K") else TinyShape()
    rng = np.random.default_rng(seed)
    tokens, types, merges = tiny_vocabulary()
    special = {token: tokens.index(token) for token in ("<|endoftext|>", "<|im_end|>")}
    source = GgufSource()
    source.metadata = {
        "general.architecture": family,
        "general.name": f"Tiny {family}",
        f"{family}.block_count": shape.layers,
        f"{family}.context_length": shape.context,
        f"{family}.embedding_length": shape.hidden,
        f"{family}.feed_forward_length": shape.ffn,
        f"{family}.attention.head_count": shape.heads,
        f"{family}.attention.head_count_kv": shape.kv_heads,
        f"{family}.rope.freq_base": 10000.0,
        f"{family}.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2" if family == "qwen2" else "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": special["<|im_end|>"],
        "tokenizer.ggml.bos_token_id": special["<|endoftext|>"],
        "tokenizer.ggml.padding_token_id": special["<|endoftext|>"],
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }
    if shape.heads * shape.head_dim != shape.hidden:
        source.metadata[f"{family}.attention.key_length"] = shape.head_dim
        source.metadata[f"{family}.attention.value_length"] = shape.head_dim
    source.metadata.update(metadata or {})

    def matrix(name: str, n: int, k: int, gain: float = 1.0) -> None:
        source.tensors[name] = (kind_of(name), (k, n), random_blocks(rng, kind_of(name), n, k, gain))

    def vector(name: str, values: np.ndarray) -> None:
        source.tensors[name] = ("F32", (len(values),), values.astype("<f4").tobytes())

    q_width, kv_width = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    # A gain of sqrt(hidden) gives embeddings of unit size; 3 on the head gives logits some contrast.
    matrix("token_embd.weight", len(tokens), shape.hidden, gain=float(np.sqrt(shape.hidden)))
    for layer in range(shape.layers):
        blk = f"blk.{layer}."
        vector(f"{blk}attn_norm.weight", rng.uniform(0.5, 1.5, shape.hidden))
        for part, width in (("q", q_width), ("k", kv_width), ("v", kv_width)):
            matrix(f"{blk}attn_{part}.weight", width, shape.hidden, gain=1.5)
            if biases if biases is not None else family == "qwen2":
                vector(f"{blk}attn_{part}.bias", rng.standard_normal(width) * 0.5)
        matrix(f"{blk}attn_output.weight", shape.hidden, q_width)
        vector(f"{blk}ffn_norm.weight", rng.uniform(0.5, 1.5, shape.hidden))
        matrix(f"{blk}ffn_gate.weight", shape.ffn, shape.hidden, gain=1.5)
        matrix(f"{blk}ffn_up.weight", shape.ffn, shape.hidden, gain=1.5)
        matrix(f"{blk}ffn_down.weight", shape.hidden, shape.ffn)
    vector("output_norm.weight", rng.uniform(0.5, 1.5, shape.hidden))
    if not tied:
        matrix("output.weight", len(tokens), shape.hidden, gain=3.0)
    if rope_factors is not None:
        vector("rope_freqs.weight", np.asarray(rope_factors))
    return source


def write_tiny(path: Path, family: str = "qwen2", *, kind: str = "Q8_0", seed: int = 0, tied: bool = False) -> Path:
    """Writes a random checkpoint to `path` and returns it; `tiny_source` has every other choice."""
    return tiny_source(family, kind=kind, seed=seed, tied=tied).write(path)
