"""The frame of a pane's lines, made once: Textual makes it anew for each line, which took longer than the line itself.

Knows borders as Textual draws them, nothing of what is inside. Invariant: a line is what Textual's own `StylesCache`
makes of it.
"""

from collections.abc import Callable
from typing import Any

from rich.style import Style
from textual._styles_cache import StylesCache
from textual.color import Color
from textual.css.styles import StylesBase
from textual.geometry import Size, Spacing
from textual.strip import Strip


class FramedLines(StylesCache):
    """What a pane looks like, line by line, for one whose lines fill it and differ in nothing but their content."""

    def __init__(self) -> None:
        super().__init__()
        self._frame: tuple[object, Strip, Strip, Style] | None = None
        """(what it was made for, left, right, what fills a line that is too short)."""

    def clear(self) -> None:
        """Any change of styles comes here."""
        super().clear()
        self._frame = None

    def render_line(
        self,
        styles: StylesBase,
        y: int,
        size: Size,
        content_size: Size,
        padding: Spacing,
        base_background: Color,
        background: Color,
        render_content_line: Callable[[int], Strip],
        *labels_and_looks: Any,
    ) -> Strip:
        at = y - styles.gutter.top
        if not 0 <= at < content_size.height:
            return self._by_textual(
                styles,
                y,
                size,
                content_size,
                padding,
                base_background,
                background,
                render_content_line,
                *labels_and_looks,
            )
        made_for = (size, content_size, padding, base_background, background)
        if self._frame is None or self._frame[0] != made_for:
            blank = Strip.blank(content_size.width)
            whole = self._by_textual(
                styles, y, size, content_size, padding, base_background, background, lambda _: blank, *labels_and_looks
            )
            left = styles.gutter.left
            ground = self.get_inner_outer(base_background, background)[0].rich_style
            self._frame = (made_for, whole.crop(0, left), whole.crop(left + content_size.width), ground)
        _, left_edge, right_edge, ground = self._frame
        line = render_content_line(at).adjust_cell_length(content_size.width, ground)
        return Strip.join([left_edge, line, right_edge])

    def _by_textual(self, *arguments: Any) -> Strip:
        return super().render_line(*arguments)
