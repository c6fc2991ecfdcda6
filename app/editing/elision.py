"""The guard against "... rest of the code unchanged ...": code left out and a placeholder, or nothing, in its place.

Two signs, by structure: a new line that is only a comment or an ellipsis where three or more lines are gone, and names
that the gone lines defined and the rest still uses. Knows nothing of hunks or exit codes. Invariant: a line that the
source has is never a placeholder.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, islice, takewhile

from app.editing.language import Language
from app.editing.lost_lines import LEAST_RUN, LostRun, has_word, indent, key
from app.editing.names import dangling_names

_TOKEN = re.compile(r"\w+")
_SIMILAR = 0.6
_WINDOW = 40
"""Lines that a rewritten line is looked for ahead of its place."""


@dataclass(frozen=True)
class Elision:
    """Code that was left out; positions are 0-based."""

    lost: tuple[int, ...]
    """Source lines."""
    placeholder: int | None
    """The result's line in their place; None when only dangling names give it away."""
    names: tuple[str, ...] = ()
    """Defined by the lost lines, still used."""


def find_elisions(
    source: Sequence[str],
    result: Sequence[str],
    runs: Sequence[LostRun],
    comments: Sequence[bool],
    placeholders: Sequence[bool],
    language: Language,
) -> list[Elision]:
    """Every elision among the lost runs.

    Args:
        source: decoded lines.
        result: decoded lines.
        runs: of `lost_runs`; rewritten ones are looked into for a part that is not.
        comments: of `comment_lines` over the source.
        placeholders: of `placeholder_lines` over the result.
        language: the file's.
    """
    known = {key(line) for line in source}
    found = []
    for run in runs:
        stand_ins = [
            at
            for at in run.block.new
            if placeholders[at]
            and key(result[at]) not in known
            and not _heads_new_code(source, result, run, at, placeholders)
        ]
        if stand_ins and not run.rewritten:
            found.append(Elision(run.lines, stand_ins[0]))
            continue
        places = _left_out(source, result, run, stand_ins, comments, placeholders) if stand_ins else []
        if places:
            found.append(Elision(run.lines, places[0]))
    plain = [run for run in runs if not run.rewritten and not any(run.lines == one.lost for one in found)]
    lost: Collection[int] = {at for run in plain for at in run.lines}
    names = tuple(dangling_names(source, result, lost, language)) if lost else ()
    if names:
        found.append(Elision(tuple(sorted(lost)), None, names))
    return found


def _heads_new_code(
    source: Sequence[str], result: Sequence[str], run: LostRun, place: int, placeholders: Sequence[bool]
) -> bool:
    """Is the line at `place` the comment of new code right below it, at a depth where none of the lost lines were."""
    depth = indent(result[place])
    below = next((at for at in run.block.new if at > place and not placeholders[at]), None)
    if below is None or any(not line.strip() for line in result[place:below]):
        return False
    return indent(result[below]) == depth and all(indent(source[at]) > depth for at in run.lines)


def _left_out(
    source: Sequence[str],
    result: Sequence[str],
    run: LostRun,
    stand_ins: Sequence[int],
    comments: Sequence[bool],
    placeholders: Sequence[bool],
) -> list[int]:
    """Which of `stand_ins` stand for lines that no line of the result replaces.

    Rewritten lines before and after a placeholder are paired with their originals from both ends; what is left in the
    middle is what it stands for. Code outside of the placeholder's own indented scope replaces nothing in it, if the
    lost lines were all inside.
    """
    block, lost = run.block, set(run.lines)
    old = [source[at] for at in block.old]
    code = [at for at in block.new if not placeholders[at] and has_word(result[at])]
    forward = _pairings(old, [result[at] for at in code])
    backward = _pairings(old[::-1], [result[at] for at in reversed(code)])
    depths = {at: indent(source[at]) for at in block.old}
    places = []
    for place in stand_ins:
        before = bisect_left(code, place)
        above, first = forward[before]
        below, last = backward[len(code) - before]
        middle = [at for at in block.old[first : len(old) - last] if at in lost]
        if len(middle) < LEAST_RUN:
            continue
        replaced = max(len(code) - above - below, 0)
        weight = sum(has_word(source[at]) and not comments[at] for at in middle)
        if min(depths[at] for at in middle) >= indent(result[place]):
            replaced = min(replaced, _code_in_scope(result, code, block.new, place, enough=(weight + 1) // 2))
        if replaced * 2 < weight:
            places.append(place)
    return places


def _code_in_scope(result: Sequence[str], code: Sequence[int], new: Sequence[int], place: int, enough: int) -> int:
    """Lines of code around `place`, up to the first on either side that is indented less; counted to `enough` only."""
    depth = indent(result[place])
    at = bisect_left(new, place)
    above = takewhile(lambda line: indent(result[line]) >= depth, reversed(new[:at]))
    below = takewhile(lambda line: indent(result[line]) >= depth, new[at + 1 :])
    inside = (line for line in chain(below, above) if code[bisect_left(code, line) % len(code)] == line)
    return sum(1 for _ in islice(inside, enough)) if code else 0


def _pairings(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Greedy pairing in order, after each number of new lines: how many are paired, and old lines used up by them."""
    bags = [Counter(_TOKEN.findall(line)) for line in old]
    paired = used = 0
    states = [(0, 0)]
    for line in new:
        bag = Counter(_TOKEN.findall(line))
        ahead = range(used, min(used + _WINDOW, len(old)))
        match = next((at for at in ahead if _likeness(bag, bags[at]) >= _SIMILAR), None)
        if match is not None:
            paired, used = paired + 1, match + 1
        states.append((paired, used))
    return states


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    """Dice coefficient of two bags of words; 0 for lines without words."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0
