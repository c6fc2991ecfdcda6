"""Attention: rows, variants and twin agree to the bit, whatever the number of keys."""

import numpy as np
import numpy.typing as npt
import pytest

from editor_engine import kernels
from editor_engine.kernels import _native, reference
from tests.support.kernel_cases import ROW_COUNTS, Floats

VARIANTS = kernels.variants()
Halves = npt.NDArray[np.uint16]


def problem(positions: int, *, heads: int = 4, kv_heads: int = 2, dim: int = 72) -> tuple[Floats, Halves, Halves]:
    """Queries for every position, keys and values; some scores far apart, some equal."""
    rng = np.random.default_rng(positions)
    q = rng.standard_normal((positions, heads, dim)).astype(np.float32) * 2
    keys = rng.standard_normal((kv_heads, positions, dim)).astype(np.float16)
    keys[:, ::5] = keys[:, :1]
    values = rng.standard_normal((kv_heads, positions, dim)).astype(np.float16)
    values[:, ::7] = -0.0
    q[-1] *= 40
    return q, keys.view(np.uint16), values.view(np.uint16)


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("positions", [1, 2, 7, 8, 9, 63, 64, 65, 130])
@pytest.mark.parametrize("dim", [8, 24, 64, 72, 128])
def test_the_last_row_equals_its_twin(isa: str, positions: int, dim: int) -> None:
    q, keys, values = problem(positions, dim=dim)
    made = _native.attention(q[-1:], keys, values, positions - 1, isa)
    for head in range(4):
        wide_keys = keys.view(np.float16)[head // 2].astype(np.float32)
        wide_values = values.view(np.float16)[head // 2].astype(np.float32)
        twin = reference.attention(q[-1, head], wide_keys, wide_values)
        assert made[0, head].tobytes() == twin.tobytes()


@pytest.mark.parametrize("isa", VARIANTS)
def test_a_row_of_many_equals_the_row_alone(isa: str) -> None:
    q, keys, values = problem(200)
    alone = np.concatenate([_native.attention(q[p : p + 1], keys, values, p, isa) for p in range(200)])
    scalar = _native.attention(q, keys, values, 0, "scalar")
    assert alone.tobytes() == scalar.tobytes()
    for rows in ROW_COUNTS:
        for start in (0, 3, 61, 200 - rows):
            made = _native.attention(q[start : start + rows], keys, values, start, isa)
            assert made.tobytes() == alone[start : start + rows].tobytes(), (rows, start)


@pytest.mark.parametrize("isa", VARIANTS)
def test_later_keys_change_nothing(isa: str) -> None:
    q, keys, values = problem(70)
    before = _native.attention(q[40:42], keys, values, 40, isa)
    keys[:, 42:], values[:, 42:] = 0x7BFF, 0xFBFF
    assert _native.attention(q[40:42], keys, values, 40, isa).tobytes() == before.tobytes()
