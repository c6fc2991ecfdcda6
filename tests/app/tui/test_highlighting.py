"""Syntax colours: found lazily, never out of a line, and without a word of their own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.theme import BUILTIN_THEMES

from app.editing.language import detect_language
from app.tui.cells import shown_line
from app.tui.highlighting import Highlighter, class_style
from app.tui.line_strips import line_strip

DARK = BUILTIN_THEMES["textual-dark"]


def kinds(name: str, text: str, number: int) -> dict[str, str]:
    """Coloured text of a line to its class; later spans win, as when drawn."""
    lines = text.split("\n")
    spans = Highlighter(lines, detect_language(name)).spans(number)
    return {lines[number][first:end]: kind for first, end, kind in spans}


@pytest.mark.parametrize(
    ("name", "text", "number", "part", "kind"),
    [
        ("a.py", 'x = 1\ndef f():\n    return "é"', 1, "def", "keyword"),
        ("a.py", 'x = 1\ndef f():\n    return "é"', 1, "f", "function"),
        ("a.py", 'x = 1\ndef f():\n    return "é" # ü', 2, '"é"', "string"),
        ("a.py", 'x = 1\ndef f():\n    return "é" # ü', 2, "# ü", "comment"),
        ("a.py", '"""one\ntwo\nthree"""', 1, "two", "string"),
        ("a.rs", "fn main() {}", 0, "fn", "keyword"),
        ("a.json", '{"a": 12}', 0, "12", "number"),
        ("a.c", "int main(void) {\n  return 0; /* no */\n}", 1, "/* no */", "comment"),
        ("a.c", "int main(void) {\n  return 0;\n}", 1, "return", "keyword"),
        ("a.ts", "const a: number = 1;", 0, "const", "keyword"),
        ("Makefile", "# x\nall:\n\techo", 0, "# x", "comment"),
    ],
)
def test_parts_have_their_class(name: str, text: str, number: int, part: str, kind: str) -> None:
    assert kinds(name, text, number)[part] == kind


def test_text_of_no_language_has_no_colours() -> None:
    assert Highlighter(["def x"], detect_language("notes")).spans(0) == ()


def test_a_line_that_is_not_there_has_no_colours() -> None:
    for name in ("a.py", "a.c", "notes"):
        assert Highlighter(["x"], detect_language(name)).spans(5) == ()


@pytest.mark.parametrize("name", ["a.py", "a.c"])
def test_looking_in_another_order_gives_the_same(name: str) -> None:
    lines = [f'text{number} = "a" /* {number} */' for number in range(200)]
    one, other = Highlighter(lines, detect_language(name)), Highlighter(lines, detect_language(name))
    backwards = {number: other.spans(number) for number in reversed(range(200))}
    assert {number: one.spans(number) for number in range(200)} == backwards


@pytest.mark.parametrize("name", ["a.py", "a.c"])
def test_a_very_long_line_is_not_coloured_beyond_what_a_frame_can_pay(name: str) -> None:
    lines = ["x = [" + "1, " * 20_000 + "]", "y = 1"]
    highlighter = Highlighter(lines, detect_language(name))
    assert len(highlighter.spans(0)) < 2_100
    assert highlighter.spans(1)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    lines=st.lists(st.text(st.sampled_from("ab \t'\"#é日(){}[]:=\\\x1b0"), max_size=20), min_size=1, max_size=6),
    name=st.sampled_from(["a.py", "a.c", "a.md", "a.json", "a.html"]),
)
def test_colours_stay_in_their_line_and_change_no_character(lines: list[str], name: str) -> None:
    highlighter = Highlighter(lines, detect_language(name))
    for number, line in enumerate(lines):
        spans = highlighter.spans(number)
        assert all(0 <= first < end <= len(line) for first, end, _ in spans)
        assert line_strip(line, spans, DARK).text == shown_line(line).text


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
def test_every_class_has_a_colour_in_every_theme(theme: str) -> None:
    for kind in ("comment", "string", "number", "keyword", "function", "type", "constant", "tag", "heading", "field"):
        style = class_style(kind, BUILTIN_THEMES[theme])
        assert style.color is not None and style.bgcolor is None
        assert (style.color.number is not None) == theme.startswith("ansi")


def test_colours_found_ahead_are_those_found_when_shown() -> None:
    for name in ("a.py", "a.c"):
        lines = [f"int value_{number} = {number};" if name == "a.c" else f"x = {number}" for number in range(200)]
        language = detect_language(name, lines[0])
        ahead, later = Highlighter(lines, language), Highlighter(lines, language)
        ahead.find_first(130)
        assert [ahead.spans(number) for number in range(200)] == [later.spans(number) for number in range(200)]
