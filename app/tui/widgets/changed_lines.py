"""A pane of lines that paints again only those that look different from what is on the screen.

Painting a whole pane at each update of a reply cost more than everything else the program does meanwhile, and keys
waited for it. Knows nothing of what a line is. Invariant: once what `refresh_changed` asked for has been done, every
line on the screen is what `line_at` says, as if all had been painted.
"""

from math import ceil, floor

from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip

from app.tui.framed_lines import FramedLines

_NO_THUMB = (0.0, 0.0)


class ChangedLines(ScrollView):
    """What inherits it says what a line looks like, and when that may have changed."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._styles_cache: FramedLines = FramedLines()
        self._painted: dict[int, Strip] = {}
        self._thumb = _NO_THUMB
        self._is_looking = False

    def line_at(self, number: int, left: int, width: int) -> Strip:
        """`width` cells of line `number` (from 0, there or not) from cell `left` on; cheap to ask for again."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        strip = self._painted[y] = self.line_at(y + top, left, self.scrollable_content_region.width)
        return strip

    def refresh_changed(self) -> None:
        """Paint again what looks different by now; in a turn of its own, once for all that changes before it."""
        if not self._is_looking:
            self._is_looking = True
            self.call_later(self._look_at_lines)

    def _look_at_lines(self) -> None:
        self._is_looking = False
        self._move_scrollbar()
        left, top = self.scroll_offset
        width = self.scrollable_content_region.width
        changed = [
            Region(0, y, width, 1)
            for y in range(self.size.height)
            if self._painted.get(y) != self.line_at(y + top, left, width)
        ]
        if changed:
            self.refresh(*changed)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        if round(old_value) != round(new_value):
            self.refresh_changed()

    def extend_to(self, size: Size) -> None:
        """Let what can be scrolled to be this large. Scrollbars are always there, so that nothing else moves for it."""
        if size == self.virtual_size:
            return
        self.set_reactive(ScrollView.virtual_size, size)
        if self.scroll_y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False)

    def _scroll_update(self, virtual_size: Size) -> None:
        """Textual has laid the pane out, and paints the scrollbar whole."""
        super()._scroll_update(virtual_size)
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = self.scroll_y
        self._thumb = self._thumb_now()

    def _move_scrollbar(self) -> None:
        """Textual paints a scrollbar whole, which costs as much as the pane: only where the thumb's ends have moved."""
        if not self.show_vertical_scrollbar:
            return
        bar, thumb, before = self.vertical_scrollbar, self._thumb_now(), self._thumb
        self._thumb = thumb
        bar.set_reactive(ScrollBar.window_virtual_size, self.virtual_size.height)
        bar.set_reactive(ScrollBar.position, self.scroll_y)
        if (before == _NO_THUMB) != (thumb == _NO_THUMB):
            bar.refresh()
        elif before != thumb:
            both = zip(before, thumb, strict=True)
            bar.refresh(*(Region(0, floor(min(ends)), 1, ceil(abs(ends[0] - ends[1])) + 1) for ends in both))

    def _thumb_now(self) -> tuple[float, float]:
        """Where the thumb begins and ends, in cells, by the sum of `ScrollBarRender`; both 0 where there is none."""
        height, whole = self.size.height, self.virtual_size.height
        if not 0 < height < whole:
            return _NO_THUMB
        size = max(1.0, height * height / whole)
        start = (height - size) * self.scroll_y / (whole - height)
        return start, start + size
