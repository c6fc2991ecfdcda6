"""A review, or a reply still coming, as rows to show: headings, lines with both numbers, folds, what is pending.

Knows nothing of widgets, widths or colours. Invariant: every removed and added line of every hunk is in exactly one
row, in order; what the reply has not reached is a row of kind `?`, never of kind `-`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from app.editing.diff import CONTEXT, Hunk
from app.editing.document import Document
from app.editing.review import Item, Review
from app.editing.rework import change_positions
from app.editing.symbols import Symbol, enclosing
from app.editing.words import pair_lines
from editor_engine.events import Span

if TYPE_CHECKING:  # a review of a patch needs no prompt, and none of the checks
    from app.editing.live import LiveState

HUNK, FOLD, NOTE, SAID = "hunk", "fold", "note", "said"
KEPT, REMOVED, ADDED, PENDING = " ", "-", "+", "?"
"""Kinds of rows: a note warns, what is said does not; those of lines are their signs."""

_NEAR_END = 6
"""Lines shown around the place where a reply is."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row."""

    kind: str
    text: str = ""
    """A line without its end, or words of ours."""
    hunk: int = 0
    """Index of the hunk it belongs to; 0 for none."""
    position: int = -1
    """Place in `hunk.lines`; -1 for what is no line of a hunk."""
    old: int | None = None
    """1-based line of the source."""
    new: int | None = None
    """1-based line of the new file with everything accepted."""
    mate: str | None = None
    """The line that it stands for, or that stands for it."""
    place: tuple[int, int] | None = None
    """Of an added line: where its change begins in the source (0-based), and its number among the added lines."""
    unended: bool = False
    """The line has no line end: the file ends with it."""


def review_rows(review: Review, extra: Mapping[int, int] | None = None, *, to_end: bool = True) -> list[Row]:
    """The hunks under their headings, and folds for what lies between.

    `extra`: lines to show above and below a hunk beyond its own, by the source line (0-based) its changes begin at.
    Without `to_end` the rows stop after the last hunk.
    """
    extra = extra or {}
    document = review.document
    rows: list[Row] = []
    shown = moved = 0
    count = len(document.source_lines)
    for index, item in enumerate(review.items):
        hunk = item.hunk
        more = extra.get(hunk.changes[0].first, 0)
        following = review.items[index + 1].hunk.old_first if index + 1 < len(review.items) else count
        start = max(shown, hunk.old_first - more)
        rows += _fold(shown, start)
        rows.append(Row(HUNK, hunk.header, hunk.index, old=hunk.old_first + 1))
        rows += _kept(document, start, hunk.old_first, moved, hunk.index)
        rows += hunk_rows(item)
        moved += hunk.new_lines - hunk.old_lines
        shown = max(hunk.old_end, min(following, hunk.old_end + more))
        rows += _kept(document, hunk.old_end, shown, moved, hunk.index)
    if to_end and review.items:
        rows += _fold(shown, count)
    return rows


def with_symbols(rows: Sequence[Row], review: Review, symbols: Sequence[Symbol]) -> list[Row]:
    """The rows, each hunk headed by the definition that its first change lies in, where there is one."""
    named: list[Row] = []
    for row in rows:
        if row.kind == HUNK:
            first = review.items[row.hunk - 1].hunk.changes[0].first
            row = replace(row, text=enclosing(symbols, first + 1) or enclosing(symbols, first) or row.text)
        named.append(row)
    return named


def hunk_rows(item: Item) -> Iterator[Row]:
    """The lines of a hunk."""
    hunk = item.hunk
    mates = _mates(hunk)
    places = _places(hunk)
    for position, line in enumerate(hunk.lines):
        yield Row(
            line.kind,
            line.text,
            hunk.index,
            position,
            line.old_line,
            line.new_line,
            mates.get(position),
            places.get(position),
            not line.ending,
        )


class LiveRows:
    """The rows of a reply while it comes. Those of final hunks are made once for each state of their review: with sixty
    hunks they took 2 to 9 ms of every update."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self._symbols = symbols
        self._review: Review | None = None
        self._final: list[Row] = []

    def now(self, review: Review, state: "LiveState") -> list[Row]:
        """The final hunks under their definitions, and after them what comes of the reply."""
        if review is not self._review:
            self._review = review
            self._final = with_symbols(review_rows(review, to_end=False), review, self._symbols)
        return [*self._final, *coming_rows(review, state)]


def live_rows(review: Review, state: "LiveState") -> list[Row]:
    """The final hunks, and after them what comes of the reply."""
    return [*review_rows(review, to_end=False), *coming_rows(review, state)]


def coming_rows(review: Review, state: "LiveState") -> list[Row]:
    """What the reply says after the final hunks, and what it has not reached."""
    document = review.document
    old_at = review.items[-1].hunk.old_end if review.items else 0
    new_at = old_at + sum(item.hunk.new_lines - item.hunk.old_lines for item in review.items)
    return [*_folded(document, _tail(document, state, old_at, new_at)), *_pending(document, state)]


def added_origins(
    document: Document, hunks: Sequence[Hunk], spans: Sequence[Sequence[Span]]
) -> dict[tuple[int, int, str], Sequence[Span]]:
    """Where the added lines of a proposal came from, by `place` and text, so that a hunk may be split and still know.

    `spans`: of each line of the new file.
    """
    return {
        (*row.place, row.text): spans[row.new - 1]
        for row in review_rows(Review.start(document, hunks), to_end=False)
        if row.place is not None and row.new is not None and row.new <= len(spans)
    }


@dataclass(frozen=True, slots=True)
class _Run:
    """Lines of the source that the reply follows: rows are made of those that are shown, and of no others."""

    old: int
    """The first one, 0-based."""
    new: int
    """Where that is in the new file."""
    count: int

    def rows(self, document: Document, first: int, end: int) -> Iterator[Row]:
        """Those from the `first` to the `end`."""
        for at in range(first, end):
            yield Row(KEPT, document.lines[self.old + at], old=self.old + at + 1, new=self.new + at + 1)


def _tail(document: Document, state: "LiveState", old_at: int, new_at: int) -> Iterator[Row | _Run]:
    for match in [*((m.old, m.new, m.length) for m in state.matches), (state.reached, len(state.lines), 0)]:
        old_next, new_next, length = match
        if old_next + length < old_at or (length and old_next + length == old_at):
            continue
        for old in range(old_at, old_next):
            yield Row(REMOVED, document.lines[old], old=old + 1)
        for new in range(new_at, new_next):
            yield Row(ADDED, state.lines[new], new=new + 1)
        start = max(old_at, old_next)
        if start < old_next + length:
            yield _Run(start, new_next + start - old_next, old_next + length - start)
        old_at, new_at = max(old_at, old_next + length), max(new_at, new_next + length)


def _folded(document: Document, tail: Iterator[Row | _Run]) -> Iterator[Row]:
    """Long runs of kept lines give way to a fold, but for those near a change and near the end."""
    run: _Run | None = None
    after_change = False
    for piece in [*tail, None]:
        if isinstance(piece, _Run):
            # Nothing stands between them: one ends where the other begins.
            run = piece if run is None else replace(run, count=run.count + piece.count)
            continue
        if run is not None:
            head = CONTEXT if after_change else 0
            near = _NEAR_END if piece is None else CONTEXT
            if run.count > head + near + 1:
                yield from run.rows(document, 0, head)
                yield _fold_row(run.count - head - near, "unchanged")
                yield from run.rows(document, run.count - near, run.count)
            else:
                yield from run.rows(document, 0, run.count)
            run = None
        if piece is not None:
            yield piece
            after_change = True


def _pending(document: Document, state: "LiveState") -> list[Row]:
    shown = min(state.pending_end, state.reached + _NEAR_END)
    rows = [Row(PENDING, document.lines[at], old=at + 1) for at in range(state.reached, shown)]
    if state.pending_end > shown:
        rows.append(_fold_row(state.pending_end - shown, "not reached yet"))
    if len(document.lines) > state.pending_end:
        rows.append(_fold_row(len(document.lines) - state.pending_end, "outside of the region"))
    return rows


def _kept(document: Document, first: int, end: int, moved: int, hunk: int) -> Iterator[Row]:
    for at in range(first, end):
        yield Row(KEPT, document.lines[at], hunk, old=at + 1, new=at + 1 + moved)


def _fold(first: int, end: int) -> list[Row]:
    return [_fold_row(end - first, "unchanged")] if end > first else []


def _fold_row(count: int, what: str) -> Row:
    return Row(FOLD, f"{count} line{'s' * (count != 1)} {what}")


@lru_cache(maxsize=1024)
def _mates(hunk: Hunk) -> dict[int, str]:
    """Position of a line -> the text of the line it is paired with."""
    mates: dict[int, str] = {}
    lines = hunk.lines
    for _, removed, added in change_positions(hunk):
        for old, new in pair_lines([lines[at].text for at in removed], [lines[at].text for at in added]):
            mates[removed[old]], mates[added[new]] = lines[added[new]].text, lines[removed[old]].text
    return mates


@lru_cache(maxsize=1024)
def _places(hunk: Hunk) -> dict[int, tuple[int, int]]:
    return {
        position: (change.first, number)
        for change, _, added in change_positions(hunk)
        for number, position in enumerate(added)
    }
