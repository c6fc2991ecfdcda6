"""The guard against "... rest of the code unchanged ...": code left out and a placeholder, or nothing, in its place.

Two signs, by structure: a new line that is only a comment or an ellipsis where three or more lines are gone, and names
that the gone lines defined and the rest still uses. Knows nothing of hunks or exit codes. Invariant: a line that the
source has is never a placeholder.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

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
        place = next((at for at in stand_ins if _left_out(source, result, run, at, comments, placeholders)), None)
        if place is not None:
            found.append(Elision(run.lines, place))
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
    place: int,
    comments: Sequence[bool],
    placeholders: Sequence[bool],
) -> bool:
    """Does the line at `place` stand for lines that no line of the result replaces.

    Rewritten lines before and after the placeholder are paired with their originals from both ends; what is left in the
    middle is what the placeholder stands for. Code outside of the placeholder's own indented scope replaces nothing in
    it, if the lost lines were all inside.
    """
    block = run.block
    code = [at for at in block.new if not placeholders[at] and has_word(result[at])]
    above, first = _pair([source[at] for at in block.old], [result[at] for at in code if at < place])
    old_below = [source[at] for at in reversed(block.old[first:])]
    below, last = _pair(old_below, [result[at] for at in reversed(code) if at > place])
    middle = [at for at in block.old[first : len(block.old) - last] if at in run.lines]
    if len(middle) < LEAST_RUN:
        return False
    weight = sum(has_word(source[at]) and not comments[at] for at in middle)
    depth = indent(result[place])
    replaced = len(code) - above - below
    if min(indent(source[at]) for at in middle) >= depth:
        scope = _scope(result, block.new, place, depth)
        replaced = min(replaced, sum(at in scope for at in code))
    return replaced * 2 < weight


def _scope(result: Sequence[str], new: Sequence[int], place: int, depth: int) -> set[int]:
    """The block's lines around `place` up to the first on either side that is indented less than `depth`."""
    inside = takewhile(lambda at: indent(result[at]) >= depth, (at for at in reversed(new) if at < place))
    below = takewhile(lambda at: indent(result[at]) >= depth, (at for at in new if at > place))
    return {*inside, *below}


def _pair(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Greedy pairing in order: number of new lines paired, and old lines used up by the last pair."""
    bags = [Counter(_TOKEN.findall(line)) for line in old]
    paired = used = 0
    for line in new:
        bag = Counter(_TOKEN.findall(line))
        ahead = range(used, min(used + _WINDOW, len(old)))
        match = next((at for at in ahead if _likeness(bag, bags[at]) >= _SIMILAR), None)
        if match is not None:
            paired, used = paired + 1, match + 1
    return paired, used


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    """Dice coefficient of two bags of words; 0 for lines without words."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0
