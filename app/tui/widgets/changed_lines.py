"""A pane of lines that paints again only those that look different from what is on the screen.

Painting a whole pane at each update of a reply cost more than everything else the program does meanwhile, and keys
waited for it. Knows nothing of what a line is. Invariant: after `refresh_changed` every line on the screen is what
`line_at` says, as if all had been painted.
"""

from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class ChangedLines(ScrollView):
    """What inherits it says what a line looks like, and when that may have changed."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._painted: dict[int, Strip] = {}

    def line_at(self, number: int, left: int, width: int) -> Strip:
        """`width` cells of line `number` (from 0, there or not) from cell `left` on; cheap to ask for again."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        strip = self._painted[y] = self.line_at(y + top, left, self.scrollable_content_region.width)
        return strip

    def refresh_changed(self) -> None:
        """Paint again what looks different by now."""
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
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = new_value
        if round(old_value) != round(new_value):
            self.refresh_changed()

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """A scrollbar that comes after the pane was scrolled starts where the pane is."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def extend_to(self, size: Size) -> None:
        """Let what can be scrolled to be this large; lay the screen out anew only where a scrollbar comes or goes."""
        before, room = self.virtual_size, self.size
        if size == before:
            return
        if (before.width > room.width, before.height > room.height) != (
            size.width > room.width,
            size.height > room.height,
        ) or self.show_vertical_scrollbar != (size.height > room.height):
            self.virtual_size = size
            return
        self.set_reactive(ScrollView.virtual_size, size)
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = size.height
        if self.scroll_y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False)
