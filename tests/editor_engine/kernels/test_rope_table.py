"""The table of cosines and sines: the same bits everywhere, and right."""

import hashlib

import mpmath
import numpy as np

from editor_engine.kernels import _native, reference

HASH = "a4d3ae96f33b1eebd2987ecf95555a30ce5433d95278e979a1c27bf8f36eeb18"


def test_hash_of_the_table_of_both_families() -> None:
    digest = hashlib.sha256()
    for head_dim, base in ((64, 1e6), (128, 1e6), (64, 1e5)):
        for part in _native.rope_table(head_dim, base, None, 0, 4096):
            digest.update(part.tobytes())
    assert digest.hexdigest() == HASH


def test_table_equals_its_twin_with_and_without_factors() -> None:
    for factors in (None, np.linspace(1, 32, 32, dtype=np.float32)):
        cosines, sines = _native.rope_table(64, 5e5, factors, 30000, 30040)
        frequencies = reference.rope_frequencies(64, 5e5, factors)
        for row, position in enumerate(range(30000, 30040)):
            twin = reference.rope_row(frequencies, position)
            assert np.array_equal(cosines[row], twin[0]) and np.array_equal(sines[row], twin[1])


def test_table_may_be_filled_in_pieces() -> None:
    whole = _native.rope_table(64, 1e6, None, 0, 512)
    for part in range(2):
        pieces = [_native.rope_table(64, 1e6, None, at, at + 128)[part] for at in range(0, 512, 128)]
        assert np.array_equal(np.concatenate(pieces), whole[part])


def test_table_is_within_an_ulp_of_the_truth() -> None:
    mpmath.mp.dps = 40
    for position in (0, 1, 77, 4095, 32767):
        cosines, sines = _native.rope_table(128, 1e6, None, position, position + 1)
        for i in range(64):
            angle = position * mpmath.mpf(10) ** (mpmath.mpf(-12 * i) / 128)
            for made, exact in ((cosines[0, i], mpmath.cos(angle)), (sines[0, i], mpmath.sin(angle))):
                assert abs(made - exact) <= np.spacing(np.abs(made))
