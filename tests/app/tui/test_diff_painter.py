"""Styles over a line's characters: the one walk over the line against a slow twin that looks at each character."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from app.tui.cells import shown_line
from app.tui.diff_painter import styled

STYLES = [Style(color="red"), Style(bgcolor="blue", bold=True), Style(reverse=True)]
Place = tuple[int, int, Style]


def looks(strip: Strip) -> list[tuple[str, Style]]:
    """Each character with its style."""
    return [(char, segment.style or Style()) for segment in strip for char in segment.text]


def slowly(strip: Strip, text: str, places: list[Place]) -> list[tuple[str, Style]]:
    """What `styled` does, character by character."""
    shown = shown_line(text)
    given = looks(strip)
    for start, end, style in places:
        for at in range(start, min(end, len(text))):
            for place in range(shown.starts[at], shown.starts[at + 1]):
                char, own = given[place]
                given[place] = (char, style + own)
    return given


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    text=st.text("ab \t漢é\x1b\u200b", max_size=30),
    cuts=st.lists(st.integers(0, 40), max_size=5),
    ends=st.lists(st.integers(0, 35), max_size=12),
)
def test_a_walk_over_the_line_is_what_each_character_gets(text: str, cuts: list[int], ends: list[int]) -> None:
    shown = shown_line(text).text
    borders = sorted({0, len(shown), *(min(cut, len(shown)) for cut in cuts)})
    strip = Strip(
        [
            Segment(shown[left:right], STYLES[at % 3] if at % 2 else None)
            for at, (left, right) in enumerate(pairwise(borders))
        ]
    )
    marks = sorted(min(end, len(text) + 2) for end in ends)
    places = [
        (start, end, STYLES[at % 3]) for at, (start, end) in enumerate(zip(marks[::2], marks[1::2], strict=False))
    ]
    places = [place for place in places if place[0] <= len(text)]
    assert looks(styled(strip, text, places)) == slowly(strip, text, places)
    assert styled(strip, text, places).cell_length == strip.cell_length


def test_a_long_line_has_a_piece_a_stretch_and_no_more() -> None:
    text = "word " * 4000
    places = [(at, at + 5, STYLES[at % 3]) for at in range(0, len(text), 5)]
    done = styled(Strip([Segment(text)]), text, places)
    assert len(list(done)) == len(places) and done.text == text
