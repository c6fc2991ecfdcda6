"""Syntax colours over a line: the cut pieces against a twin that asks for each character which span is the last."""

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style

from app.tui.cells import shown_line
from app.tui.highlighting import class_style
from app.tui.line_strips import line_strip
from app.tui.themes import THEMES

KINDS = ["keyword", "string", "comment"]
spans = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 14), st.sampled_from(KINDS)), max_size=6)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(line=st.text("ab \t漢\x1b", max_size=12), spans=spans)
def test_the_last_span_over_a_character_colours_it(line: str, spans: list[tuple[int, int, str]]) -> None:
    spans = [span for span in spans if span[0] <= len(line)]
    shown = shown_line(line)
    expected: list[tuple[str, Style | None]] = []
    for at in range(len(line)):
        kinds = [kind for first, end, kind in spans if first <= at < end]
        style = class_style(kinds[-1], THEMES[0]) if kinds else None
        expected += [(char, style) for char in shown.text[shown.starts[at] : shown.starts[at + 1]]]
    strip = line_strip(line, tuple(spans), THEMES[0])
    assert [(char, segment.style) for segment in strip for char in segment.text] == expected
