"""The application's themes: readable text on every background they give it."""

import itertools

import pytest
from textual.color import Color
from textual.theme import Theme

from app.tui.themes import THEMES


def contrast(one: Color, other: Color) -> float:
    """As WCAG 2 has it: 1 to 21."""

    def luminance(color: Color) -> float:
        parts = [part / 255 for part in color.rgb]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_text_is_readable_on_every_background(theme: Theme) -> None:
    texts = ("foreground", "primary", "secondary", "accent", "success", "warning", "error")
    for text, ground in itertools.product(texts, ("background", "surface", "panel")):
        ratio = contrast(Color.parse(getattr(theme, text)), Color.parse(getattr(theme, ground)))
        assert ratio >= 4.5, f"{text} on {ground}: {ratio:.1f}"
