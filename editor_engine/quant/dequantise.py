"""GGUF blocks to floats, in numpy: the slow, obvious reading that the packed layout and the twins are checked against.

Knows nothing of the packed layout and shares no code with the kernels. Invariant: the value of every weight is the one
ggml defines, in fp32, bit for bit: the same factors in the same order, one rounding each.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def _half(blocks: Bytes, at: int) -> Floats:
    """The fp16 at byte `at` of each block, as a column."""
    return blocks[:, at : at + 2].copy().view("<f2").astype(np.float32)


def _nibbles(packed: Bytes) -> Bytes:
    """Low nibbles of all bytes, then high nibbles."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def _fifth_bits(blocks: Bytes, at: int) -> Bytes:
    """Bit i of the 32-bit word at byte `at`, shifted to be bit 4 of quant i."""
    return np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little") << np.uint8(4)


def _q4_0(blocks: Bytes) -> Floats:
    return _half(blocks, 0) * (_nibbles(blocks[:, 2:]).astype(np.float32) - np.float32(8))


def _q4_1(blocks: Bytes) -> Floats:
    return _half(blocks, 0) * _nibbles(blocks[:, 4:]).astype(np.float32) + _half(blocks, 2)


def _q5_0(blocks: Bytes) -> Floats:
    quants = _nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2)
    return _half(blocks, 0) * (quants.astype(np.float32) - np.float32(16))


def _q5_1(blocks: Bytes) -> Floats:
    quants = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4)
    return _half(blocks, 0) * quants.astype(np.float32) + _half(blocks, 2)


def _q8_0(blocks: Bytes) -> Floats:
    return _half(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32)


def _six_bit_scales(blocks: Bytes) -> tuple[Floats, Floats]:
    """Sub-scales and sub-minima of a K-block, 8 each, from the 12 bytes at 4."""
    low, mid, top = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = np.concatenate([low & 63, (top & 15) | (low >> 6 << 4)], axis=1)
    minima = np.concatenate([mid & 63, (top >> 4) | (mid >> 6 << 4)], axis=1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _with_sub_scales(blocks: Bytes, quants: Bytes) -> Floats:
    """`quants` [blocks, 8, 32] with the scales and minima of Q4_K and Q5_K."""
    scales, minima = _six_bit_scales(blocks)
    scale = (_half(blocks, 0) * scales)[:, :, None]
    minimum = (_half(blocks, 2) * minima)[:, :, None]
    return (scale * quants.astype(np.float32) - minimum).reshape(len(blocks), 256)


def _q4_k(blocks: Bytes) -> Floats:
    pairs = blocks[:, 16:].reshape(-1, 4, 1, 32)  # low nibbles are one sub-block, high nibbles the next
    return _with_sub_scales(blocks, np.concatenate([pairs & 15, pairs >> 4], axis=2).reshape(-1, 8, 32))


def _q5_k(blocks: Bytes) -> Floats:
    pairs = blocks[:, 48:].reshape(-1, 4, 1, 32)
    low = np.concatenate([pairs & 15, pairs >> 4], axis=2).reshape(-1, 8, 32)
    bit = np.arange(8, dtype=np.uint8)[None, :, None]  # bit s of byte i belongs to weight i of sub-block s
    high = (blocks[:, None, 16:48] >> bit) & 1
    return _with_sub_scales(blocks, low | high << 4)


def _q6_k(blocks: Bytes) -> Floats:
    # Two halves of 128 weights; each has 64 bytes of low nibbles and 32 bytes of 2-bit highs.
    low = blocks[:, :128].reshape(-1, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    shift = np.array([0, 2, 4, 6], np.uint8)[None, None, :, None]
    high = (blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shift) & 3
    quants = (low | high << 4).astype(np.float32) - np.float32(32)
    scales = _half(blocks, 208) * blocks[:, 192:208].view(np.int8).astype(np.float32)
    return (scales[:, :, None] * quants.reshape(-1, 16, 16)).reshape(len(blocks), 256)


_READERS: dict[str, tuple[int, Callable[[Bytes], Floats]]] = {
    "F32": (4, lambda blocks: blocks.copy().view("<f4")),
    "F16": (2, lambda blocks: blocks.copy().view("<f2").astype(np.float32)),
    "Q4_0": (18, _q4_0),
    "Q4_1": (20, _q4_1),
    "Q5_0": (22, _q5_0),
    "Q5_1": (24, _q5_1),
    "Q8_0": (34, _q8_0),
    "Q4_K": (144, _q4_k),
    "Q5_K": (176, _q5_k),
    "Q6_K": (210, _q6_k),
}


def dequantise(type_name: str, raw: Bytes, shape: tuple[int, ...]) -> Floats:
    """The weights of a tensor, float32 of `shape` (numpy order).

    `raw` are its bytes as stored. Raises KeyError on a type it does not know and ValueError on a wrong number of bytes.
    """
    size, read = _READERS[type_name]
    return read(raw.reshape(-1, size)).reshape(shape)
