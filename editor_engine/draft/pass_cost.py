"""What a pass over M rows costs, in plain steps: a shipped table, corrected by the medians of real passes.

A correction is a ratio to the table, and rows that were not tried take that of their neighbours. (Each number of rows
on its own would make those look cheap that were never measured: when a table was too low, every one of them was tried
in turn.) How long a plain step takes at the moment is followed from pass to pass, so that a machine that gets busy or
idle does not look like a table that is wrong.

Knows nothing of drafting, and has no clock: seconds are handed in. Invariant: without `observe` the costs are those of
the table, so a replay gives the same figures every time. Costs decide how many rows a pass has, never what is emitted.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, log, log2
from statistics import median
from zlib import crc32

MAX_ROWS = 64
"""Most rows of one pass any table covers."""

CostSnapshot = Mapping[str, Mapping[str, Sequence[float]]]
"""Context bucket to rows of a knot to ratios to the table."""

_FLAT = ((1, 1.0), (MAX_ROWS, 1.0))
# Measured on a prototype of the kernels, 2 cores: a tile of 4 rows is nearly as cheap as 3. Kept as the dear
# curve of replays, and for instruction sets nothing was measured for.
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
# bitsandbytes on 2 processors of a kind with AMX, context 512, 0.5B: processor time over that of the one-row pass next
# to each, medians of 7 rounds beside other programs. By the clock, beside more of them, 4 to 8 and 24 to 64 rows had
# looked a fifth cheaper than they are.
_NF4 = (
    (1, 1.0),
    (2, 1.2),
    (3, 1.3),
    (4, 2.1),
    (6, 2.5),
    (8, 2.7),
    (12, 2.8),
    (16, 3.5),
    (24, 5.7),
    (32, 6.7),
    (64, 12.3),
)
# Measured with this package's kernels, 2 threads, Q4_K_M of 0.5B and 1.5B, each pass over the one-row passes next to it
# (`redraft bench plain --passes`), context 1000, geometric mean of both models, medians of 3 runs; but avxvnni at 1024,
# before attention worked in tiles, on a machine shared with others (runs spread by about a quarter).
_SHIPPED = {
    "avx2": (
        (1, 1.0),
        (2, 1.15),
        (3, 1.42),
        (4, 1.67),
        (6, 2.06),
        (8, 2.8),
        (12, 4.7),
        (16, 5.85),
        (24, 7.8),
        (32, 11.2),
        (64, 21.7),
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
        (2, 1.1),
        (3, 1.29),
        (4, 1.34),
        (6, 1.66),
        (8, 1.94),
        (12, 2.92),
        (16, 3.52),
        (24, 5.1),
        (32, 7.7),
        (64, 12.0),
    ),
    # torch on 2 processors of a kind with AMX, context 512, 0.5B, medians of 4 to 7 runs over the one-row pass next to
    # each; 6 to 10 busy programs beside it. A row by itself is what it does worst. fp4 has the kernel of nf4.
    "float32": (
        (1, 1.0),
        (2, 1.1),
        (3, 1.3),
        (4, 1.9),
        (6, 2.3),
        (8, 2.9),
        (12, 3.5),
        (16, 3.6),
        (24, 4.4),
        (32, 4.8),
        (64, 6.3),
    ),
    "bfloat16": (
        (1, 1.0),
        (2, 1.0),
        (3, 1.1),
        (4, 1.15),
        (6, 1.2),
        (8, 1.2),
        (12, 1.2),
        (16, 1.2),
        (24, 1.4),
        (32, 1.7),
        (64, 2.6),
    ),
    "nf4": _NF4,
    "fp4": _NF4,
    "int8": (
        (1, 1.0),
        (2, 1.2),
        (3, 1.2),
        (4, 1.2),
        (6, 1.25),
        (8, 1.25),
        (12, 1.3),
        (16, 1.35),
        (24, 1.8),
        (32, 2.1),
        (64, 4.4),
    ),
}

_FOLLOWS = 1 / 8
"""How far one pass moves the seconds of a plain step, on a logarithmic scale."""
_DISTURBED = 1.0
"""A pass further off than a factor of e moves them no more than one of e does."""
_KEPT = 31
"""Ratios a median is taken over, so that costs follow what changes for good."""
_TABLE_WEIGHT = 16
"""The table counts as much as so many passes: a few that were disturbed change little."""
_STALE = 200
"""Passes after which a correction that was not confirmed is forgotten: a burst of noise must not rule a length out for
good."""
_FARTHEST = 1e6
"""No pass takes so many times what the table says, or so little of it; beyond, products of ratios leave the floats."""
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
        """`knots`: (rows, cost) from 1 to MAX_ROWS rows, rising in rows, 1 plain step for the first."""
        self._knots = tuple(knots)
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
        """The table measured for a kernel variant, or for the type torch computes in, the first word of what it says of
        itself; one without a table of its own gets the dearest, `avx2()`."""
        return cls(_SHIPPED.get(isa) or _SHIPPED.get(isa.partition(" ")[0], _AVX2))

    @property
    def table_hash(self) -> str:
        """Eight hex digits that tell its table from others: corrections hold for one table only."""
        return f"{crc32(repr(self._knots).encode()):08x}"

    def costs(self, context: int) -> Sequence[float]:
        """Cost of 0 to MAX_ROWS rows with `context` tokens in the cache; index is the number of rows."""
        bucket = self._buckets.get(_bucket_of(context))
        return bucket.costs if bucket else self._table

    def step_seconds(self, context: int) -> float | None:
        """Seconds of a plain step with `context` tokens in the cache, as passes went lately; None before the first."""
        timed = {key: bucket.unit for key, bucket in self._buckets.items() if bucket.unit is not None}
        if not timed:
            return None
        key = _bucket_of(context)
        return exp(timed[min(timed, key=lambda other: abs(other - key))])

    def observe(self, rows: int, context: int, seconds: float) -> None:
        """Count one real pass of `rows` rows (others than 1 to MAX_ROWS are ignored)."""
        if 1 <= rows <= MAX_ROWS and seconds > 0.0:
            self._buckets.setdefault(_bucket_of(context), _Bucket(self._knots, self._table)).observe(rows, seconds)

    def snapshot(self) -> CostSnapshot:
        """What was learned, for JSON; only for the same table, model file, threads and contract."""
        return {
            str(key): {str(rows): list(ratios) for rows, ratios in sorted(bucket.ratios.items())}
            for key, bucket in sorted(self._buckets.items())
        }

    def restore(self, snapshot: CostSnapshot) -> None:
        """Know what `snapshot` kept, and nothing else. Raises ValueError, and changes nothing, when it is not one."""
        buckets: dict[int, _Bucket] = {}
        for key, corrections in snapshot.items():
            ratios = {int(rows): [float(ratio) for ratio in found] for rows, found in corrections.items()}
            if not ratios.keys() <= {rows for rows, _ in self._knots}:
                raise ValueError(f"the table has no such rows as {sorted(ratios)}")
            if not all(1.0 / _FARTHEST <= ratio <= _FARTHEST for found in ratios.values() for ratio in found):
                raise ValueError("a ratio is a number near 1")
            buckets[int(key)] = bucket = _Bucket(self._knots, self._table)
            bucket.restore(ratios)
        self._buckets = buckets


def _bucket_of(context: int) -> int:
    return (context // _FIRST_BUCKET).bit_length()


class _Bucket:
    """Corrections of one context bucket. A number of rows counts for the next knot of the table at or above it."""

    def __init__(self, knots: Sequence[tuple[int, float]], table: Sequence[float]) -> None:
        self.costs: Sequence[float] = table
        self.ratios: dict[int, deque[float]] = {}
        """Rows of a knot to what its passes took over what the table says."""
        self._knots = knots
        self._table = table
        self.unit: float | None = None
        """Logarithm of the seconds of a plain step, from passes of any rows; None before the first."""
        self._passes = 0
        self._used: dict[int, int] = {}  # knot -> number of the last pass that counted for it

    def observe(self, rows: int, seconds: float) -> None:
        self._passes += 1
        step = log(seconds) - log(self.costs[rows])
        if self.unit is None:
            self.unit = step
        ratio = exp(log(seconds) - log(self._table[rows]) - self.unit)
        self.unit += _FOLLOWS * max(-_DISTURBED, min(_DISTURBED, step - self.unit))
        knot = next(knot for knot, _ in self._knots if knot >= rows)
        self.ratios.setdefault(knot, deque(maxlen=_KEPT)).append(ratio)
        self._used[knot] = self._passes
        for stale in [other for other, last in self._used.items() if self._passes - last > _STALE]:
            del self._used[stale], self.ratios[stale]
        self._correct()

    def restore(self, ratios: Mapping[int, Sequence[float]]) -> None:
        self.ratios = {knot: deque(found, maxlen=_KEPT) for knot, found in ratios.items() if found}
        self._used = dict.fromkeys(self.ratios, 0)
        self._correct()

    def _correct(self) -> None:
        # The exponent moves a correction towards 1, the table's own, the fewer passes it rests on.
        known = [
            (log2(knot), median(found) ** (len(found) / (len(found) + _TABLE_WEIGHT)))
            for knot, found in sorted(self.ratios.items())
        ]
        if not known:
            self.costs = self._table
            return
        factors = [_between(known, log2(knot)) for knot, _ in self._knots]
        # A plain step costs 1 by definition, whatever correction it had.
        corrected = zip(self._knots, factors, strict=True)
        self.costs = interpolate([(rows, cost * factor / factors[0]) for (rows, cost), factor in corrected])


def _between(points: Sequence[tuple[float, float]], at: float) -> float:
    """Linear between points that rise in their first number, constant beyond the ends; at least one point."""
    for (low, low_value), (high, high_value) in pairwise(points):
        if low <= at <= high:
            return low_value + (high_value - low_value) * (at - low) / (high - low)
    return points[0][1] if at < points[0][0] else points[-1][1]
