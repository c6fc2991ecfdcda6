"""The application's own themes, dark and light; with 16 colours or none, Textual's `ansi-dark` and `ansi-light` serve.

Colours only. Invariant: text on every background a theme gives it has a contrast of at least 4.5 to 1.
"""

from textual.theme import Theme

DARK = Theme(
    name="redraft-dark",
    dark=True,
    primary="#7aa2f7",
    secondary="#a98ae0",
    accent="#e0af68",
    success="#8bc34a",
    warning="#e0af68",
    error="#f7768e",
    foreground="#d5d9e5",
    background="#16181d",
    surface="#1d2027",
    panel="#252932",
)

LIGHT = Theme(
    name="redraft-light",
    dark=False,
    primary="#1f5fbf",
    secondary="#6b3fa0",
    accent="#8a5a00",
    success="#24692a",
    warning="#8a5a00",
    error="#b3261e",
    foreground="#1c1e22",
    background="#fbfbf9",
    surface="#f1f1ee",
    panel="#e6e6e1",
)

THEMES = (DARK, LIGHT)
