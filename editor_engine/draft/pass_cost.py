"""What a pass over M rows costs, in plain steps: a shipped table, corrected by the medians of real passes.

Knows nothing of drafting, and has no clock: seconds are handed in. Invariant: without `observe` the costs are those of
the table, so a replay gives the same figures every time. Costs decide how many rows a pass has, never what is emitted.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

MAX_ROWS = 64
"""Most rows of one pass any table covers."""

_FLAT = ((1, 1.0), (MAX_ROWS, 1.0))
# Measured on a prototype of the kernels, 2 cores: a tile of 4 rows is nearly as cheap as 3 (design, drafting.md). Kept
# as the dear curve of replays, and for instruction sets nothing was measured for.
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
# Measured with this package's kernels: 2 threads, context 1024, Q4_K_M of 0.5B and 1.5B, medians of 4 to 5 runs, each
# over the one-row pass next to it, on a machine shared with others (runs spread by about a quarter).
_SHIPPED = {
    "avx2": (
        (1, 1.0),
        (2, 1.13),
        (3, 1.36),
        (4, 1.6),
        (6, 2.2),
        (8, 2.7),
        (12, 4.1),
        (16, 5.4),
        (24, 7.7),
        (32, 10.6),
        (64, 22.8),
    ),
    "avxvnni": (
        (1, 1.0),
        (2, 1.08),
        (3, 1.15),
        (4, 1.45),
        (6, 1.8),
        (8, 2.2),
        (12, 3.1),
        (16, 4.2),
        (24, 5.9),
        (32, 8.1),
        (64, 15.5),
    ),
    "avx512vnni": (
        (1, 1.0),
        (2, 1.17),
        (3, 1.28),
        (4, 1.38),
        (6, 1.9),
        (8, 2.4),
        (12, 3.5),
        (16, 4.5),
        (24, 6.8),
        (32, 9.3),
        (64, 19.5),
    ),
}

_KEPT = 15
"""Passes a median is taken over, so that costs follow a machine that gets busy or idle."""
_TRUSTED = 5
"""Passes before a median replaces the table."""
_STALE = 200
"""Passes after which a number of rows that was not used again goes back to the table: a burst of noise must not rule it
out for good."""
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
        """Two cores with AVX2 as the replay has it: rows cost nearly as much as steps, but for a tile of four."""
        return cls(_AVX2)

    @classmethod
    def shipped(cls, isa: str) -> "PassCost":
        """The table measured for a kernel variant; one without a table of its own gets the dearest, `avx2()`."""
        return cls(_SHIPPED.get(isa, _AVX2))

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

    def snapshot(self) -> dict[str, dict[str, list[float]]]:
        """Passes seen, for JSON: context bucket to rows to seconds. Only for the same file, threads and contract."""
        return {
            str(key): {str(rows): list(seconds) for rows, seconds in bucket.seconds.items()}
            for key, bucket in sorted(self._buckets.items())
        }

    def restore(self, snapshot: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
        """Take up what `snapshot` kept. Raises ValueError when it is not such a snapshot."""
        for key, passes in snapshot.items():
            bucket = self._buckets.setdefault(int(key), _Bucket(self._table))
            for rows, seconds in sorted(passes.items(), key=lambda item: int(item[0])):  # one row first: the unit
                if not 1 <= int(rows) <= MAX_ROWS:
                    raise ValueError(f"no pass has {rows} rows")
                for one in seconds:
                    bucket.observe(int(rows), float(one))


def _bucket_of(context: int) -> int:
    return (context // _FIRST_BUCKET).bit_length()


class _Bucket:
    """Medians of one context bucket."""

    def __init__(self, table: Sequence[float]) -> None:
        self.costs = list(table)
        self.seconds: dict[int, deque[float]] = {}
        self._table = table
        self._unit: deque[float] = deque(maxlen=_KEPT)
        self._passes = 0
        self._used: dict[int, int] = {}  # rows -> number of the last pass that had them

    def observe(self, rows: int, seconds: float) -> None:
        self._passes += 1
        self._used[rows] = self._passes
        for stale in [other for other, last in self._used.items() if self._passes - last > _STALE]:
            del self._used[stale], self.seconds[stale]
            self.costs[stale] = self._table[stale]
        kept = self.seconds.setdefault(rows, deque(maxlen=_KEPT))
        kept.append(seconds)
        # Seconds per plain step. Taken from every pass, since one that drafts well rarely runs a single row.
        self._unit.append(seconds / self._table[rows])
        one_row = self.seconds.get(1, ())
        unit = median(one_row) if len(one_row) >= _TRUSTED else median(self._unit)
        if len(kept) >= _TRUSTED:
            self.costs[rows] = median(kept) / unit
