"""What an update of a screen costs: its own lines, and not all lines of every widget between the first and the last.

Textual has each widget that overlaps the smallest rectangle around everything that changed make all of its lines anew.
A reply changes lines at the top of a pane and the status line at the bottom: every line of the screen was made for it,
though only those few were sent. Knows nothing of what a widget is. Invariant: what is sent is what Textual's own
compositor would send for the same regions.
"""

from collections.abc import Iterator

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.strip import Strip

_Chops = dict[int, Strip | None]
"""Where pieces of a screen line begin -> the piece; None while nothing is known of it, or needed."""


class LineCompositor(Compositor):
    """Composes the pieces of lines that are dirty, front to back, until each is there."""

    def render_partial_update(self) -> ChopsUpdate | None:
        spans = list(self._regions_to_spans(self._dirty_regions))
        self._dirty_regions.clear()
        if not spans:
            return None
        cuts = self.cuts
        chops: list[_Chops] = [{} for _ in cuts]
        missing: dict[int, set[int]] = {}
        for y, left, right in spans:
            chops[y] = dict.fromkeys(cuts[y][:-1])
            needed = (at for at, end in zip(cuts[y], cuts[y][1:], strict=False) if at < right and end > left)
            missing.setdefault(y, set()).update(needed)
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip)
            for lines in _runs(seen, missing):
                crop = Region(seen.x - region.x, lines.start - region.y, seen.width, len(lines))
                for y, strip in zip(lines, widget.render_lines(crop), strict=True):
                    within = [cut for cut in cuts[y] if seen.x <= cut <= seen.right]
                    pieces = strip.divide([cut - seen.x for cut in within[1:]])
                    for at, piece in zip(within, pieces, strict=False):
                        if chops[y][at] is None:
                            chops[y][at] = piece
                    missing[y].difference_update(within[:-1])
        return ChopsUpdate(chops, spans, [line[1:] for line in cuts])


def _runs(seen: Region, missing: dict[int, set[int]]) -> Iterator[range]:
    """Lines in a row of which a piece is missing that can be seen of the widget."""
    start: int | None = None
    for y in range(seen.y, seen.bottom + 1):
        is_needed = y < seen.bottom and any(seen.x <= at < seen.right for at in missing.get(y, ()))
        if is_needed and start is None:
            start = y
        elif not is_needed and start is not None:
            yield range(start, y)
            start = None
