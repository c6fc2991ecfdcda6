"""Changes of white space alone: trailing blanks, indentation style, blank lines.

Knows nothing of other checks. Invariant: indentation that changes depth beside a real change of the same block is no
churn: code that moves into an `if` has to.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.editing.alignment import align


@dataclass(frozen=True)
class Churn:
    """One source line whose change says nothing."""

    source: int
    """0-based."""
    result: int
    """0-based; for a blank line that was dropped, the result line that follows its place."""


def churned_lines(source: Sequence[str], result: Sequence[str]) -> list[Churn]:
    """Source lines that differ in white space only, in order. Added blank lines are charged to the line before them."""
    churn: list[Churn] = []
    old_at = new_at = 0
    ends = [(match.old, match.new, match.length) for match in align(source, result)]
    for old_end, new_end, length in [*ends, (len(source), len(result), 0)]:
        churn += _of_block(source, result, range(old_at, old_end), range(new_at, new_end))
        old_at, new_at = old_end + length, new_end + length
    return churn


def _of_block(source: Sequence[str], result: Sequence[str], old: range, new: range) -> list[Churn]:
    old_solid = [at for at in old if source[at].strip()]
    new_solid = [at for at in new if result[at].strip()]
    matches = align([_bare(source[at]) for at in old_solid], [_bare(result[at]) for at in new_solid])
    pairs = [
        (old_solid[match.old + step], new_solid[match.new + step]) for match in matches for step in range(match.length)
    ]
    whole = len(pairs) == len(old_solid) == len(new_solid)
    churn = [Churn(a, b) for a, b in pairs if source[a] != result[b] and (whole or not _deeper(source[a], result[b]))]
    if not old_solid and not new_solid and len(old) != len(new):
        churn += [Churn(at, new.start) for at in old] or [Churn(max(old.start - 1, 0), new.start)]
    return churn


def _bare(line: str) -> str:
    return "".join(line.split())


def _deeper(old: str, new: str) -> bool:
    """Same line at another depth in the same style of indentation."""
    a, b = old[: len(old) - len(old.lstrip())], new[: len(new) - len(new.lstrip())]
    return a != b and old.strip() == new.strip() and (a.startswith(b) or b.startswith(a))
