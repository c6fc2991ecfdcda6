"""The drawing half of the diff pane: rows on a screen, with a cursor, search, sides and wrapping.

Draws what is seen and nothing else. Knows rows and how they look, nothing of decisions. Invariant: the cursor stays on
the line it was on when rows come and go around it, as long as that line is there.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.geometry import Region as Area
from textual.geometry import Size
from textual.strip import Strip

from app.editing.review import Review
from app.editing.rows import ADDED, HUNK, NOTE, REMOVED, Row
from app.tui.diff_layout import LINES, Layout
from app.tui.diff_painter import NOTE_INDENT, Looks, Painter
from app.tui.highlighting import Highlighter
from app.tui.widgets.changed_lines import ChangedLines
from editor_engine.events import Span

SPLIT_FROM = 120
"""Cells from which old and new stand side by side, unless the user said otherwise."""
_MOST_MEASURED = 20_000
"""Characters of a line that one can scroll to."""


class DiffCanvas(ChangedLines, can_focus=True):
    """Rows of a diff."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"diff--{name}"
        for name in (
            *("added", "removed", "added-word", "removed-word", "pending", "heading", "fold", "note"),
            *("number", "cursor", "hidden"),
        )
    }

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.review: Review | None = None
        self.cursor = 0
        self.split: bool | None = None
        """Side by side; None goes by the width."""
        self.wrap = False
        self.words = True
        self.provenance = False
        self.picking = False
        self.wanted = ""
        """What is looked for."""
        self.highlighters: tuple[Highlighter | None, Highlighter | None] = (None, None)
        self.origins: Mapping[tuple[int, int, str], Sequence[Span]] = {}
        self.live_origins: Sequence[Sequence[Span]] = ()
        self._rows: list[Row] = []
        self._layout = Layout((), split=False, wrap_at=None)
        self._painter: Painter | None = None
        self._strips: dict[object, Strip] = {}
        self._styles: Looks | None = None

    # --- what is drawn ------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> Sequence[Row]:
        """What is shown, from top to bottom."""
        return self._rows

    def show_rows(self, rows: list[Row], *, keep: bool = True, follow: bool = False) -> None:
        """Show other rows. The cursor goes to the end (`follow`), stays on its line (`keep`), or goes to the top."""
        before = self.row if keep and not follow else None
        self._rows = rows
        self._lay_out()
        if follow:
            self.cursor = max(0, len(self._layout.entries) - 1)
            # Forced: before it is laid out for the first time the pane has no scrollbar yet, and would not scroll.
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True, force=True)
        else:
            self.cursor = 0 if before is None else self._again(before)
        if not keep:
            self.scroll_to(0, 0, animate=False, immediate=True)
        self._redraw()

    def look_changed(self) -> None:
        """A switch was turned: lay out and draw again."""
        before = self.row
        self._lay_out()
        self.cursor = 0 if before is None else self._again(before)
        self._redraw()
        self._see_cursor()

    def recolour(self, old: Highlighter | None, new: Highlighter | None) -> None:
        """Take other syntax colours for the source and the new file."""
        self.highlighters = (old, new)
        self._strips = {}

    @property
    def is_split(self) -> bool:
        """Old and new stand side by side."""
        return self.size.width >= SPLIT_FROM if self.split is None else self.split

    @property
    def row(self) -> Row | None:
        """The row at the cursor."""
        entries = self._layout.entries
        return self._rows[entries[self.cursor].row] if self.cursor < len(entries) else None

    def _again(self, row: Row) -> int:
        """The entry of the same line, or the nearest that there is."""
        entries = self._layout.entries

        def place(entry: int) -> tuple[bool, bool, int]:
            other = self._rows[entries[entry].row]
            same = (other.kind, other.old, other.new, other.text) == (row.kind, row.old, row.new, row.text)
            return not same, other.hunk != row.hunk or other.position != row.position, abs(entry - self.cursor)

        return min(range(len(entries)), key=place, default=0)

    def _lay_out(self) -> None:
        split = self.is_split
        painter = self._new_painter(split)
        width = self.scrollable_content_region.width
        room = (width // 2 - 1 - painter.side) if split else width - painter.gutter
        wrap_at = max(8, room) if self.wrap else None
        self._layout = Layout(self._rows, split=split, wrap_at=wrap_at, notes_at=max(8, width - NOTE_INDENT))
        widest = 0
        if not self.wrap:
            lines = (row.text for row in self._rows if row.kind in LINES)
            # A character takes at most two cells, a tab four, an escape six: room enough is all that scrolling needs.
            widest = max(
                (min(len(line) if line.isascii() else 2 * len(line), _MOST_MEASURED) for line in lines), default=0
            )
            widest += painter.gutter + 8 + (width - width // 2 if split else 0)
        self.extend_to(Size(max(widest, 1), self._layout.height))

    def _new_painter(self, split: bool) -> Painter:
        last = max((max(row.old or 0, row.new or 0) for row in self._rows), default=0)
        old, new = self.highlighters
        self._painter = Painter(
            looks=self._looks(),
            theme=self.app.current_theme,
            review=self.review,
            old=old,
            new=new,
            origins=self.origins,
            live_origins=self.live_origins,
            words=self.words,
            provenance=self.provenance,
            find=self.wanted,
            picking=self.picking,
            digits=max(2, len(str(last))),
            strips=self._strips,
        )
        return self._painter

    def _looks(self) -> Looks:
        """The styles; they walk up the whole tree: not for every update."""

        def style(name: str) -> Style:
            return self.get_component_rich_style(f"diff--{name}")

        if self._styles is not None:
            return self._styles
        self._styles = Looks(
            ground=self.rich_style,
            added=style("added"),
            removed=style("removed"),
            added_word=style("added-word"),
            removed_word=style("removed-word"),
            pending=style("pending"),
            heading=style("heading"),
            fold=style("fold"),
            note=style("note"),
            number=style("number"),
            cursor=style("cursor"),
            hidden=style("hidden"),
        )
        return self._styles

    def _redraw(self) -> None:
        self.refresh_changed()

    def line_at(self, number: int, left: int, width: int) -> Strip:
        if self._painter is None or number >= self._layout.height:
            return Strip.blank(width, self._looks().ground)
        entry, part = self._layout.at(number)
        at_cursor = entry == self.cursor and self.has_focus
        return self._painter.line(self._layout, entry, part, width=width, left=left, at_cursor=at_cursor)

    def notify_style_update(self) -> None:
        """The theme changed."""
        super().notify_style_update()
        self._styles = None
        if self._painter is not None:
            self._new_painter(self.is_split)

    def on_resize(self) -> None:
        self.look_changed()

    # --- moving -------------------------------------------------------------------------------------------------------

    def go_to(self, entry: int) -> None:
        """Put the cursor on an entry and bring it into view."""
        self.cursor = min(max(entry, 0), max(0, len(self._layout.entries) - 1))
        self._see_cursor()
        self._redraw()

    def _see_cursor(self) -> None:
        if not self._layout.entries:
            return
        line = self._layout.start(self.cursor)
        # A heading is seen with what stands under it.
        row = self.row
        room = max(1, min(8, self.size.height - 2)) if row is not None and row.kind == HUNK else 1
        area = Area(int(self.scroll_x), line, 1, room)
        self.scroll_to_region(area, animate=False, force=True, x_axis=False, immediate=True)

    def entry_of_hunk(self, index: int) -> int | None:
        """Where a hunk's heading is."""
        for at, entry in enumerate(self._layout.entries):
            row = self._rows[entry.row]
            if row.kind == HUNK and row.hunk == index:
                return at
        return None

    def go_to_change(self, hunk: int) -> None:
        """Put the cursor on the first changed line of a hunk."""
        for at, entry in enumerate(self._layout.entries):
            row = self._rows[entry.row]
            if row.hunk == hunk and row.kind in (ADDED, REMOVED):
                self.go_to(at)
                return

    def current_hunk(self) -> int:
        """Index of the hunk at the cursor, else of the next one, else of the last; 0 without any."""
        entries = self._layout.entries
        for entry in [*entries[self.cursor :], *reversed(entries[: self.cursor])]:
            row = self._rows[entry.row]
            if row.hunk and row.kind != NOTE:
                return row.hunk
        return 0

    def find_from(self, start: int) -> int | None:
        """The first entry from `start` on, round the end, with what is looked for."""
        entries = self._layout.entries
        wanted = self.wanted.lower()
        for step in range(len(entries)):
            at = (start + step) % len(entries)
            for row in (entries[at].left, entries[at].right):
                if row is not None and self._rows[row].kind in LINES and wanted in self._rows[row].text.lower():
                    return at
        return None

    def action_line_down(self) -> None:
        self.go_to(self.cursor + 1)

    def action_line_up(self) -> None:
        self.go_to(self.cursor - 1)

    def action_diff_page_down(self) -> None:
        self.go_to(self.cursor + max(1, self.size.height - 2))

    def action_diff_page_up(self) -> None:
        self.go_to(self.cursor - max(1, self.size.height - 2))

    def action_diff_top(self) -> None:
        self.go_to(0)

    def action_diff_bottom(self) -> None:
        self.go_to(len(self._layout.entries))

    def action_diff_left(self) -> None:
        self.scroll_relative(x=-8, animate=False)

    def action_diff_right(self) -> None:
        self.scroll_relative(x=8, animate=False)

    # --- switches -----------------------------------------------------------------------------------------------------

    def action_toggle_split(self) -> None:
        self.split = not self.is_split
        self.look_changed()

    def action_toggle_wrap(self) -> None:
        self.wrap = not self.wrap
        self.scroll_to(0, None, animate=False, immediate=True)
        self.look_changed()

    def action_toggle_words(self) -> None:
        self.words = not self.words
        self.look_changed()

    def action_toggle_provenance(self) -> None:
        self.provenance = not self.provenance
        self.look_changed()

    # --- mouse --------------------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        line = int(self.scroll_y) + (event.y if offset is None else offset.y)
        if line < self._layout.height:
            self.go_to(self._layout.at(line)[0])
