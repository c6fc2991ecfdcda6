"""Text for a terminal: whatever a file or a reply has, only printable characters and tabs reach it."""

import io

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.diff import make_hunks
from app.editing.document import open_bytes
from app.editing.result import make_result
from app.plain import PlainLines
from app.terminal_text import diff_lines, is_shown, takes_colour, visible, visible_lines

ANY_TEXT = st.text(alphabet=st.characters(), max_size=40)
"""Surrogates and control characters among them."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext é 漢", "plain\ttext é 漢"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x9b2J", r"\x9b2J"),
        ("a\rb\x08c\x00d\x7f", r"a\rb\x08c\x00d\x7f"),
        ("line\nline\u2028line", r"line\nline\u2028line"),
        ("\u202eevil\u202c \u200b\ufeff", r"\u202eevil\u202c \u200b\ufeff"),
        ("\udce9 \U000e0041", r"\udce9 \U000e0041"),
        ("❤\ufe0f ❤\ufe0e 葛\U000e0100 👍\U0001f3fd", r"❤\ufe0f ❤\ufe0e 葛\U000e0100 👍\U0001f3fd"),
        ("e\u0301 ก็ 한 日本語 👍 \U0001f1e9\U0001f1ea", "e\u0301 ก็ 한 日本語 👍 \U0001f1e9\U0001f1ea"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("terminal", "environment", "colour"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {}, True),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "0"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_colours_are_for_terminals_that_know_them_and_users_who_want_them(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str], colour: bool
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    assert takes_colour(stream) is colour
    assert PlainLines(io.BytesIO(), stream).colour is colour


def test_line_feeds_stay_where_lines_are_meant() -> None:
    assert visible_lines("one\n\x1b[31mtwo\r\n") == "one\n\\x1b[31mtwo\\r\n"


@settings(derandomize=True, deadline=None)
@given(ANY_TEXT)
def test_nothing_a_terminal_obeys_is_left(text: str) -> None:
    shown = visible(text)
    assert all(char.isprintable() or char == "\t" for char in shown)
    shown.encode()
    assert all(map(is_shown, shown))
    if all(map(is_shown, text)):
        assert shown == text


def diff_of(old: str, new: str, colour: bool = False) -> list[str]:
    document = open_bytes(old.encode(), "a.py")
    return list(diff_lines(make_hunks(make_result(document, new)), colour))


def test_a_diff_has_headers_signs_and_the_missing_newline() -> None:
    assert diff_of(
        "def f():\n    a\n    b\n    c\n    d\n    e", "def f():\n    a\n    b\n    c\n    d\n    \x1b[2J"
    ) == [
        "@@ -3,4 +3,4 @@ def f():",
        "     b",
        "     c",
        "     d",
        "-    e  (no newline at end of file)",
        r"+    \x1b[2J  (no newline at end of file)",
    ]


def test_colour_is_the_only_escape_sequence_and_only_when_asked_for() -> None:
    old, new = "a\nb\n", "a\n\x1b[35mc\n"
    coloured = diff_of(old, new, colour=True)
    assert [click.unstyle(line) for line in coloured] == diff_of(old, new)
    assert all(line.startswith("\x1b[3") for line in coloured if click.unstyle(line)[0] in "+-@")
    assert "\x1b[35m" not in "".join(coloured)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)))
def test_every_line_of_a_diff_is_one_line(lines: list[str]) -> None:
    old = "first\n" + "".join(f"{line}\n" for line in lines)
    for line in diff_of(old, old + "more\n"):
        assert all(char.isprintable() or char == "\t" for char in line)
