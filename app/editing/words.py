"""Which words of a changed line differ, and which removed line an added one stands for.

Works on decoded lines; knows nothing of hunks or colours. Invariant: marks lie inside their line, ascend and do not
overlap; what is outside of them is, in order, the same text in both lines.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from app.editing.alignment import align

Marks = tuple[tuple[int, int], ...]
"""Stretches [start, end) of a line, in characters."""

_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
_LEAST_ALIKE = 0.4
"""Share of the words of two lines that have to be the same for the others to be marked; below it the line is new."""
_MOST_CHARACTERS = 2_000
"""Longer lines are compared from their two ends only."""
_MOST_PAIRS = 1_600
"""Removed times added lines of a change that are compared each with each."""


@lru_cache(maxsize=4096)
def word_marks(old: str, new: str) -> tuple[Marks, Marks] | None:
    """What differs between two lines, in each; None where they have too little in common to be one line changed."""
    if max(len(old), len(new)) > _MOST_CHARACTERS:
        return _middles(old, new)
    old_words, new_words = _WORD.findall(old), _WORD.findall(new)
    if _alike(_counted(old_words), _counted(new_words)) < _LEAST_ALIKE:
        return None
    old_marks: list[tuple[int, int]] = []
    new_marks: list[tuple[int, int]] = []
    old_at = new_at = old_char = new_char = 0
    runs = [(match.old, match.new, match.length) for match in align(old_words, new_words)]
    for old_next, new_next, length in [*runs, (len(old_words), len(new_words), 0)]:
        old_char = _marked(old_marks, old_char, old_words[old_at:old_next])
        new_char = _marked(new_marks, new_char, new_words[new_at:new_next])
        size = sum(map(len, old_words[old_next : old_next + length]))
        old_at, new_at = old_next + length, new_next + length
        old_char, new_char = old_char + size, new_char + size
    return tuple(old_marks), tuple(new_marks)


def pair_lines(removed: Sequence[str], added: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of lines that stand for each other, ascending in both; the pairs that are most alike in all."""
    if len(removed) * len(added) > _MOST_PAIRS:
        return [(at, at) for at in range(min(len(removed), len(added)))]
    old_words = [_counted(_WORD.findall(line[:_MOST_CHARACTERS])) for line in removed]
    new_words = [_counted(_WORD.findall(line[:_MOST_CHARACTERS])) for line in added]
    # best[i][j]: most that the lines from i and j on can have in common.
    best = [[0.0] * (len(added) + 1) for _ in range(len(removed) + 1)]
    likeness = [[_alike(old, new) for new in new_words] for old in old_words]
    for i in range(len(removed) - 1, -1, -1):
        for j in range(len(added) - 1, -1, -1):
            paired = likeness[i][j] + best[i + 1][j + 1] if likeness[i][j] >= _LEAST_ALIKE else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(removed) and j < len(added):
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs


def _counted(words: Sequence[str]) -> Counter[str]:
    return Counter(word for word in words if not word.isspace())


def _alike(old: Counter[str], new: Counter[str]) -> float:
    """Shared words over the words of both, 0 to 1; two lines of white space are alike."""
    total = old.total() + new.total()
    return 2 * (old & new).total() / total if total else 1.0


def _marked(marks: list[tuple[int, int]], start: int, words: Sequence[str]) -> int:
    end = start + sum(map(len, words))
    if end > start:
        marks.append((start, end))
    return end


def _middles(old: str, new: str) -> tuple[Marks, Marks] | None:
    """What is left when the common beginning and end are taken off."""
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    if head + tail < _LEAST_ALIKE * max(len(old), len(new)):
        return None
    return (
        ((head, len(old) - tail),) if head < len(old) - tail else (),
        ((head, len(new) - tail),) if head < len(new) - tail else (),
    )
