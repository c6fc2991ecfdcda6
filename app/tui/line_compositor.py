"""What an update of a screen costs: its own lines, and not all lines of every widget between the first and the last.

Textual has each widget that overlaps the smallest rectangle around everything that changed make all of its lines anew.
A reply changes lines at the top of a pane and the status line at the bottom: every line of the screen was made for it,
though only those few were sent. Knows nothing of what a widget is, but for the one that is typed into, whose few lines
go before the many of others. Invariant: what is sent is what Textual's own compositor would send for the same regions;
what waits is sent next.
"""

from collections.abc import Iterator

from textual._compositor import ChopsUpdate, Compositor
from textual.events import Idle
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

_Chops = dict[int, Strip | None]
"""Where pieces of a screen line begin -> the piece; None while nothing is known of it, or needed."""


class LineCompositor(Compositor):
    """Composes the pieces of lines that are dirty, front to back, until each is there."""

    @property
    def is_behind(self) -> bool:
        """Something waits for the next update."""
        return bool(self._dirty_regions)

    def render_partial_update(self) -> ChopsUpdate | None:
        typed = self._typed_into()
        dirty, cuts = typed or self._dirty_regions, self.cuts
        self._dirty_regions = self._dirty_regions - dirty
        # What waited may be of a larger screen.
        spans = [span for span in self._regions_to_spans(dirty) if span[0] < len(cuts)]
        if not spans:
            return None
        chops: list[_Chops] = [{} for _ in cuts]
        missing: dict[int, set[int]] = {}
        for y, left, right in spans:
            chops[y] = dict.fromkeys(cuts[y][:-1])
            needed = (at for at, end in zip(cuts[y], cuts[y][1:], strict=False) if at < right and end > left)
            missing.setdefault(y, set()).update(needed)
        for widget, (region, clip) in self.visible_widgets.items():
            if not missing:
                break
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
                    if not missing[y]:
                        del missing[y]
        return ChopsUpdate(chops, spans, [line[1:] for line in cuts])

    def _typed_into(self) -> set[Region]:
        """What is dirty of the widget that has the focus, where more is dirty elsewhere; else nothing."""
        focused = self.root.screen.focused if self.root is not None else None
        if focused is None or focused not in self.visible_widgets:
            return set()
        region, clip = self.visible_widgets[focused]
        within = region.intersection(clip).contains_region
        typed = {dirty for dirty in self._dirty_regions if within(dirty)}
        lines = sum(dirty.height for dirty in typed)
        return typed if sum(dirty.height for dirty in self._dirty_regions) > 2 * lines else set()


class KeyFirstScreen(Screen[None]):
    """Paints what is typed at once: not at the next of sixty times a second, and not after all that a reply changed."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor: LineCompositor = LineCompositor()

    async def _on_idle(self, event: Idle) -> None:
        """Before Textual's own, which waits for the time of the next update."""
        if self.focused in self._dirty_widgets and not (self._layout_required or self._scroll_required):
            self._on_timer_update()

    def _compositor_refresh(self) -> None:
        super()._compositor_refresh()
        if self._compositor.is_behind and self.focused is not None:
            self._dirty_widgets.add(self.focused)  # what makes Textual paint at all
            self._update_timer.resume()


def _runs(seen: Region, missing: dict[int, set[int]]) -> Iterator[range]:
    """Lines in a row of which a piece is missing that can be seen of the widget."""
    left, right = seen.x, seen.right
    start = end = -1
    for y in [y for y in missing if seen.y <= y < seen.bottom and any(left <= at < right for at in missing[y])]:
        if y != end:
            if start < end:
                yield range(start, end)
            start = y
        end = y + 1
    if start < end:
        yield range(start, end)
