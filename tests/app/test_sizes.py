"""Amounts of memory as a user writes them: what is read, what is refused, and that nothing is rounded up."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.sizes import read_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("6GB", 6 * 10**9),
        ("6 gb", 6 * 10**9),
        (" 500 MiB ", 500 << 20),
        ("1.5GB", 15 * 10**8),
        ("0.5KiB", 512),
        ("2TB", 2 * 10**12),
        ("17", 17),
        ("17B", 17),
        (17, 17),
        ("1.9999B", 1),
        ("1kB", 1000),
    ],
)
def test_what_is_read(text: object, size: int) -> None:
    assert read_size(text) == size


NO_NUMBERS = ["", "GB", "0", "0GB", "0.1B", "-6GB", "6,5GB", "1e3", "٦GB", "6" * 19, "999999999999TB"]
NO_UNITS = ["6G", "6 giga", "6GBs", "6GBps", "6  GB", "6GB\n6GB"]


@pytest.mark.parametrize("value", [*NO_NUMBERS, *NO_UNITS, 0, -1, True, 1.5, None, 1 << 61])
def test_what_is_no_size(value: object) -> None:
    assert read_size(value) is None


@settings(derandomize=True, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(0, 999),
    st.sampled_from(["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"]),
    st.sampled_from(["", " "]),
)
def test_a_size_is_the_whole_bytes_of_its_number(whole: int, part: int, unit: str, space: str) -> None:
    scale = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}.get(unit.removesuffix("B")) or 1 << {
        "Ki": 10,
        "Mi": 20,
        "Gi": 30,
    }[unit.removesuffix("B")]
    exact = Fraction(whole * 1000 + part, 1000) * scale
    assert (read_size(f"{whole}.{part:03}{space}{unit}") or 0) == exact // 1
