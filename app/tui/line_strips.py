"""One line of code as styled cells.

Knows cells and colours, nothing of widgets. Invariant: what is drawn is `cells.shown_line` of the line, whatever the
colours say.
"""

from bisect import bisect_left
from itertools import pairwise

from rich.segment import Segment
from textual.strip import Strip
from textual.theme import Theme

from app.tui.cells import shown_line
from app.tui.highlighting import Spans, class_style


def line_strip(line: str, spans: Spans, theme: Theme) -> Strip:
    """`line` in its syntax colours, on no background."""
    shown = shown_line(line)
    if not spans:
        return Strip([Segment(shown.text)])
    # Later spans lie over earlier ones: cut the line where any begins or ends, and let the last one have each piece.
    cuts = sorted({0, len(line), *(at for first, end, _ in spans for at in (first, min(end, len(line))))})
    kinds = dict.fromkeys(cuts, "")
    for first, end, kind in spans:
        for at in cuts[bisect_left(cuts, first) : bisect_left(cuts, end)]:
            kinds[at] = kind
    segments = [
        Segment(
            shown.text[shown.starts[left] : shown.starts[right]],
            class_style(kinds[left], theme) if kinds[left] else None,
        )
        for left, right in pairwise(cuts)
    ]
    return Strip([segment for segment in segments if segment.text])
