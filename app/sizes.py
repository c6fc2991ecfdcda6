"""Amounts of memory as a user writes them: `6GB`, `500 MiB`, plain bytes.

Knows text and numbers only. Invariant: what is read is a whole number of bytes of at least 1, never rounded up; a unit
that could mean two things (`6G`, `6 giga`) is no unit.
"""

import re
from fractions import Fraction

WANTED = "a size such as 6GB, 500MiB or a number of bytes"

_FORM = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([a-z]*)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for unit, base in (("b", 1000), ("ib", 1024))
}
_MOST = 1 << 60
"""More than any machine has: a slip of the keyboard."""


def read_size(value: object) -> int | None:
    """Bytes of a size; None for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 < value <= _MOST else None
    found = _FORM.fullmatch(value.strip()) if isinstance(value, str) else None
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None:
        return None
    size = int(Fraction(found[1]) * unit)
    return size if 0 < size <= _MOST else None
