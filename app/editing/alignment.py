"""Which lines of two versions are the same line: patience anchors, then a bounded shortest-edit search between them.

Knows nothing of files, encodings or hunks; works on any hashable items. Invariant: matches ascend in both versions,
never overlap, and pair equal items only; the time is bounded by (len(old) + len(new)) * _MOST_EDITS for any input.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_MOST_EDITS = 256
"""Edits that one shortest-edit search may explore before it settles for the furthest path found."""


@dataclass(frozen=True)
class Match:
    """A run of equal items; positions are 0-based."""

    old: int
    new: int
    length: int
    """At least 1."""


def align(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Match]:
    """Maximal runs that both versions share, in order. Lines that occur once in both anchor the search.

    Patience diff after Bram Cohen; between anchors E. W. Myers, "An O(ND) difference algorithm" (1986).
    """
    pairs: list[tuple[int, int]] = []
    todo = [(0, len(old), 0, len(new))]
    while todo:
        old_first, old_end, new_first, new_end = todo.pop()
        while old_first < old_end and new_first < new_end and old[old_first] == new[new_first]:
            pairs.append((old_first, new_first))
            old_first, new_first = old_first + 1, new_first + 1
        while old_first < old_end and new_first < new_end and old[old_end - 1] == new[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
            pairs.append((old_end, new_end))
        if old_first == old_end or new_first == new_end:
            continue
        anchors = _unique_anchors(old, new, old_first, old_end, new_first, new_end)
        if not anchors:
            pairs += _shortest_edit(old, new, old_first, old_end, new_first, new_end)
            continue
        for old_at, new_at in anchors:
            pairs.append((old_at, new_at))
            todo.append((old_first, old_at, new_first, new_at))
            old_first, new_first = old_at + 1, new_at + 1
        todo.append((old_first, old_end, new_first, new_end))
    return _runs(sorted(pairs))


def tidy(matches: list[Match], old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """Slide pure insertions and deletions to where a reader would put them, keeping what is changed the same in number.

    A block that may sit at several places (the lines before it repeat at its end) goes where its first line is indented
    least, then after a blank line, then furthest down.
    """
    slid = list(matches)
    for index in range(len(slid) - 1):
        before, after = slid[index], slid[index + 1]
        old_gap = after.old - (before.old + before.length)
        new_gap = after.new - (before.new + before.length)
        if old_gap and new_gap:
            continue
        lines, start, size = (
            (new, before.new + before.length, new_gap) if new_gap else (old, before.old + before.length, old_gap)
        )
        # One line of each neighbour stays, so that no two changes grow together.
        shift = _best_shift(lines, start, size, before.length - 1, after.length - 1)
        slid[index] = Match(before.old, before.new, before.length + shift)
        slid[index + 1] = Match(after.old + shift, after.new + shift, after.length - shift)
    return slid


def _best_shift(lines: Sequence[str], start: int, size: int, most_up: int, most_down: int) -> int:
    shifts = [0]
    for shift in range(1, most_up + 1):
        if lines[start - shift] != lines[start + size - shift]:
            break
        shifts.append(-shift)
    for shift in range(most_down):
        if lines[start + shift] != lines[start + size + shift]:
            break
        shifts.append(shift + 1)

    def cost(shift: int) -> tuple[int, bool, int]:
        at = start + shift
        filled = next((line for line in lines[at : at + size] if line.strip()), "")
        after_blank = at == 0 or not lines[at - 1].strip()
        return len(filled) - len(filled.lstrip()), not after_blank, -shift

    return min(shifts, key=cost)


def _unique_anchors(
    old: Sequence[Hashable], new: Sequence[Hashable], old_first: int, old_end: int, new_first: int, new_end: int
) -> list[tuple[int, int]]:
    """The longest ascending chain of items that occur exactly once on both sides."""
    old_counts = Counter(old[old_first:old_end])
    new_counts = Counter(new[new_first:new_end])
    new_places = {new[at]: at for at in range(new_first, new_end) if new_counts[new[at]] == 1}
    candidates = [
        (at, new_places[old[at]])
        for at in range(old_first, old_end)
        if old_counts[old[at]] == 1 and old[at] in new_places
    ]
    # Longest increasing subsequence of the new places by patience sorting.
    tops: list[int] = []
    piles: list[int] = []
    previous: list[int] = []
    for index, (_, place) in enumerate(candidates):
        pile = bisect_left(tops, place)
        previous.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(place)
            piles.append(index)
        else:
            tops[pile], piles[pile] = place, index
    chain: list[tuple[int, int]] = []
    at = piles[-1] if piles else -1
    while at >= 0:
        chain.append(candidates[at])
        at = previous[at]
    return chain[::-1]


def _shortest_edit(
    old: Sequence[Hashable], new: Sequence[Hashable], old_first: int, old_end: int, new_first: int, new_end: int
) -> list[tuple[int, int]]:
    """Pairs of a shortest edit script; beyond _MOST_EDITS edits, of a good one, piece by piece."""
    # Items of one side only can never match; leaving them out keeps rewritten blocks cheap.
    shared = set(old[old_first:old_end]) & set(new[new_first:new_end])
    left = [at for at in range(old_first, old_end) if old[at] in shared]
    right = [at for at in range(new_first, new_end) if new[at] in shared]
    pairs: list[tuple[int, int]] = []
    x = y = 0
    while x < len(left) and y < len(right):
        x, y, found = _search([old[at] for at in left[x:]], [new[at] for at in right[y:]], x, y)
        pairs += [(left[a], right[b]) for a, b in found]
    return pairs


def _search(
    a: list[Hashable], b: list[Hashable], a_offset: int, b_offset: int
) -> tuple[int, int, list[tuple[int, int]]]:
    """Myers' greedy search from the start of both: where it got to, and the pairs on the way (positions offset)."""
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(_MOST_EDITS + 1):
        trail.append(dict(furthest))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            y = x - k
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            furthest[k] = x
            if x >= len(a) and y >= len(b):
                return a_offset + len(a), b_offset + len(b), _walk_back(trail, k, x, a_offset, b_offset)
    # Too different to go on: keep the path that has consumed most, inside both, and start again from its end.
    inside = [k for k, x in furthest.items() if x <= len(a) and 0 <= x - k <= len(b) and (k - _MOST_EDITS) % 2 == 0]
    k = max(inside, key=lambda diagonal: (2 * furthest[diagonal] - diagonal, diagonal))
    x = furthest[k]
    return a_offset + x, b_offset + x - k, _walk_back(trail, k, x, a_offset, b_offset)


def _walk_back(trail: list[dict[int, int]], k: int, x: int, a_offset: int, b_offset: int) -> list[tuple[int, int]]:
    """The matched pairs of the path that ends on diagonal `k` at `x`, from the states before each edit."""
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trail) - 1, -1, -1):
        before = trail[edits]
        down = k == -edits or (k != edits and before[k - 1] < before[k + 1])
        start_k = k + 1 if down else k - 1
        start = before[start_k] if down else before[start_k] + 1
        while x > start:
            x -= 1
            pairs.append((a_offset + x, b_offset + x - k))
        k, x = start_k, before[start_k]
    return pairs[::-1]


def _runs(pairs: list[tuple[int, int]]) -> list[Match]:
    runs: list[Match] = []
    for old_at, new_at in pairs:
        if runs and (runs[-1].old + runs[-1].length, runs[-1].new + runs[-1].length) == (old_at, new_at):
            runs[-1] = Match(runs[-1].old, runs[-1].new, runs[-1].length + 1)
        else:
            runs.append(Match(old_at, new_at, 1))
    return runs
