"""The file as it was read: highlighted, numbered, with a cursor, a selection and the acceptance map beside the lines.

Draws the lines that are seen and no others. Knows nothing of edits. Invariant: it only ever reads its document; what it
shows is never a source of bytes.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region as Area
from textual.geometry import Size
from textual.strip import Strip

from app.editing.document import Document
from app.editing.figures import LineAcceptance
from app.editing.language import Language, detect_language
from app.editing.region import Region
from app.editing.symbols import Symbol, find_symbols
from app.tui.actions import Place, bindings
from app.tui.highlighting import Highlighter
from app.tui.line_strips import line_strip
from app.tui.messages import RegionChanged
from app.tui.widgets.acceptance_gutter import WIDTH as GUTTER_WIDTH
from app.tui.widgets.acceptance_gutter import gutter_segment
from app.tui.widgets.changed_lines import ChangedLines

_MOST_STRIPS = 1_000
"""Drawn lines that are kept."""
_FOUND_AHEAD = 512
"""Lines that have their colours before they are scrolled to; 64 of them take a key's time, 5 ms."""


@dataclass(frozen=True)
class _Looks:
    """The styles of the pane."""

    ground: Style
    number: Style
    drafted: Style
    rejected: Style
    selection: Style
    cursor: Style


class SourceView(ChangedLines, can_focus=True):
    """The open file."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.SOURCE)]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "source--number",
        "source--cursor",
        "source--selection",
        "source--drafted",
        "source--rejected",
    }

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._document: Document | None = None
        self._language: Language | None = None
        self._symbols: tuple[Symbol, ...] | None = None
        self._highlighter: Highlighter | None = None
        self._strips: dict[int, Strip] = {}
        self._drawn: dict[object, Strip] = {}
        self._styles: _Looks | None = None
        self._width = 0
        self._cursor = 0
        self._anchor: int | None = None
        self.acceptance: Mapping[int, LineAcceptance] = {}
        self._show_map = True
        self._reading: int | None = None
        self._following = False

    # --- what is shown ------------------------------------------------------------------------------------------------

    def show(self, document: Document, *, keep_place: bool = False) -> None:
        """Show a document, from its top or from where the one before was."""
        is_first = self._document is None
        self._document = document
        self._language = detect_language(document.name, document.lines[0])
        self._symbols = None
        self._strips.clear()
        self._drawn.clear()
        self._width = 0
        self._anchor = None
        self.acceptance = {}
        self._cursor = min(self._cursor, len(document.lines) - 1) if keep_place else 0
        self._resize(max(len(line) for line in document.lines))
        if not keep_place:
            self.scroll_to(0, 0, animate=False)
        if is_first:
            self.call_after_refresh(self._colour, document)
        else:
            self._highlighter = Highlighter(document.lines, self._language)
        self.post_message(RegionChanged(None))
        self.refresh()

    def _colour(self, document: Document) -> None:
        """Let the first picture have its colours: a grammar takes 60 ms to load, on a thread, so that no key waits."""

        def begun(language: Language) -> Highlighter:
            highlighter = Highlighter(document.lines, language)
            highlighter.find_first(_FOUND_AHEAD)
            return highlighter

        async def colour() -> None:
            if self._language is not None and self._document is document:
                found = await asyncio.to_thread(begun, self._language)
                if self._document is document:
                    self._highlighter = found
                    self._strips.clear()
                    self._drawn.clear()
                    self.refresh_changed()

        self.app.run_worker(colour(), group="colours", exit_on_error=False)

    def show_acceptance(self, lines: Mapping[int, LineAcceptance], reading: int | None) -> None:
        """How drafting goes, by 1-based line; `reading` is the line that the reply has reached."""
        if (lines, reading) == (self.acceptance, self._reading):
            return
        self.acceptance, self._reading = lines, reading
        if reading is not None and self._following:
            self._keep_in_sight(reading - 1)
        self.refresh_changed()

    def _keep_in_sight(self, line: int) -> None:
        """Scroll by half a page when a line nears the edge: to scroll at each would paint the whole pane every time."""
        height, top = self.size.height, round(self.scroll_y)
        if not top + height // 4 <= line < top + height - height // 4:
            self.scroll_to(y=line - height // 4, animate=False, immediate=True)

    def follow(self) -> None:
        """Keep the line that the reply has reached in sight, until the user looks elsewhere."""
        self._following = True

    @property
    def document(self) -> Document | None:
        """What is shown; None before anything is open."""
        return self._document

    @property
    def selected_lines(self) -> Region | None:
        """The selected lines; None without a selection."""
        if self._anchor is None:
            return None
        return Region(min(self._anchor, self._cursor) + 1, max(self._anchor, self._cursor) + 1)

    # --- drawing ------------------------------------------------------------------------------------------------------

    def line_at(self, number: int, left: int, width: int) -> Strip:
        if self._document is None or number >= len(self._document.lines):
            return Strip.blank(width, self._looks().ground)
        region = self.selected_lines
        selected = region is not None and region.first <= number + 1 <= region.last
        at_cursor = number == self._cursor and self.has_focus
        sign = "▸" if self._reading == number + 1 else "┃" if selected else ">" if at_cursor else " "
        key = (number, left, width, sign, self._mark(number), selected, at_cursor)
        drawn = self._drawn.get(key)
        if drawn is None:
            if len(self._drawn) >= _MOST_STRIPS:
                self._drawn.clear()
            drawn = self._drawn[key] = self._draw(*key)
        return drawn

    def _draw(
        self, number: int, left: int, width: int, sign: str, mark: Segment | None, selected: bool, at_cursor: bool
    ) -> Strip:
        """Line number, what the line is to the edit, the map, the text; the glyphs say what the colours say."""
        assert self._document is not None
        looks = self._looks()
        style = looks.ground
        digits = len(str(len(self._document.lines)))
        gutter = [Segment(f"{number + 1:>{digits}}{sign}", looks.number), *([] if mark is None else [mark])]
        beside = sum(segment.cell_length for segment in gutter)
        body = self._strip(number).crop_extend(left, left + max(0, width - beside), None)
        if selected and self.app.current_theme.ansi:
            # Sixteen colours have no shade that all of them can be read on.
            body = Strip(Segment(segment.text) for segment in body)
            style += Style(reverse=True)
        elif selected or at_cursor:
            style += Style(bgcolor=(looks.selection if selected else looks.cursor).bgcolor)
        return Strip.join([Strip(gutter, beside), body]).apply_style(style)

    def _mark(self, number: int) -> Segment | None:
        """The line's cell of the map; None without the map."""
        if not self._show_map or self._document is None:
            return None
        looks = self._looks()
        length = len(self._document.lines[number]) + 1
        return gutter_segment(self.acceptance.get(number + 1), length, looks.drafted, looks.rejected)

    def _looks(self) -> "_Looks":
        """Found once for as long as they hold: looking them up walks up the whole tree."""
        if self._styles is None:

            def colour(component: str) -> Style:
                """The foreground of a component class; what lies under it is the line's."""
                style = self.get_component_rich_style(component)
                return Style(color=style.color, bold=style.bold)

            self._styles = _Looks(
                ground=self.rich_style,
                number=colour("source--number"),
                drafted=colour("source--drafted"),
                rejected=colour("source--rejected"),
                selection=self.get_component_rich_style("source--selection"),
                cursor=self.get_component_rich_style("source--cursor"),
            )
        return self._styles

    def _strip(self, number: int) -> Strip:
        strip = self._strips.get(number)
        if strip is None:
            assert self._document is not None
            spans = () if self._highlighter is None else self._highlighter.spans(number)
            strip = line_strip(self._document.lines[number], spans, self.app.current_theme)
            if len(self._strips) >= _MOST_STRIPS:
                self._strips.clear()
            self._strips[number] = strip
            self._resize(strip.cell_length)
        return strip

    def _resize(self, width: int) -> None:
        """Lines are measured when they are drawn; the widest so far sets how far one can scroll."""
        assert self._document is not None
        if width > self._width:
            self._width = width
            beside = len(str(len(self._document.lines))) + 1 + (GUTTER_WIDTH if self._show_map else 0)
            self.extend_to(Size(self._width + beside + 1, len(self._document.lines)))

    def notify_style_update(self) -> None:
        """The theme changed: what is drawn is drawn again."""
        super().notify_style_update()
        self._styles = None
        self._strips.clear()
        self._drawn.clear()

    # --- cursor and selection -----------------------------------------------------------------------------------------

    def _move(self, to: int, *, select: bool = False) -> None:
        if self._document is None:
            return
        self._following = False
        before = self.selected_lines
        if select and self._anchor is None:
            self._anchor = self._cursor
        elif not select:
            self._anchor = None
        self._cursor = min(max(to, 0), len(self._document.lines) - 1)
        self.scroll_to_region(
            Area(int(self.scroll_x), self._cursor, 1, 1), animate=False, force=True, x_axis=False, immediate=True
        )
        self.refresh_changed()
        if self.selected_lines != before:
            self.post_message(RegionChanged(self.selected_lines))

    def select(self, region: Region | None) -> None:
        """Select lines, or none."""
        if region is None:
            self._move(self._cursor)
            return
        self._anchor = region.first - 1
        self._move(region.last - 1, select=True)
        self.post_message(RegionChanged(self.selected_lines))

    def action_cursor_up(self) -> None:
        self._move(self._cursor - 1)

    def action_cursor_down(self) -> None:
        self._move(self._cursor + 1)

    def action_select_up(self) -> None:
        self._move(self._cursor - 1, select=True)

    def action_select_down(self) -> None:
        self._move(self._cursor + 1, select=True)

    def action_page_up(self) -> None:
        self._move(self._cursor - max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        self._move(self._cursor + max(1, self.size.height - 1))

    def action_go_top(self) -> None:
        self._move(0)

    def action_go_bottom(self) -> None:
        self._move(1 << 60)

    def action_scroll_left(self) -> None:
        self.scroll_relative(x=-8, animate=False)

    def action_scroll_right(self) -> None:
        self.scroll_relative(x=8, animate=False)

    def action_select_none(self) -> None:
        self.select(None)

    def action_select_symbol(self) -> None:
        """The innermost definition around the cursor; pressed again, the one around that."""
        if self._document is None or self._language is None:
            return
        now = self.selected_lines or Region(self._cursor + 1, self._cursor + 1)
        if self._symbols is None:  # a parse of the whole file: some 50 ms for 2,000 lines
            self._symbols = tuple(find_symbols(self._document.lines, self._language) or ())
        around = [
            symbol
            for symbol in self._symbols
            if symbol.first <= now.first
            and now.last <= symbol.last
            and (symbol.first, symbol.last) != (now.first, now.last)
        ]
        if not around:
            self.notify("There is no function or class around these lines.")
            return
        inner = min(around, key=lambda symbol: symbol.last - symbol.first)
        self.select(Region(inner.first, inner.last))

    def action_toggle_acceptance(self) -> None:
        self._show_map = not self._show_map
        self.refresh()

    # --- mouse --------------------------------------------------------------------------------------------------------

    def on_mouse_scroll_up(self) -> None:
        self._following = False

    def on_mouse_scroll_down(self) -> None:
        self._following = False

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._move(self._line_at(event))
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.app.mouse_captured is self and not event.button:
            self.release_mouse()  # it was let go where no terminal sees it
        elif self.app.mouse_captured is self:
            self._move(self._line_at(event), select=True)

    def _line_at(self, event: events.MouseEvent) -> int:
        return event.y - self.gutter.top + int(self.scroll_y)

    def on_mouse_up(self) -> None:
        self.release_mouse()
