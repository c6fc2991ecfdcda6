"""The quantised linear and the quantiser: rows, variants, twin and threads agree to the bit."""

import numpy as np
import pytest

from editor_engine import kernels
from editor_engine.errors import NumericsError
from editor_engine.kernels import PACKABLE_TYPES, _native, reference
from editor_engine.kernels.reference_model import read_matrix
from tests.support.kernel_cases import ROW_COUNTS, Floats, adversarial_rows, random_matrix, random_rows

VARIANTS = kernels.variants()


def linear(kind: str, x: Floats, isa: str, *, n: int = 21, threads: int = 1, bias: Floats | None = None) -> Floats:
    packed = kernels.pack(random_matrix(kind, n, x.shape[1]))
    return _native.linear(kind, packed.data, n, x, bias, isa, threads)


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("x", [random_rows(9, 320), adversarial_rows(320)], ids=["random", "adversarial"])
def test_quantiser_equals_its_twin(isa: str, x: Floats) -> None:
    q, scale, sums = _native.quantise_rows(x, isa)
    twin = reference.quantise_rows(x)
    assert np.array_equal(q, twin.q)
    assert np.array_equal(scale.view(np.uint32), twin.scale.view(np.uint32))
    assert np.array_equal(sums, twin.q.reshape(len(x), -1, 16).sum(axis=-1))


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 31, 95])
def test_quantiser_refuses_what_is_no_number(isa: str, bad: float, at: int) -> None:
    x = random_rows(2, 96)
    x[1, at] = bad
    with pytest.raises(NumericsError, match="activations"):
        _native.quantise_rows(x, isa)


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("kind", PACKABLE_TYPES)
@pytest.mark.parametrize("x", [random_rows(5, 512), adversarial_rows(512)], ids=["random", "adversarial"])
def test_linear_equals_its_twin(isa: str, kind: str, x: Floats) -> None:
    bias = random_rows(1, 21, seed=3)[0]
    twin = reference.linear(read_matrix(random_matrix(kind, 21, 512)), reference.quantise_rows(x), bias)
    assert linear(kind, x, isa, bias=bias).tobytes() == twin.tobytes()


@pytest.mark.parametrize("kind", PACKABLE_TYPES)
def test_largest_products_do_not_overflow(kind: str) -> None:
    """Every quant of the matrix at its extreme against activations of +-127."""
    raw = random_matrix(kind, 16, 256)
    scales = {"Q4_1": 4, "Q5_1": 4, "Q4_K": 16, "Q5_K": 16, "Q6_K": 0}.get(kind, 2)
    for fill in (0x00, 0x7F, 0x80, 0xFF):
        blocks = raw.data.reshape(-1, raw.data.size // (16 * 256 // (256 if kind.endswith("_K") else 32))).copy()
        blocks[:, scales : 192 if kind == "Q6_K" else None] = fill
        matrix = kernels.RawTensor(kind, 16, 256, blocks.reshape(-1))
        packed = kernels.pack(matrix)
        for x in (np.ones((3, 256), np.float32), -np.ones((3, 256), np.float32)):
            twin = reference.linear(read_matrix(matrix), reference.quantise_rows(x), None)
            for isa in VARIANTS:
                assert _native.linear(kind, packed.data, 16, x, None, isa, 1).tobytes() == twin.tobytes(), (isa, fill)


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("kind", PACKABLE_TYPES)
def test_a_row_does_not_see_its_neighbours(isa: str, kind: str) -> None:
    x = random_rows(64, 256, seed=1)
    alone = np.concatenate([linear(kind, x[r : r + 1], isa) for r in range(64)])
    for rows in ROW_COUNTS:
        assert linear(kind, x[:rows], isa).tobytes() == alone[:rows].tobytes(), rows
        assert linear(kind, x[-rows:], isa).tobytes() == alone[-rows:].tobytes(), rows


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("kind", PACKABLE_TYPES)
def test_threads_and_repeats_change_nothing(isa: str, kind: str) -> None:
    x = random_rows(9, 256, seed=2)
    once = linear(kind, x, isa, n=200)
    for threads in (1, 2, 3):
        assert linear(kind, x, isa, n=200, threads=threads).tobytes() == once.tobytes()
