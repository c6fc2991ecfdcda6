"""Where the rows of a diff stand on a screen: one under the other or side by side, on one line each or wrapped.

Knows rows and cells, nothing of colours or widgets. Invariant: every row is in exactly one entry, but for kept lines,
which stand on both sides; entries are in the rows' order, and together their heights are the height of the whole.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import cell_len, get_character_cell_size

from app.editing.rows import ADDED, KEPT, NOTE, PENDING, REMOVED, SAID, Row
from app.tui.cells import shown_line

LINES = (KEPT, REMOVED, ADDED, PENDING)
"""Kinds of rows that are lines of a file."""
WORDS = (NOTE, SAID)
"""Kinds of rows that are sentences of ours; they always wrap, at words."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of the list: a row, or two side by side."""

    left: int | None
    """Position of a row; that of the only one where there is one."""
    right: int | None = None
    whole: bool = True
    """The row takes the whole width."""

    @property
    def row(self) -> int:
        """The row that actions on a line are about: the new one where there are two."""
        row = self.left if self.right is None else self.right
        assert row is not None
        return row


class Layout:
    """Entries and the screen lines they take."""

    def __init__(self, rows: Sequence[Row], *, split: bool, wrap_at: int | None, notes_at: int = 0) -> None:
        """`wrap_at`: cells that a line (of one side, when split) has; None does not wrap. `notes_at`: those of a note,
        which always wraps."""
        self.rows = rows
        self.split = split
        self.entries = tuple(_paired(rows)) if split else tuple(Entry(at) for at in range(len(rows)))
        self._wrap_at = wrap_at
        self._notes_at = notes_at
        self._breaks: dict[int, tuple[int, ...]] = {}
        self._starts = [0, *accumulate(map(self._height, self.entries))]

    @property
    def height(self) -> int:
        """Screen lines of everything."""
        return self._starts[-1]

    def wraps(self, row: int) -> bool:
        """A row that is too long goes on on the next screen line."""
        kind = self.rows[row].kind
        return kind in WORDS or (self._wrap_at is not None and kind in LINES)

    def at(self, line: int) -> tuple[int, int]:
        """The entry at a screen line, and the how-manieth of its lines that is."""
        entry = bisect_right(self._starts, line) - 1
        return entry, line - self._starts[entry]

    def start(self, entry: int) -> int:
        """The first screen line of an entry."""
        return self._starts[entry]

    def piece(self, row: int, part: int) -> tuple[int, int] | None:
        """Cells [start, end) of a row's text on the `part`-th of its screen lines; None when it has fewer."""
        breaks = self.breaks(row)
        if part + 1 < len(breaks):
            return breaks[part], breaks[part + 1]
        return None

    def breaks(self, row: int) -> tuple[int, ...]:
        """Cells at which the row's screen lines begin, and the end of the last."""
        found = self._breaks.get(row)
        if found is None:
            note = self.rows[row].kind in WORDS
            width = self._notes_at if note else self._wrap_at
            found = self._breaks[row] = wrap(self.rows[row].text, width or 0, at_words=note)
        return found

    def _height(self, entry: Entry) -> int:
        return max(
            len(self.breaks(row)) - 1 if self.wraps(row) else 1 for row in (entry.left, entry.right) if row is not None
        )


def wrap(text: str, width: int, *, at_words: bool = False) -> tuple[int, ...]:
    """Cells at which a line's screen lines begin, and its end; a character of two cells is not cut.

    `at_words`: where a space is near enough, the next line begins after it.
    """
    shown = shown_line(text).text
    total = cell_len(shown)
    if total <= width or width < 2:
        return (0, max(total, 1))
    if shown.isascii() and not at_words:
        return (*range(0, total, width), total)
    breaks, at, after_space = [0], 0, 0
    for char in shown:
        cells = get_character_cell_size(char)
        if at + cells - breaks[-1] > width and at_words and after_space > breaks[-1]:
            breaks.append(after_space)
        if at + cells - breaks[-1] > width:
            breaks.append(at)
        at += cells
        if char == " ":
            after_space = at
    return (*breaks, at)


def _paired(rows: Sequence[Row]) -> Iterator[Entry]:
    """Removed lines beside the added ones that stand for them."""
    at = 0
    while at < len(rows):
        if rows[at].kind == KEPT:
            yield Entry(at, at, whole=False)
            at += 1
        elif rows[at].kind in (REMOVED, ADDED):
            middle = _end_of(rows, at, REMOVED)
            end = _end_of(rows, middle, ADDED)
            yield from _block(rows, range(at, middle), range(middle, end))
            at = end
        else:
            yield Entry(at)
            at += 1


def _block(rows: Sequence[Row], removed: range, added: range) -> Iterator[Entry]:
    new = added.start
    for old in removed:
        mate = rows[old].mate
        # A line waits for its counterpart: added lines before that have nothing on their left.
        place = next((at for at in range(new, added.stop) if _mates(rows[old], rows[at])), None)
        if place is not None:
            yield from (Entry(None, at, whole=False) for at in range(new, place))
            yield Entry(old, place, whole=False)
            new = place + 1
        elif mate is None and new < added.stop and rows[new].mate is None:
            yield Entry(old, new, whole=False)
            new += 1
        else:
            yield Entry(old, None, whole=False)
    yield from (Entry(None, at, whole=False) for at in range(new, added.stop))


def _mates(old: Row, new: Row) -> bool:
    return old.mate is not None and old.mate == new.text and new.mate == old.text


def _end_of(rows: Sequence[Row], at: int, kind: str) -> int:
    hunk = rows[at].hunk if at < len(rows) else 0
    while at < len(rows) and rows[at].kind == kind and rows[at].hunk == hunk:
        at += 1
    return at
