"""One line of code as styled cells.

Knows cells and colours, nothing of widgets. Invariant: what is drawn is `cells.shown_line` of the line, whatever the
colours say.
"""

from itertools import pairwise

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from app.tui.cells import shown_line
from app.tui.highlighting import Spans, class_style


def line_strip(line: str, spans: Spans, base: Style, dark: bool) -> Strip:
    """`line` in its syntax colours over `base`."""
    shown = shown_line(line)
    if not spans:
        return Strip([Segment(shown.text, base)])
    # Later spans lie over earlier ones: cut the line where any begins or ends, and let the last one have each piece.
    cuts = sorted({0, len(line), *(at for first, end, _ in spans for at in (first, min(end, len(line))))})
    kinds = dict.fromkeys(cuts, "")
    for first, end, kind in spans:
        for at in cuts:
            if first <= at < end:
                kinds[at] = kind
    segments = [
        Segment(shown.text[shown.starts[left] : shown.starts[right]], base + class_style(kind, dark) if kind else base)
        for left, right in pairwise(cuts)
        for kind in (kinds[left],)
    ]
    return Strip([segment for segment in segments if segment.text])
