"""Tokens of each pass as a row of bars: high ones are passes in which a whole draft was right.

Knows numbers and glyphs. Invariant: as wide as it is asked to be at most, newest pass last.
"""

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(emitted: Sequence[int], width: int) -> str:
    """The newest `width` passes; a pass of one token is the lowest bar, the longest pass shown the highest."""
    shown = emitted[-width:] if width > 0 else ()
    most = max(shown, default=0)
    if most <= 1:
        return _BARS[0] * len(shown)
    return "".join(_BARS[min(len(_BARS) - 1, max(0, count - 1) * (len(_BARS) - 1) // (most - 1))] for count in shown)
