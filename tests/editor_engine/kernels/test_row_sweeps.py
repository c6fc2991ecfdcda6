"""A row of a pass is the row alone: norm, rotation, SwiGLU, quantiser, halves, argmax.

Every count of rows the exactness contract names, every position of a row in the pass, every variant, 1 and 2 threads
calling at once. `test_linear.py` and `test_attention.py` sweep the linear and attention, `test_model.py` whole passes.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from editor_engine import kernels
from editor_engine.kernels import _native
from tests.support.kernel_cases import ROW_COUNTS, Floats, adversarial_rows, random_rows

WIDTH = 96
MOST = max(ROW_COUNTS)
Operation = Callable[[Floats, int], bytes]
"""Rows and the position of the first of them -> the bytes of what comes out, the same number for each row."""


def case_rows() -> Floats:
    """2 * MOST - 1 rows: a window of MOST rows can put any of the middle one's neighbours around it."""
    extreme = adversarial_rows(WIDTH)
    extreme = extreme[np.abs(extreme).max(axis=1) < 1e15]  # squares must stay finite in the norm
    rows = random_rows(2 * MOST - 1, WIDTH, seed=11)
    rows[::16][: len(extreme)] = extreme
    return rows


def operations(isa: str) -> dict[str, Operation]:
    weight = random_rows(1, WIDTH, seed=12)[0]
    up = np.ascontiguousarray(case_rows()[::-1])
    cosines, sines = _native.rope_table(WIDTH, 1e4, None, 900, 900 + len(up))

    def norm(x: Floats, _at: int) -> bytes:
        return _native.rmsnorm(x, weight, 1e-6, isa).tobytes()

    def rotate(halves: bool) -> Operation:
        def run(x: Floats, at: int) -> bytes:
            return _native.rope(x, cosines[at : at + len(x)], sines[at : at + len(x)], halves, isa).tobytes()

        return run

    def swiglu(x: Floats, at: int) -> bytes:
        return _native.swiglu(x.reshape(-1), up[at : at + len(x)].reshape(-1), isa).tobytes()

    def halves(x: Floats, _at: int) -> bytes:
        return _native.to_half(np.clip(x, -60000, 60000).reshape(-1), isa).tobytes()

    def quantise(x: Floats, _at: int) -> bytes:
        q, scale, sums = _native.quantise_rows(x, isa)
        return b"".join(q[r].tobytes() + scale[r].tobytes() + sums[r].tobytes() for r in range(len(x)))

    def argmax(x: Floats, _at: int) -> bytes:
        return np.array([_native.argmax(row, isa) for row in x], np.int32).tobytes()

    return {
        "norm": norm,
        "rotation of halves": rotate(True),
        "rotation of pairs": rotate(False),
        "swiglu": swiglu,
        "halves": halves,
        "quantiser": quantise,
        "argmax": argmax,
    }


NAMES = tuple(operations("scalar"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("isa", kernels.variants())
@pytest.mark.parametrize("name", NAMES)
def test_a_row_of_many_is_the_row_alone_at_every_position(name: str, isa: str, threads: int) -> None:
    rows, run = case_rows(), operations(isa)[name]
    scalar = operations("scalar")[name]
    alone = [run(rows[r : r + 1], r) for r in range(len(rows))]
    assert alone == [scalar(rows[r : r + 1], r) for r in range(len(rows))]
    size = len(alone[0])
    windows = [(count, begin) for count in ROW_COUNTS for begin in range(MOST - count, MOST)]

    def compare(window: tuple[int, int]) -> bool:
        count, begin = window  # the row MOST - 1 stands at each position of the pass in turn
        made = run(rows[begin : begin + count], begin)
        parts = [made[i * size : (i + 1) * size] for i in range(count)]
        return parts == alone[begin : begin + count] and len(made) == count * size

    with ThreadPoolExecutor(threads) as pool:
        different = [window for window, same in zip(windows, pool.map(compare, windows), strict=True) if not same]
    assert different == []
