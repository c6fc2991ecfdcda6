"""What a pass over M rows costs, in plain steps: a shipped table, corrected by the medians of real passes.

Knows nothing of drafting, and has no clock: seconds are handed in. Invariant: without `observe` the costs are those of
the table, so a replay gives the same figures every time. Costs decide how many rows a pass has, never what is emitted.
"""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

MAX_ROWS = 64
"""Most rows of one pass any table covers."""

_FLAT = ((1, 1.0), (MAX_ROWS, 1.0))
# Measured on a prototype of the kernels, 2 cores: a tile of 4 rows is nearly as cheap as 3 (design, drafting.md).
_AVX2 = (
    (1, 1.0),
    (2, 1.58),
    (3, 2.2),
    (4, 2.33),
    (6, 3.7),
    (8, 5.0),
    (12, 7.3),
    (16, 10.2),
    (24, 15.2),
    (32, 20.5),
    (64, 40.5),
)

_KEPT = 15
"""Passes a median is taken over, so that costs follow a machine that gets busy or idle."""
_TRUSTED = 5
"""Passes before a median replaces the table."""
_FIRST_BUCKET = 512
"""Contexts below this many tokens share a bucket; each further bucket doubles it."""


def interpolate(knots: Sequence[tuple[int, float]]) -> list[float]:
    """Costs of 0 to MAX_ROWS rows, linear between (rows, cost) knots that rise from 1 to MAX_ROWS; 0 rows are free."""
    costs = [0.0]
    for (low, low_cost), (high, high_cost) in pairwise(knots):
        step = (high_cost - low_cost) / (high - low)
        costs += [low_cost + step * (rows - low) for rows in range(low, high)]
    return [*costs, knots[-1][1]]


class PassCost:
    """Costs of a pass by rows and context, in units of the table's one-row pass."""

    def __init__(self, knots: Sequence[tuple[int, float]]) -> None:
        """`knots`: (rows, cost) from 1 to MAX_ROWS rows, rising in rows."""
        self._table = interpolate(knots)
        self._buckets: dict[int, _Bucket] = {}

    @classmethod
    def flat(cls) -> "PassCost":
        """Every pass costs 1, as on a GPU that is bound by reading weights."""
        return cls(_FLAT)

    @classmethod
    def avx2(cls) -> "PassCost":
        """Two cores with AVX2: rows cost nearly as much as steps, but for a tile of four."""
        return cls(_AVX2)

    def costs(self, context: int) -> Sequence[float]:
        """Cost of 0 to MAX_ROWS rows with `context` tokens in the cache; index is the number of rows."""
        bucket = self._buckets.get(_bucket_of(context))
        return bucket.costs if bucket else self._table

    def observe(self, rows: int, context: int, seconds: float) -> None:
        """Count one real pass of `rows` rows (others than 1 to MAX_ROWS are ignored)."""
        if not 1 <= rows <= MAX_ROWS or seconds <= 0.0:
            return
        key = _bucket_of(context)
        if key not in self._buckets:
            self._buckets[key] = _Bucket(self._table)
        self._buckets[key].observe(rows, seconds)


def _bucket_of(context: int) -> int:
    return (context // _FIRST_BUCKET).bit_length()


class _Bucket:
    """Medians of one context bucket."""

    def __init__(self, table: Sequence[float]) -> None:
        self.costs = list(table)
        self._table = table
        self._seconds: dict[int, deque[float]] = {}
        self._unit: deque[float] = deque(maxlen=_KEPT)

    def observe(self, rows: int, seconds: float) -> None:
        kept = self._seconds.setdefault(rows, deque(maxlen=_KEPT))
        kept.append(seconds)
        # Seconds per plain step. Taken from every pass, since one that drafts well rarely runs a single row.
        one_row = self._seconds.get(1)
        self._unit.append(seconds / self._table[rows])
        unit = median(one_row) if one_row and len(one_row) >= _TRUSTED else median(self._unit)
        if len(kept) >= _TRUSTED:
            self.costs[rows] = median(kept) / unit
