"""One screen line of a diff as styled cells: numbers, signs, syntax, words that differ, origin, matches of a search.

Knows how rows look, not which are seen. Invariant: what a colour says, a sign or glyph says as well; text of files and
replies is drawn as `cells.shown_line` has it, never as markup.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.theme import Theme

from app.editing.hidden import is_hidden
from app.editing.review import Decision, Review
from app.editing.rows import ADDED, FOLD, HUNK, NOTE, PENDING, REMOVED, SAID, Row
from app.editing.words import word_marks
from app.terminal_text import visible
from app.tui.cells import shown_line
from app.tui.diff_layout import LINES, Entry, Layout
from app.tui.highlighting import Highlighter
from app.tui.line_strips import line_strip
from app.tui.provenance import provenance_glyph, provenance_style
from editor_engine.events import Span

DECIDED = {Decision.UNDECIDED: "?", Decision.ACCEPTED: "✓", Decision.REJECTED: "✗"}
"""What was decided, as a sign."""
NOTE_INDENT = 3
"""Cells before the words of a note."""
_MOST_STRIPS = 4_000
_MOST_PLACES = 200
"""Stretches of one line that are marked; more would cost a frame, and be more than anyone looks at."""


@dataclass(frozen=True)
class Looks:
    """The styles of the widget."""

    ground: Style
    """What lines stand on."""
    added: Style
    removed: Style
    added_word: Style
    removed_word: Style
    pending: Style
    heading: Style
    fold: Style
    note: Style
    number: Style
    cursor: Style
    hidden: Style


@dataclass
class Painter:
    """Draws rows; made anew when the text, the theme or a switch changes."""

    looks: Looks
    theme: Theme
    review: Review | None
    old: Highlighter | None = None
    """Colours of the source."""
    new: Highlighter | None = None
    """Colours of the new file with everything accepted; None while it is not whole."""
    origins: Mapping[tuple[int, int, str], Sequence[Span]] = field(default_factory=dict)
    """(where the change begins, number among its added lines, text) -> where the line came from."""
    live_origins: Sequence[Sequence[Span]] = ()
    """Of each line of a reply that still comes."""
    words: bool = True
    provenance: bool = False
    find: str = ""
    picking: bool = False
    """Lines are being chosen one by one."""
    digits: int = 1
    strips: dict[object, Strip] = field(default_factory=dict)
    """Drawn lines, and the screen lines made of them, by all that they depend on but the text's colours: kept from one
    painter to the next, as long as those hold. A reply's update looks at every line of the pane, and changes few."""

    @property
    def gutter(self) -> int:
        """Cells before the text of a line that has the whole width."""
        return self.side + self.digits + 1

    @property
    def side(self) -> int:
        """Cells before the text of one side."""
        return self.digits + 4 + self.provenance

    def line(self, layout: Layout, entry: int, part: int, *, width: int, left: int, at_cursor: bool) -> Strip:
        """The `part`-th screen line of an entry, `left` cells scrolled off, `width` cells wide."""
        place = layout.entries[entry]
        rows = (self._key(layout, place.left, part), self._key(layout, place.right, part))
        look = (self.provenance, self.words, self.find, self.digits, self.theme.name)
        key = (rows, place.whole, width, left, at_cursor, look)
        strip = self.strips.get(key)
        if strip is None:
            strip = self._line(layout, place, part, width=width, left=left, at_cursor=at_cursor)
            strip = self._kept(key, strip.apply_style(self.looks.ground))
        return strip

    def _key(self, layout: Layout, number: int | None, part: int) -> object:
        """What the look of a row's screen line depends on, besides the look of them all."""
        if number is None:
            return None
        row = layout.rows[number]
        said = self.heading(row) if row.kind == HUNK else self._mark(row)
        piece = layout.piece(number, part) if layout.wraps(number) else None
        return row, said, part, piece, tuple(self._spans(row)) if self.provenance else ()

    def _kept(self, key: object, strip: Strip) -> Strip:
        if len(self.strips) >= _MOST_STRIPS:
            self.strips.clear()
        self.strips[key] = strip
        return strip

    def _line(self, layout: Layout, place: Entry, part: int, *, width: int, left: int, at_cursor: bool) -> Strip:
        if place.whole:
            assert place.left is not None
            row = layout.rows[place.left]
            if row.kind not in LINES:
                return self._finished(self._words_of(layout, place.left, part), row, width, at_cursor)
            beside = self._numbers(row, part, f"{_number(row.old, self.digits)} {_number(row.new, self.digits)}")
            return self._finished(
                Strip.join([beside, self._text(layout, place.left, part, left)]), row, width, at_cursor
            )
        half = width // 2
        sides = [
            self._side(layout, place.left, part, left, half - 1, at_cursor, old=True),
            Strip([Segment("│", self.looks.fold)], 1),
            self._side(layout, place.right, part, left, width - half, at_cursor, old=False),
        ]
        return Strip.join(sides)

    def _side(
        self, layout: Layout, number: int | None, part: int, left: int, width: int, at_cursor: bool, *, old: bool
    ) -> Strip:
        if number is None:
            return Strip([Segment("╌" * width, self.looks.fold)], width)
        row = layout.rows[number]
        beside = self._numbers(row, part, _number(row.old if old else row.new, self.digits))
        return self._finished(Strip.join([beside, self._text(layout, number, part, left)]), row, width, at_cursor)

    def _finished(self, strip: Strip, row: Row, width: int, at_cursor: bool) -> Strip:
        looks = self.looks
        ground = {ADDED: looks.added, REMOVED: looks.removed, HUNK: looks.heading, NOTE: looks.note}.get(row.kind)
        strip = strip.adjust_cell_length(width)
        if self.theme.ansi:
            # Sixteen colours have no shade that all of them can be read on: signs, and the colour of the text, tell.
            # One style for the whole row: reversed, every colour of its own would be a background of its own.
            return Strip([Segment(strip.text, Style(reverse=True, bold=True))], width) if at_cursor else strip
        if at_cursor:
            ground = looks.cursor
        return strip if ground is None else strip.apply_style(Style(bgcolor=ground.bgcolor))

    # --- beside the text ----------------------------------------------------------------------------------------------

    def _numbers(self, row: Row, part: int, numbers: str) -> Strip:
        """Decision, line numbers, origin and sign."""
        looks = self.looks
        if part:
            numbers = " " * len(numbers)
        sign = {PENDING: "·"}.get(row.kind, row.kind) if not part else "…"
        colour = {ADDED: looks.added, REMOVED: looks.removed}.get(row.kind, looks.number)
        origin = provenance_glyph(self._spans(row)) if self.provenance and not part else ""
        return Strip(
            [
                Segment(self._mark(row), Style(color=colour.color)),
                Segment(f"{numbers} {origin:<{int(self.provenance)}}", Style(color=looks.number.color)),
                Segment(f"{sign} ", Style(color=colour.color, bold=True)),
            ]
        )

    def _mark(self, row: Row) -> str:
        """What was decided about the row's hunk, or, where lines were chosen, about the line."""
        if self.review is None or not 0 < row.hunk <= len(self.review.items) or row.kind not in (ADDED, REMOVED):
            return " "
        item = self.review.items[row.hunk - 1]
        if row.position >= 0 and (self.picking or item.chosen is not None):
            return "■" if item.takes(row.position) else "□"
        return DECIDED[item.decision] if item.decision is not Decision.UNDECIDED else " "

    # --- the text -----------------------------------------------------------------------------------------------------

    def _words_of(self, layout: Layout, number: int, part: int) -> Strip:
        """A row of our own words."""
        row, looks = layout.rows[number], self.looks
        if row.kind == HUNK:
            return Strip([Segment(self.heading(row), Style(color=looks.heading.color, bold=True))])
        if row.kind == FOLD:
            return Strip([Segment(f" ⋯ {row.text}", Style(color=looks.fold.color, italic=True))])
        piece = layout.piece(number, part)
        assert piece is not None
        if row.kind == SAID:
            return Strip.join([Strip([Segment(" ")]), Strip([Segment(shown_line(row.text).text)]).crop(*piece)])
        style = Style(color=looks.note.color)
        words = Strip([Segment(shown_line(row.text).text, style)]).crop(*piece)
        return Strip.join([Strip([Segment(" ⚠ " if not part else "   ", style)], NOTE_INDENT), words])

    def heading(self, row: Row) -> str:
        """What the heading of a hunk says."""
        assert self.review is not None
        item = self.review.items[row.hunk - 1]
        kinds = [line.kind for line in item.hunk.lines]
        state = item.decision.value
        if item.chosen is not None:
            state += f", {len(item.chosen)} of {kinds.count('+') + kinds.count('-')} lines"
        parts = [
            f"{DECIDED[item.decision]} hunk {row.hunk} of {len(self.review.items)}",
            state,
            f"+{kinds.count('+')} -{kinds.count('-')}",
        ]
        header = visible(row.text).replace("\t", " ")
        return " · ".join([*parts, header] if header else parts)

    def _text(self, layout: Layout, number: int, part: int, left: int) -> Strip:
        row = layout.rows[number]
        strip = self._strip(row)
        if layout.wraps(number):
            piece = layout.piece(number, part)
            return Strip.blank(0) if piece is None else strip.crop(*piece)
        return strip.crop(left, max(left, strip.cell_length))

    def _strip(self, row: Row) -> Strip:
        spans = tuple(self._spans(row)) if self.provenance else ()
        key = (row, spans, self.words, self.find, self.theme.name)
        strip = self.strips.get(key)
        return self._kept(key, self._drawn(row)) if strip is None else strip

    def _drawn(self, row: Row) -> Strip:
        text, looks = row.text, self.looks
        if row.kind == PENDING:
            # Dimmed, the colour that is muted already is too pale to read; sixteen colours have no muted one.
            return Strip([Segment(shown_line(text).text, Style(color=looks.pending.color, dim=self.theme.ansi))])
        changed = row.kind in (ADDED, REMOVED)
        spans = self._spans(row) if self.provenance and row.kind != REMOVED else ()
        plain = bool(spans) or (self.theme.ansi and changed)  # one colour for one meaning
        strip = line_strip(text, () if plain else self._syntax(row), self.theme)
        if self.theme.ansi and changed and not spans:
            colour = looks.removed if row.kind == REMOVED else looks.added
            strip = strip.apply_style(Style(color=colour.color))
        at, origins = 0, []
        for span in spans:
            if span.provenance is not None:
                origins.append((at, at + span.chars, provenance_style(span.provenance, self.theme)))
            at += span.chars
        strip = styled(strip, text, origins)
        if self.words and row.mate is not None and changed:
            old, new = (text, row.mate) if row.kind == REMOVED else (row.mate, text)
            marks = word_marks(old, new)
            if marks is not None:
                word = looks.removed_word if row.kind == REMOVED else looks.added_word
                style = Style(bgcolor=None if self.theme.ansi else word.bgcolor, bold=True, underline=True)
                strip = _over(strip, text, marks[0] if row.kind == REMOVED else marks[1], style)
        if row.kind == ADDED and not (text.isascii() and text.isprintable()):
            places = [(at, at + 1) for at, char in enumerate(text) if is_hidden(char)]
            strip = _over(strip, text, places, Style(color=looks.hidden.color, reverse=True))
        if self.find:
            strip = _over(strip, text, _places(text, self.find), Style(reverse=True, bold=True))
        if row.unended:
            strip = Strip.join([strip, Strip([Segment(" (no newline at end of file)", looks.fold)])])
        return strip

    def _syntax(self, row: Row) -> tuple[tuple[int, int, str], ...]:
        if row.kind == ADDED:
            return self.new.spans(row.new - 1) if self.new is not None and row.new is not None else ()
        return self.old.spans(row.old - 1) if self.old is not None and row.old is not None else ()

    def _spans(self, row: Row) -> Sequence[Span]:
        if row.place is not None:
            return self.origins.get((*row.place, row.text), ())
        if row.kind == ADDED and row.new is not None and row.new <= len(self.live_origins):
            return self.live_origins[row.new - 1]
        return ()


def _number(number: int | None, digits: int) -> str:
    return f"{'' if number is None else number:>{digits}}"


def _over(strip: Strip, text: str, places: Iterable[tuple[int, int]], style: Style) -> Strip:
    """The strip of a line with a style over stretches of its characters."""
    return styled(strip, text, [(start, end, style) for start, end in islice(places, _MOST_PLACES)])


def styled(strip: Strip, text: str, places: Iterable[tuple[int, int, Style]]) -> Strip:
    """The strip of a line with styles over stretches of its characters, in their order; in one walk: lines are long."""
    shown = shown_line(text)
    ends = [
        (shown.starts[start], shown.starts[min(end, len(text))], style)
        for start, end, style in places
        if start < min(end, len(text))
    ]
    if not ends:
        return strip
    pieces: list[Segment] = []
    at = done = 0  # a character of the shown text; how many stretches lie before it
    for segment in strip:
        begin, stop = at, at + len(segment.text)
        while at < stop:
            while done < len(ends) and ends[done][1] <= at:
                done += 1
            first, last, style = ends[done] if done < len(ends) else (stop, stop, None)
            inside = first <= at
            end = min(stop, last if inside else first)
            own = Style.combine([style, segment.style or Style()]) if inside and style is not None else segment.style
            pieces.append(Segment(segment.text[at - begin : end - begin], own))
            at = end
    return Strip(pieces, strip.cell_length)


def _places(text: str, find: str) -> list[tuple[int, int]]:
    """Where a text stands in a line, without regard to case."""
    places: list[tuple[int, int]] = []
    low, wanted = text.lower(), find.lower()
    if len(low) != len(text):  # a few characters have no single lower case: compare as they are
        low, wanted = text, find
    at = low.find(wanted)
    while at >= 0:
        places.append((at, at + len(wanted)))
        at = low.find(wanted, at + len(wanted))
    return places
