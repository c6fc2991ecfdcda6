"""The slow, obvious twin of every operation, in numpy, written from the contract (NOTES.md) and not from the C++.

Serves tests, which compare with `==`. It uses one thing of the extension: `fma`, a multiply-add with one rounding,
which numpy lacks and which float64 cannot imitate (its result, rounded twice, is wrong in rare ties); tests hold it to
exact rational arithmetic. Everything else is numpy float32, where each operation rounds on its own.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from editor_engine.kernels import _native

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

BLOCK = 32
LANES = 8
F32 = np.float32


def fma(a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> Floats:
    """a * b + c with one rounding; arrays of any shapes that broadcast."""
    x, y, z = np.broadcast_arrays(np.asarray(a, F32), np.asarray(b, F32), np.asarray(c, F32))
    flat = [np.ascontiguousarray(part).reshape(-1) for part in (x, y, z)]
    return _native.fma(*flat).reshape(x.shape)


def combine_lanes(lanes: Floats) -> Floats:
    """[..., 8] -> [...]: the fixed tree."""
    return np.asarray(
        ((lanes[..., 0] + lanes[..., 4]) + (lanes[..., 2] + lanes[..., 6]))
        + ((lanes[..., 1] + lanes[..., 5]) + (lanes[..., 3] + lanes[..., 7])),
        dtype=F32,
    )


def dot(a: Floats, b: Floats) -> Floats:
    """[..., n] x [..., n] -> [...]: lane i mod 8 takes the products in ascending order."""
    a, b = np.broadcast_arrays(a, b)
    lanes = np.zeros((*a.shape[:-1], LANES), F32)
    for start in range(0, a.shape[-1], LANES):
        lanes = fma(a[..., start : start + LANES], b[..., start : start + LANES], lanes)
    return combine_lanes(lanes)


def exponential(x: Floats) -> Floats:
    """exp: x = n ln2 + r, degree-7 polynomial in r, times 2^n; 0 below -87, exp(88) above 88."""
    top = np.minimum(x, F32(88))
    magic = F32(12582912)
    n = fma(top, F32(1.44269502), magic) - magic
    r = fma(n, F32(-1.42860677e-06), fma(n, F32(-0.693145752), top))
    p = np.full_like(x, F32(1 / 5040))
    for coefficient in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0):
        p = fma(p, r, F32(coefficient))
    # where x is far below -87 the power leaves the range of floats; those results are replaced by 0
    power = np.ldexp(F32(1), np.maximum(n, F32(-126)).astype(np.int32))
    return np.asarray(np.where(x < F32(-87), F32(0), p * power), dtype=F32)


def swiglu(gate: Floats, up: Floats) -> Floats:
    """silu(gate) * up, element by element."""
    silu = gate / (F32(1) + exponential(-gate))
    return np.asarray(silu * up, dtype=F32)


def rmsnorm(x: Floats, weight: Floats, eps: float) -> Floats:
    """[rows, n] -> [rows, n]."""
    mean = dot(x, x) / F32(x.shape[-1])
    r = F32(1) / np.sqrt(mean + F32(eps))
    return np.asarray((x * r[:, None]) * weight, dtype=F32)


def rope(x: Floats, cosines: Floats, sines: Floats, halves: bool) -> Floats:
    """[..., head_dim] rotated by tables [..., head_dim / 2]."""
    half = x.shape[-1] // 2
    a, b = (x[..., :half], x[..., half:]) if halves else (x[..., 0::2], x[..., 1::2])
    low, high = fma(a, cosines, -(b * sines)), fma(a, sines, b * cosines)
    out = np.empty_like(x)
    if halves:
        out[..., :half], out[..., half:] = low, high
    else:
        out[..., 0::2], out[..., 1::2] = low, high
    return out


@dataclass(frozen=True)
class QuantisedRows:
    """Rows of activations as 8-bit integers."""

    q: Ints
    """[rows, k], -127 to 127."""
    scale: Floats
    """[rows, k / 32]."""


def quantise_rows(x: Floats) -> QuantisedRows:
    """[rows, k], k in whole blocks: a scale per row and block."""
    blocks = x.reshape(x.shape[0], -1, BLOCK)
    scale = np.abs(blocks).max(axis=-1) / F32(127)
    safe = np.where(scale > 0, scale, F32(1))
    q = np.clip(np.rint(blocks / safe[..., None]), -127, 127)
    q = np.where(scale[..., None] > 0, q, 0)
    return QuantisedRows(q.reshape(x.shape).astype(np.int64), scale.astype(F32))


@dataclass(frozen=True)
class QuantisedMatrix:
    """A matrix as the file holds it: integers and scales."""

    q: Ints
    """[n, k], zero point subtracted."""
    scale: Floats
    """[n, k / term], effective (block scale times sub-scale, exact in fp32)."""
    minimum: Floats | None
    """[n, k / 32], subtracted after scaling; None for types without. Only with terms of 32."""
    term: int
    """Inputs of one term of the sum: 16 for Q6_K, else 32."""

    def values(self) -> Floats:
        """[n, k] as GGUF defines them."""
        scaled = self.q.astype(F32) * np.repeat(self.scale, self.term, axis=1)
        return scaled if self.minimum is None else scaled - np.repeat(self.minimum, BLOCK, axis=1)


def linear(matrix: QuantisedMatrix, x: QuantisedRows, bias: Floats | None) -> Floats:
    """[rows, k] -> [rows, n]: exact integers inside a term, one fp32 accumulator across terms, k ascending."""
    acc = np.zeros((x.q.shape[0], matrix.q.shape[0]), F32)
    for index, start in enumerate(range(0, x.q.shape[1], matrix.term)):
        q = x.q[:, start : start + matrix.term]
        product = (q @ matrix.q[:, start : start + matrix.term].T).astype(F32)
        sw = matrix.scale[None, :, index]
        sa = x.scale[:, start // BLOCK, None]
        if matrix.minimum is None:
            acc = fma(sw * sa, product, acc)
        else:
            total = q.sum(axis=1).astype(F32)[:, None]
            acc = fma(sa, fma(sw, product, -(matrix.minimum[None, :, index] * total)), acc)
    return acc if bias is None else acc + bias


def attention(q: Floats, keys: Floats, values: Floats) -> Floats:
    """One query [dim] over keys and values [seen, dim] -> [dim]."""
    scores = dot(q[None, :], keys) * (F32(1) / np.sqrt(F32(len(q))))
    terms = exponential(scores - scores.max())
    lanes = np.zeros(LANES, F32)
    for j, term in enumerate(terms):
        lanes[j % LANES] = lanes[j % LANES] + term
    out = np.zeros(len(q), F32)
    for term, value in zip(terms, values, strict=True):
        out = fma(term, value, out)
    return np.asarray(out / combine_lanes(lanes), dtype=F32)


def argmax(x: Floats) -> int:
    """The lowest index of the largest value."""
    return int(np.argmax(x))


def to_half(x: Floats) -> Floats:
    """Rounded to half precision, as float32."""
    return x.astype(np.float16).astype(F32)


# --- positions: double arithmetic of + - * / alone, as rope_table.cpp ---

LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fefa38p-1"), float.fromhex("0x1.ef35793c7673p-45")
HALF_PI = tuple(float.fromhex(part) for part in ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69"))


def _nearest(x: float) -> int:
    return int(x - 0.5 if x < 0 else x + 0.5)


def _log(x: float) -> float:
    fraction, exponent = math.frexp(x)
    fraction, exponent = fraction * 2, exponent - 1
    t = (fraction - 1.0) / (fraction + 1.0)
    total = 0.0
    for n in range(41, 0, -2):
        total = total * (t * t) + 1.0 / n
    return exponent * LN2_HIGH + (exponent * LN2_LOW + 2.0 * t * total)


def _exp(x: float) -> float:
    n = _nearest(x / (LN2_HIGH + LN2_LOW))
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    total = 1.0
    for k in range(18, 0, -1):
        total = 1.0 + total * r / k
    return total * math.ldexp(1.0, n)


def _series(square: float, first: int) -> float:
    total = 1.0
    for k in range(first, 0, -2):
        total = 1.0 - total * square / (k * (k + 1))
    return total


def rope_frequencies(head_dim: int, base: float, factors: Floats | None) -> list[float]:
    """Radians per position of each of the head_dim / 2 pairs; `factors` divide them."""
    log_base = _log(base)
    frequencies = [_exp(-((2 * i / head_dim) * log_base)) for i in range(head_dim // 2)]
    return frequencies if factors is None else [f / float(d) for f, d in zip(frequencies, factors, strict=True)]


def rope_row(frequencies: list[float], position: int) -> tuple[Floats, Floats]:
    """Cosines and sines of one position."""
    cosines, sines = [], []
    for frequency in frequencies:
        angle = position * frequency
        n = _nearest(angle / (HALF_PI[0] + HALF_PI[1]))
        r = ((angle - n * HALF_PI[0]) - n * HALF_PI[1]) - n * HALF_PI[2]
        c, s = _series(r * r, 21), r * _series(r * r, 20)
        cosines.append((c, -s, -c, s)[n % 4])
        sines.append((s, c, -s, -c)[n % 4])
    return np.array(cosines, F32), np.array(sines, F32)
