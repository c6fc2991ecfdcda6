"""Lines of the source that a result lost: absent, not moved, not asked for, not rewritten.

Works on decoded lines; white space does not count, so a re-indented file loses nothing. Knows nothing of placeholders'
meaning beyond the flags it is given. Invariant: a result with every non-blank source line in it, in any order, has no
lost run.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from app.editing.alignment import align

LEAST_RUN = 3
"""Fewer lines are an edit, not a loss."""

_WORD = re.compile(r"\w")


@dataclass(frozen=True)
class Block:
    """A stretch of non-blank lines that differs; positions are 0-based, in their own version, ascending."""

    old: tuple[int, ...]
    new: tuple[int, ...]


@dataclass(frozen=True)
class LostRun:
    """Source lines that are gone."""

    lines: tuple[int, ...]
    """0-based non-blank source lines, at least three, no solid line of the source between them."""
    block: Block
    """The difference they are part of."""
    rewritten: bool
    """Replaced in place by at least half as many lines of code."""


def key(line: str) -> str:
    """What a line is compared by: its words and signs, without regard to white space."""
    return " ".join(line.split())


def has_word(line: str) -> bool:
    """False for lines of brackets and signs, which are everywhere and tell nothing."""
    return _WORD.search(line) is not None


def changed_blocks(source: Sequence[str], result: Sequence[str]) -> list[Block]:
    """Where the non-blank lines of two versions differ, in order."""
    old = [at for at, line in enumerate(source) if line.strip()]
    new = [at for at, line in enumerate(result) if line.strip()]
    matches = align([key(source[at]) for at in old], [key(result[at]) for at in new])
    blocks = []
    old_at = new_at = 0
    ends = [(match.old, match.new, match.length) for match in matches]
    for old_end, new_end, length in [*ends, (len(old), len(new), 0)]:
        if old_end > old_at or new_end > new_at:
            blocks.append(Block(tuple(old[old_at:old_end]), tuple(new[new_at:new_end])))
        old_at, new_at = old_end + length, new_end + length
    return blocks


def lost_runs(
    source: Sequence[str],
    result: Sequence[str],
    exempt: Collection[int],
    placeholders: Sequence[bool],
) -> list[LostRun]:
    """Every run of three or more lost lines, the rewritten ones among them.

    Args:
        source: decoded lines.
        result: decoded lines.
        exempt: 0-based source lines whose loss was asked for.
        placeholders: for each result line, whether it is no code (see `placeholder_lines`).
    """
    blocks = changed_blocks(source, result)
    arrived = Counter(key(result[at]) for block in blocks for at in block.new)
    runs = []
    for block in blocks:
        lost = [at for at in block.old if not _moved(source[at], arrived)]
        code = sum(has_word(result[at]) and not placeholders[at] for at in block.new)
        weight = sum(has_word(source[at]) for at in lost)
        rewritten = weight > 0 and code * 2 >= weight
        solid = {at: index for index, at in enumerate(block.old)}
        for run in _consecutive([at for at in lost if at not in exempt], solid):
            if len(run) >= LEAST_RUN and any(has_word(source[at]) for at in run):
                runs.append(LostRun(tuple(run), block, rewritten))
    return runs


def _moved(line: str, arrived: Counter[str]) -> bool:
    text = key(line)
    if not arrived[text] or not has_word(text):
        return False
    arrived[text] -= 1
    return True


def _consecutive(positions: Sequence[int], index: dict[int, int]) -> Iterator[list[int]]:
    """Split where a solid line lies between two positions."""
    run: list[int] = []
    for at in positions:
        if run and index[at] != index[run[-1]] + 1:
            yield run
            run = []
        run.append(at)
    if run:
        yield run
