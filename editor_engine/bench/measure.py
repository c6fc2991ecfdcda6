"""Spreads and ratios: what every figure of the benchmark is made of.

Knows nothing of models. Invariant: a figure keeps all its runs, so its spread can always be shown; a ratio is taken
run by run, between neighbours in time, and never between two medians, since a busy machine slows both sides alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Spread:
    """One figure, measured at least once."""

    runs: tuple[float, ...]
    """Every measurement, in the order taken."""

    @property
    def median(self) -> float:
        """Median of the runs."""
        return median(self.runs)

    @property
    def p95(self) -> float:
        """95th percentile."""
        return self.percentile(0.95)

    def percentile(self, share: float) -> float:
        """The smallest run that at least `share` of the runs, above 0 to 1, do not exceed (nearest rank)."""
        return sorted(self.runs)[math.ceil(share * len(self.runs)) - 1]

    def fields(self) -> dict[str, float | int]:
        """The figure in the machine interface; `runs` is their number."""
        return {"median": self.median, "min": min(self.runs), "max": max(self.runs), "runs": len(self.runs)}

    def words(self, digits: int = 2) -> str:
        """`median (min-max)` for people."""
        return f"{self.median:.{digits}f} ({min(self.runs):.{digits}f}-{max(self.runs):.{digits}f})"


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> Spread:
    """Run by run, the first of one side over the first of the other. Both have the same length, at least 1."""
    return Spread(tuple(a / b for a, b in zip(numerators, denominators, strict=True)))


@dataclass(frozen=True)
class Difference:
    """Where two runs that should be equal part."""

    index: int
    """First position that differs, or the length of the shorter one."""
    left: int | None
    """Token id there; None past the end."""
    right: int | None


def first_difference(left: Sequence[int], right: Sequence[int]) -> Difference | None:
    """None when both are equal."""
    for index in range(max(len(left), len(right))):
        a = left[index] if index < len(left) else None
        b = right[index] if index < len(right) else None
        if a != b:
            return Difference(index, a, b)
    return None
