"""Norm, rotation, SwiGLU, exp, halves and argmax: variants and twin agree to the bit."""

import numpy as np
import pytest

from editor_engine import kernels
from editor_engine.errors import NumericsError, RequestError
from editor_engine.kernels import _native, reference
from tests.support.kernel_cases import Floats, adversarial_rows, random_rows

VARIANTS = kernels.variants()
CASES = [random_rows(9, 96), adversarial_rows(96)]


def same_bits(a: Floats, b: Floats) -> bool:
    return bool(np.array_equal(a.view(np.uint32), b.view(np.uint32)))


def test_every_variant_of_this_processor_passed_its_self_test() -> None:
    assert kernels.variant_notes() == []
    assert VARIANTS[-1] == "scalar"


def test_an_unknown_variant_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RequestError, match="scalar"):
        _native.exponential(np.zeros(8, np.float32), "mmx")


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("eps", [0.0, 1e-6])
def test_rmsnorm(isa: str, eps: float) -> None:
    weight = random_rows(1, 96, seed=5)[0]
    for x in CASES:
        x = x[np.abs(x).max(axis=1) < 1e15]  # squares must stay finite; the pass checks that
        x = x if eps else x[np.abs(x).max(axis=1) > 1e-15]
        assert same_bits(_native.rmsnorm(x, weight, eps, isa), reference.rmsnorm(x, weight, eps))


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("halves", [True, False])
@pytest.mark.parametrize("dim", [8, 24, 96])
def test_rope(isa: str, halves: bool, dim: int) -> None:
    cosines, sines = _native.rope_table(dim, 1e4, None, 100, 109)
    for x in CASES:
        x = np.ascontiguousarray(x[:, :dim])
        assert same_bits(_native.rope(x, cosines, sines, halves, isa), reference.rope(x, cosines, sines, halves))


@pytest.mark.parametrize("isa", VARIANTS)
def test_exponential_equals_its_twin_and_is_close_to_exp(isa: str) -> None:
    x = np.concatenate([np.linspace(-90, 89, 20011), [0.0, -0.0, 1e-45, -1e30, 1e30, -87.0, 88.0]]).astype(np.float32)
    y = _native.exponential(x, isa)
    assert same_bits(y, reference.exponential(x))
    inside = (x >= -87) & (x <= 88)
    exact = np.exp(x[inside].astype(np.float64))
    assert np.abs(y[inside] / exact - 1).max() < 2e-7
    assert (y[x < -87] == 0).all() and (y[x > 88] == y[x == 88][0]).all()


@pytest.mark.parametrize("isa", VARIANTS)
def test_exponential_keeps_nan(isa: str) -> None:
    assert np.isnan(_native.exponential(np.full(9, np.nan, np.float32), isa)).all()


@pytest.mark.parametrize("isa", VARIANTS)
def test_swiglu(isa: str) -> None:
    for x in CASES:
        gate, up = x.reshape(-1), np.ascontiguousarray(x[::-1]).reshape(-1)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            twin = reference.swiglu(gate, up)
        assert same_bits(_native.swiglu(gate, up, isa), twin)


@pytest.mark.parametrize("isa", VARIANTS)
def test_halves_round_to_nearest_even(isa: str) -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    every = every[np.isfinite(every)].astype(np.float32)
    ties = (every[:-1] + every[1:]) / 2  # exact in fp32: half-way between neighbours
    x = np.concatenate([every, ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(1e9))])
    x = x[: len(x) // 8 * 8]
    x = np.where(np.abs(x) < 65520, x, 0).astype(np.float32)
    assert np.array_equal(_native.to_half(x, isa), x.astype(np.float16).view(np.uint16))


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("bad", [65520.0, np.inf, np.nan])
def test_a_key_too_large_for_a_half_is_an_error(isa: str, bad: float) -> None:
    x = np.zeros(16, np.float32)
    x[11] = bad
    with pytest.raises(NumericsError):
        _native.to_half(x, isa)


@pytest.mark.parametrize("isa", VARIANTS)
def test_argmax_takes_the_lowest_of_equals(isa: str) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 7, 8, 9, 64, 1001):
        x = rng.integers(-3, 3, n).astype(np.float32)
        assert _native.argmax(x, isa) == reference.argmax(x)
        assert _native.argmax(np.full(n, -7, np.float32), isa) == 0
    x = np.zeros(40, np.float32)
    x[[13, 21, 29]] = 5
    assert _native.argmax(x, isa) == 13
    assert _native.argmax(np.array([-0.0, 0.0], np.float32), isa) == 0


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 5, 16])
def test_argmax_refuses_what_is_no_number(isa: str, bad: float, at: int) -> None:
    x = np.zeros(17, np.float32)
    x[at] = bad
    with pytest.raises(NumericsError, match="logits"):
        _native.argmax(x, isa)
