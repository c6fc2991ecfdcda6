"""How the terminal UI looks here: theme, colours, motion and mouse, from the settings and what the terminal says.

Imports nothing of Textual: some of it is told through variables that Textual reads when it is imported. Invariant: what
the user set wins over what the terminal says, and NO_COLOR over both.
"""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from app.settings import Settings
from app.terminal_text import without_colour

FEW_COLOURS = ("linux", "ansi", "vt100", "vt220", "cygwin", "screen", "tmux", "xterm", "rxvt")
"""Terminals that promise 16 colours at most, unless COLORTERM says otherwise."""


@dataclass(frozen=True)
class Look:
    """What the application is started with."""

    theme: str
    """Name of one of the application's themes."""
    colours: str
    """`truecolor`, `256`, `16` or `none`."""
    motion: bool
    mouse: bool


def choose_look(settings: Settings, environment: Mapping[str, str]) -> Look:
    """What suits the user and the terminal."""
    colours = settings.colours if settings.colours != "auto" else _colours(environment)
    if without_colour(environment):
        colours = "none"
    dark = settings.theme == "dark" or (settings.theme == "auto" and not _light_background(environment))
    kind = "dark" if dark else "light"
    theme = f"ansi-{kind}" if colours in ("16", "none") else f"redraft-{kind}"
    return Look(theme, colours, not settings.reduced_motion, settings.mouse)


def tell_textual(look: Look, environment: MutableMapping[str, str]) -> None:
    """Set the variables that Textual reads once, when it is imported."""
    systems = {"16": "standard", "256": "256", "truecolor": "truecolor"}
    if look.colours == "none":
        environment["NO_COLOR"] = "1"
    else:
        environment.pop("NO_COLOR", None)  # to Textual an empty one says what a full one does
        environment["TEXTUAL_COLOR_SYSTEM"] = systems[look.colours]
    if not look.motion:
        environment["TEXTUAL_ANIMATIONS"] = "none"


def _colours(environment: Mapping[str, str]) -> str:
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "truecolor"
    terminal = environment.get("TERM", "").lower()
    if terminal in ("", "dumb"):
        return "none"
    if "direct" in terminal or terminal.endswith(("-truecolor", "-kitty")):
        return "truecolor"
    return "16" if terminal in FEW_COLOURS else "256"


def _light_background(environment: Mapping[str, str]) -> bool:
    """COLORFGBG ends with the number of the background colour: 7 and 9 to 15 are light."""
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return background.isdecimal() and int(background) in (7, *range(9, 16))
