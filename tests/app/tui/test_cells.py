"""Lines as cells: nothing a terminal would obey, tabs at their stops, and a way back from characters to cells."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from app.terminal_text import is_shown
from app.tui.cells import TAB, shown_line
from tests.support.tmux import terminal

LINES = st.text(
    st.one_of(st.sampled_from("\t\x1b[\x00\u200b\u202e\ufeff日本é\u0301\ufe0f👍🏽[]"), st.characters()), max_size=30
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(line=LINES)
def test_what_is_shown_is_printable_and_every_character_has_its_place(line: str) -> None:
    shown = shown_line(line)
    assert shown.text.isprintable()
    assert len(shown.starts) == len(line) + 1
    assert list(shown.starts) == sorted(shown.starts)
    assert shown.starts[0] == 0 and shown.starts[-1] == len(shown.text)
    for at, char in enumerate(line):
        part = shown.text[shown.starts[at] : shown.starts[at + 1]]
        assert part == char if is_shown(char) and char != "\t" else part and part.isascii()
    # No character changes the width of another: a line may be cut and coloured anywhere and is as wide as its pieces.
    assert cell_len(shown.text) == sum(map(cell_len, shown.text))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(line=st.text("ab\t日é", max_size=20))
def test_a_tab_ends_at_a_stop(line: str) -> None:
    shown = shown_line(line)
    for at, char in enumerate(line):
        if char == "\t":
            assert cell_len(shown.text[: shown.starts[at + 1]]) % TAB == 0
            assert 1 <= shown.starts[at + 1] - shown.starts[at] <= TAB


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", ""),
        ("\tx", "    x"),
        ("日\tx", "日  x"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("\ud800", "\\ud800"),
        ("[red]not markup[/]", "[red]not markup[/]"),
    ],
)
def test_examples(line: str, text: str) -> None:
    assert shown_line(line).text == text


WIDE = [
    "plain",
    "日本語 テスト",
    "heart ❤\ufe0f, digit 1\ufe0f\u20e3, stop watch ⏱\ufe0f",
    "text ❤\ufe0e",
    "skin 👍\U0001f3fd",
    "family 👨\u200d👩",
    "combining e\u0301a\u0308, jamo \u1112\u1161\u11ab",
    "\ttab\t日\t!",
]
_ASK = """
import json, os, re, sys, termios, tty
tty.setraw(0)
widths = []
for text in json.loads(sys.argv[1]):
    os.write(1, b"\\r\\x1b[2K" + text.encode() + b"\\x1b[6n")
    answer = b""
    while not answer.endswith(b"R"):
        answer += os.read(0, 1)
    widths.append(int(re.search(rb";(\\d+)R", answer)[1]) - 1)
open("widths", "w").write(json.dumps(widths))
os.write(1, b"\\r\\nasked")
os.read(0, 1)
"""


def test_a_terminal_gives_a_line_as_many_cells_as_we_do(tmp_path: Path) -> None:
    """Asked of a real one, where the cursor stands behind each."""
    shown = [shown_line(line).text for line in WIDE]
    with terminal([sys.executable, "-c", _ASK, json.dumps(shown)], tmp_path, {}) as session:
        session.wait_for("asked")
    assert json.loads((tmp_path / "widths").read_text()) == [cell_len(text) for text in shown]
