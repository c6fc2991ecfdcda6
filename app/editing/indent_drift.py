"""Lines of a change that are indented otherwise than the file: spaces where it has tabs, four spaces where it has two.

A line that differs in nothing else is churn and not looked at here; this is about lines that are new or changed: in a
Makefile such a line breaks the build, in Python it may. Knows nothing of languages. Invariant: where the file itself
indents in several ways, nothing is said.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.editing.alignment import align

_LEAST_SPACES = 2
"""Fewer are no indentation: comments go on with one (` * so`)."""
_OPENERS = (":", "{")
"""Ends of lines after which every style indents by one unit; after a bracket some align and some indent twice."""


@dataclass(frozen=True)
class Drift:
    """What a change's indentation is, against the file's."""

    lines: tuple[int, ...]
    """0-based, of the result; ascending, at least one."""
    words: str
    """Of the lines and of the file, as `with spaces, and the file uses tabs`."""


def indent_drift(source: Sequence[str], result: Sequence[str], passed_over: Collection[int] = ()) -> list[Drift]:
    """Lines of the result that are not the source's and are indented by other signs, or by another width, than it is.

    Args:
        passed_over: result lines, 0-based, that another check tells of.
    """
    old, new = _signs(source), _signs(result)
    kept = {match.new + step for match in align(source, result) for step in range(match.length)}
    fresh = [at for at in range(len(result)) if at not in kept and at not in passed_over]
    found = []
    for sign, other, words in (
        ("\t", " ", "with spaces, and the file uses tabs"),
        (" ", "\t", "with tabs, and the file uses spaces"),
    ):
        if set(old) - {""} == {sign} and (lines := tuple(at for at in fresh if new[at] == other)):
            found.append(Drift(lines, words))
    units = set(_units(source, old).values())
    if len(units) == 1:
        unit = units.pop()
        steps = _units(result, new)
        lines = tuple(at for at in fresh if steps.get(at, unit) != unit)
        if lines:
            widths = "/".join(map(str, sorted({steps[at] for at in lines})))
            found.append(Drift(lines, f"by {widths} spaces, and the file uses {unit}"))
    return found


def _signs(lines: Sequence[str]) -> list[str]:
    """For each line what it is indented with, a tab or a space; "" where that says nothing: continued lines, too."""
    signs, continued = [], False
    for line in lines:
        blank = len(line) - len(line.lstrip(" "))
        indented = "\t" if line.startswith("\t") else " " if blank >= _LEAST_SPACES else ""
        signs.append(indented if line.strip() and not continued else "")
        continued = line.rstrip().endswith("\\")
    return signs


def _units(lines: Sequence[str], signs: Sequence[str]) -> dict[int, int]:
    """Spaces that a line right below one that opens a block is indented by, beyond that one."""
    units: dict[int, int] = {}
    above = None
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        if above is not None and signs[at] == " " and signs[above] != "\t" and lines[above].rstrip().endswith(_OPENERS):
            deeper = _spaces(line) - _spaces(lines[above])
            if deeper >= _LEAST_SPACES:
                units[at] = deeper
        above = at
    return units


def _spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
