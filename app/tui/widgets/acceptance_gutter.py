"""The acceptance map: one cell beside each source line that says how much of it was drafted and where drafts failed.

Knows only figures and glyphs. Invariant: what a colour says, the glyph says as well.
"""

from rich.segment import Segment
from rich.style import Style

from app.editing.figures import LineAcceptance

WIDTH = 2
"""Cells, the space behind the mark among them."""
_SHARES = "▁▂▄▆█"


def gutter_mark(line: LineAcceptance | None, length: int) -> str:
    """A cross where a draft was rejected, else a bar for the copied share of the line's `length` characters."""
    if line is None:
        return " "
    if line.rejected:
        return "✗"
    share = min(1.0, line.copied / max(1, length))
    return _SHARES[min(len(_SHARES) - 1, int(share * len(_SHARES)))]


def gutter_segment(line: LineAcceptance | None, length: int, drafted: Style, rejected: Style) -> Segment:
    """The mark with its colour."""
    mark = gutter_mark(line, length)
    return Segment(f"{mark} ", rejected if line is not None and line.rejected else drafted)
