"""The one primitive the reference twins borrow from the extension, against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from editor_engine.kernels.reference import fma

floats = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**60), max_value=2.0**60)


def round_to_float32(exact: Fraction) -> np.float32:
    """Nearest float32, ties to even, without passing through float64."""
    if exact == 0:
        return np.float32(0)
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** max(exponent - 23, -149)
    units = round(magnitude / quantum)  # Fraction rounds half to even
    return np.float32(float(units * quantum)) * np.float32(1 if exact > 0 else -1)


@given(a=floats, b=floats, c=floats)
@example(a=1.0 + 2.0**-23, b=1.0 - 2.0**-24, c=-1.0)
@example(a=2.0**-100, b=2.0**-100, c=1.0)
@example(a=1.0 + 2.0**-12, b=1.0 + 2.0**-12, c=2.0**-60)  # float64 would round this tie away
@settings(derandomize=True, deadline=None, max_examples=400)
def test_fma_rounds_once(a: float, b: float, c: float) -> None:
    expected = round_to_float32(Fraction(a) * Fraction(b) + Fraction(c))
    assert fma(np.float32(a), np.float32(b), np.float32(c)) == expected
