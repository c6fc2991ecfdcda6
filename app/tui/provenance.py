"""How the origin of text is shown: a glyph and a colour for each class.

Knows nothing of widgets. Invariant: every class has a glyph of its own, so that colour is never all that tells.
"""

from collections.abc import Sequence

from rich.style import Style
from textual.theme import Theme

from editor_engine.events import Provenance, Span

GLYPHS = {
    Provenance.COPIED: "=",
    Provenance.SUBSTITUTED: "≈",
    Provenance.DRAFTED: "»",
    Provenance.AGREED: "·",
    Provenance.GENERATED: "*",
    Provenance.POLICY: "!",
}
_COLOURS = {
    Provenance.COPIED: ("#7a8699", "#5a6472", "bright_black"),
    Provenance.SUBSTITUTED: ("#5fc9c0", "#0c6b62", "cyan"),
    Provenance.DRAFTED: ("#82b1ff", "#1c4fb0", "blue"),
    Provenance.AGREED: ("#c792ea", "#7b2fa8", "magenta"),
    Provenance.GENERATED: ("#e6b450", "#8a4b00", "yellow"),
    Provenance.POLICY: ("#f08d86", "#a8322a", "red"),
}
"""On a dark background, on a light one, and of the terminal's sixteen."""


def provenance_style(provenance: Provenance, theme: Theme) -> Style:
    """The foreground of a class on a theme."""
    dark, light, plain = _COLOURS[provenance]
    return Style(color=plain if theme.ansi else dark if theme.dark else light)


def provenance_glyph(spans: Sequence[Span]) -> str:
    """The glyph of the class that most of a line comes from; a space where none is known."""
    counts: dict[Provenance, int] = {}
    for span in spans:
        if span.provenance is not None:
            counts[span.provenance] = counts.get(span.provenance, 0) + span.chars
    return GLYPHS[max(counts, key=lambda kind: counts[kind])] if counts else " "
