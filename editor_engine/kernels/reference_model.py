"""The slow, obvious twin of the forward pass, one token at a time, and its own reading of GGUF's blocks.

Built of reference.py alone; serves tests. Invariant: written from the contract, it shares only `fma` with the C++.
"""

import numpy as np
import numpy.typing as npt

from editor_engine.kernels import ModelShape, RawTensor
from editor_engine.kernels import reference as ref
from editor_engine.kernels.reference import F32, Bytes, Floats, Ints, QuantisedMatrix


def _half(blocks: Bytes, at: int) -> Floats:
    return blocks[:, at : at + 2].copy().view("<f2").astype(F32)


def _nibbles(packed: Bytes) -> Bytes:
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def _bits(packed: Bytes) -> Bytes:
    return np.unpackbits(packed, axis=-1, bitorder="little")


def _small(kind: str, blocks: Bytes) -> tuple[Bytes | Ints, Floats, Floats | None]:
    """Blocks of 32: quants [blocks, 32], scale and minimum [blocks, 1]."""
    minimum = -_half(blocks, 2) if kind in ("Q4_1", "Q5_1") else None
    rest = blocks[:, 2 if minimum is None else 4 :]
    if kind == "Q8_0":
        return rest.view(np.int8).astype(np.int64), _half(blocks, 0), None
    if kind in ("Q4_0", "Q4_1"):
        return _nibbles(rest), _half(blocks, 0), minimum
    return _nibbles(rest[:, 4:]) + 16 * _bits(rest[:, :4]), _half(blocks, 0), minimum


def _super(kind: str, blocks: Bytes) -> tuple[Bytes, Floats, Floats | None]:
    """Blocks of 256: quants [blocks, 256], scale [blocks, 8 or 16], minimum [blocks, 8]."""
    if kind == "Q6_K":
        low = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
        high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None]
        scale = _half(blocks, 208) * blocks[:, 192:208].view(np.int8).astype(F32)
        return (low + 16 * (high & 3)).reshape(-1, 256), scale, None
    packed = blocks[:, 4:16].astype(np.int64)
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scale = np.concatenate([first & 63, (third & 15) + (first >> 6) * 16], axis=1).astype(F32)
    minimum = np.concatenate([second & 63, (third >> 4) + (second >> 6) * 16], axis=1).astype(F32)
    quants = _nibbles(blocks[:, -128:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    if kind == "Q5_K":
        quants = quants + 16 * _bits(blocks[:, 16:48, None]).transpose(0, 2, 1)
    return quants.reshape(-1, 256), _half(blocks, 0) * scale, _half(blocks, 2) * minimum


def read_matrix(raw: RawTensor) -> QuantisedMatrix:
    """The integers and scales of a quantised matrix, from the file's bytes."""
    wide = raw.type.endswith("_K")
    blocks = raw.data.reshape(raw.n * raw.k // (256 if wide else 32), -1)
    quants, scale, minimum = _super(raw.type, blocks) if wide else _small(raw.type, blocks)
    zero = {"Q4_0": 8, "Q5_0": 16, "Q6_K": 32}.get(raw.type, 0)
    return QuantisedMatrix(
        quants.astype(np.int64).reshape(raw.n, raw.k) - zero,
        scale.reshape(raw.n, -1),
        None if minimum is None else minimum.reshape(raw.n, -1),
        16 if raw.type == "Q6_K" else 32,
    )


class ReferenceModel:
    """A llama-family model over raw tensors by their GGUF names; a tied head is `token_embd.weight` under its name."""

    def __init__(self, shape: ModelShape, tensors: dict[str, RawTensor | Floats]) -> None:
        self._shape = shape
        self._vectors = {name: t for name, t in tensors.items() if isinstance(t, np.ndarray)}
        self._matrices = {name: read_matrix(t) for name, t in tensors.items() if isinstance(t, RawTensor)}
        self._embedding = self._matrices["token_embd.weight"].values()
        self._frequencies = ref.rope_frequencies(shape.head_dim, shape.rope_base, shape.rope_factors)
        self._keys: list[list[Floats]] = [[] for _ in range(shape.layers)]
        self._values: list[list[Floats]] = [[] for _ in range(shape.layers)]

    def step(self, token: int) -> Floats:
        """Append one token; its logits [vocab]."""
        x = self._embedding[token][None, :]
        for layer in range(self._shape.layers):
            x = x + self._attention(layer, self._norm(f"blk.{layer}.attn_norm", x))
            x = x + self._feed_forward(f"blk.{layer}.", self._norm(f"blk.{layer}.ffn_norm", x))
        return np.asarray(self._linear("output", self._norm("output_norm", x))[0], dtype=F32)

    def _norm(self, name: str, x: Floats) -> Floats:
        return ref.rmsnorm(x, self._vectors[f"{name}.weight"], self._shape.rms_eps)

    def _linear(self, name: str, x: Floats) -> Floats:
        return ref.linear(self._matrices[f"{name}.weight"], ref.quantise_rows(x), self._vectors.get(f"{name}.bias"))

    def _attention(self, layer: int, x: Floats) -> Floats:
        shape, at = self._shape, f"blk.{layer}."
        q = self._linear(f"{at}attn_q", x).reshape(shape.heads, -1)
        k = self._linear(f"{at}attn_k", x).reshape(shape.kv_heads, -1)
        v = self._linear(f"{at}attn_v", x).reshape(shape.kv_heads, -1)
        tables = ref.rope_row(self._frequencies, len(self._keys[layer]))
        self._keys[layer].append(ref.to_half(ref.rope(k, *tables, shape.rope_halves)))
        self._values[layer].append(ref.to_half(v))
        keys: npt.NDArray[np.float32] = np.stack(self._keys[layer])
        values: npt.NDArray[np.float32] = np.stack(self._values[layer])
        group = shape.heads // shape.kv_heads
        rotated = ref.rope(q, *tables, shape.rope_halves)
        heads = [ref.attention(rotated[h], keys[:, h // group], values[:, h // group]) for h in range(shape.heads)]
        return self._linear(f"{at}attn_output", np.concatenate(heads)[None, :])

    def _feed_forward(self, at: str, x: Floats) -> Floats:
        inner = ref.swiglu(self._linear(f"{at}ffn_gate", x), self._linear(f"{at}ffn_up", x))
        return self._linear(f"{at}ffn_down", inner)
