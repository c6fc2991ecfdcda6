"""Lines as cells: nothing a terminal would obey, tabs at their stops, and a way back from characters to cells."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from app.tui.cells import TAB, shown_line

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
        assert part == char if char.isprintable() else part and part.isascii()


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
