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
_TOKEN = re.compile(r"\w+")


@dataclass(frozen=True)
class Block:
    """A stretch of non-blank lines that differ; positions are 0-based, in their own version, ascending."""

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
    """Replaced in place by at least half as many lines; code only by code."""


def key(line: str) -> str:
    """What a line is compared by: its words and signs, without regard to white space."""
    return " ".join(line.split())


def has_word(line: str) -> bool:
    """False for lines of brackets and signs, which are everywhere and tell nothing."""
    return _WORD.search(line) is not None


def indent(line: str) -> int:
    """Columns before the first sign, tabs to the next multiple of 8."""
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())


def changed_blocks(source: Sequence[str], result: Sequence[str]) -> list[Block]:
    """Where the non-blank lines of two versions differ, in order.

    In a rewritten stretch two versions share little but closing brackets, and those pair up by chance. A block with
    nothing better than that on either side is one with its neighbours.
    """
    old = [at for at, line in enumerate(source) if line.strip()]
    new = [at for at, line in enumerate(result) if line.strip()]
    old_keys = [_align_key(source[at]) for at in old]
    counts = Counter(old_keys)
    blocks: list[Block] = []
    anchored: list[bool] = []
    old_at = new_at = 0
    firm = True
    matches = [
        (match.old, match.new, match.length) for match in align(old_keys, [_align_key(result[at]) for at in new])
    ]
    for old_end, new_end, length in [*matches, (len(old), len(new), 0)]:
        changed = old_end > old_at or new_end > new_at
        if changed:
            blocks.append(Block(tuple(old[old_at:old_end]), tuple(new[new_at:new_end])))
            anchored.append(firm)
        old_at, new_at = old_end + length, new_end + length
        shared = old_keys[old_end:old_at]
        firm = not length or any(_tells(text, counts) for text in shared) or (firm and not changed)
    return _joined(blocks, [*anchored, True])


def _align_key(line: str) -> str:
    """As `key`; brackets keep their indentation, which is all that tells one from another."""
    return key(line) if has_word(line) else line.rstrip()


def _tells(text: str, counts: Counter[str]) -> bool:
    """True for a line that is not on every second page: `}`, `else:`, `return` tell nothing."""
    words = len(_TOKEN.findall(text))
    return words > 1 or (words == 1 and counts[text] == 1)


def _joined(blocks: Sequence[Block], anchored: Sequence[bool]) -> list[Block]:
    """Join blocks over chance matches; `anchored[i]` says that a firm match precedes block i."""
    joined: list[Block] = []
    for index, block in enumerate(blocks):
        afloat = [
            bool(blocks[at].old) and not anchored[at] and not anchored[at + 1] for at in (index - 1, index) if at >= 0
        ]
        if joined and not anchored[index] and any(afloat):
            last = joined.pop()
            block = Block(last.old + block.old, last.new + block.new)
        joined.append(block)
    return joined


def lost_runs(
    source: Sequence[str],
    result: Sequence[str],
    exempt: Collection[int],
    comments: Sequence[bool],
    placeholders: Sequence[bool],
) -> list[LostRun]:
    """Every run of three or more lost lines, the rewritten ones among them.

    Args:
        source: decoded lines.
        result: decoded lines.
        exempt: 0-based source lines whose loss was asked for.
        comments: for each source line, whether it is only a comment.
        placeholders: for each result line, whether it is no code (see `placeholder_lines`).
    """
    blocks = changed_blocks(source, result)
    solid = {at: index for index, at in enumerate(at for at, line in enumerate(source) if line.strip())}
    arrived = Counter(key(result[at]) for block in blocks for at in block.new)
    runs = []
    for block in blocks:
        lost = [at for at in block.old if not _moved(source[at], arrived)]
        rewritten = _rewritten(
            [comments[at] for at in lost if has_word(source[at])],
            [placeholders[at] for at in block.new if has_word(result[at])],
        )
        for run in _consecutive([at for at in lost if at not in exempt], solid):
            if len(run) >= LEAST_RUN and any(has_word(source[at]) for at in run):
                runs.append(LostRun(tuple(run), block, rewritten))
    return runs


def _rewritten(lost: Sequence[bool], new: Sequence[bool]) -> bool:
    """Half as many lines of code as were lost, and half as many lines in all; flags are True for comments."""
    return bool(lost) and new.count(False) * 2 >= lost.count(False) and len(new) * 2 >= len(lost)


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
