"""The look: what the user set, else what the terminal says, and NO_COLOR above all."""

import pytest

from app.settings import Settings
from app.tui.look import Look, choose_look, tell_textual

RICH = {"COLORTERM": "truecolor", "TERM": "xterm-256color"}


@pytest.mark.parametrize(
    ("environment", "colours"),
    [
        (RICH, "truecolor"),
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "tmux-256color", "COLORTERM": "24bit"}, "truecolor"),
        ({"TERM": "xterm-kitty"}, "truecolor"),
        ({"TERM": "linux"}, "16"),
        ({"TERM": "screen"}, "16"),
        ({"TERM": "dumb"}, "none"),
        ({}, "none"),
        ({**RICH, "NO_COLOR": "1"}, "none"),
        ({**RICH, "NO_COLOR": ""}, "truecolor"),
    ],
)
def test_colours_the_terminal_can_show(environment: dict[str, str], colours: str) -> None:
    assert choose_look(Settings(), environment).colours == colours


@pytest.mark.parametrize(
    ("value", "dark"), [("15;0", True), ("0;15", False), ("0;7", False), ("0;8", True), ("x", True)]
)
def test_the_background_decides_unless_the_user_does(value: str, dark: bool) -> None:
    environment = {**RICH, "COLORFGBG": value}
    assert choose_look(Settings(), environment).theme == ("redraft-dark" if dark else "redraft-light")
    assert choose_look(Settings(theme="light"), environment).theme == "redraft-light"
    assert choose_look(Settings(theme="dark"), environment).theme == "redraft-dark"


def test_few_colours_take_those_of_the_terminal() -> None:
    assert choose_look(Settings(colours="16", theme="light"), RICH).theme == "ansi-light"
    assert choose_look(Settings(colours="none"), RICH) == Look("ansi-dark", "none", True, True)
    assert choose_look(Settings(colours="256", mouse=False), {**RICH, "NO_COLOR": "1"}).colours == "none"


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        (Look("t", "16", True, True), {"TEXTUAL_COLOR_SYSTEM": "standard"}),
        (Look("t", "256", False, True), {"TEXTUAL_COLOR_SYSTEM": "256", "TEXTUAL_ANIMATIONS": "none"}),
        (Look("t", "none", True, False), {"NO_COLOR": "1"}),
    ],
)
def test_textual_is_told(look: Look, expected: dict[str, str]) -> None:
    environment = {"NO_COLOR": ""}
    tell_textual(look, environment)
    assert environment == expected
