"""Layout and drawing of a diff: every row once, every line as wide as the screen, no wide character cut by wrapping."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from app.editing.diff import make_hunks
from app.editing.document import Document, open_bytes
from app.editing.result import make_result
from app.editing.review import Decision, Review
from app.editing.review_notes import with_hidden
from app.editing.rows import ADDED, KEPT, NOTE, REMOVED, Row, review_rows
from app.tui.cells import shown_line
from app.tui.diff_layout import Layout, wrap
from app.tui.diff_painter import Looks, Painter
from app.tui.themes import DARK
from tests.support.byte_forms import documents, rewrites

TEXTS = st.text(st.sampled_from("ab \t日é\u0301\u202e\x1b❤\ufe0f👍🏽"), max_size=60)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(text=TEXTS, width=st.integers(2, 20), at_words=st.booleans())
def test_wrapped_lines_join_to_the_line(text: str, width: int, at_words: bool) -> None:
    breaks = wrap(text, width, at_words=at_words)
    shown = shown_line(text).text
    assert breaks[0] == 0 and breaks[-1] == max(1, cell_len(shown))
    ends = {sum(map(cell_len, shown[:at])) for at in range(len(shown) + 1)}
    for start, end in itertools.pairwise(breaks):
        assert 0 < end - start <= width
        assert start in ends


def reviewed(data: st.DataObject, document: Document) -> tuple[Review, list[Row]]:
    review = Review.start(document, make_hunks(make_result(document, data.draw(rewrites(document)))))
    for index in range(1, len(review.items) + 1):
        review = review.decide(index, data.draw(st.sampled_from(Decision)))
    return review, with_hidden([Row(NOTE, "A note that is rather long."), *review_rows(review)], review)


@settings(derandomize=True, deadline=None)
@given(data=st.data(), document=documents(), split=st.booleans())
def test_every_row_has_its_place(data: st.DataObject, document: Document, split: bool) -> None:
    _, rows = reviewed(data, document)
    layout = Layout(rows, split=split, wrap_at=data.draw(st.sampled_from([None, 8])), notes_at=10)
    places = [row for entry in layout.entries for row in (entry.left, entry.right) if row is not None]
    twice = [at for at, row in enumerate(rows) if row.kind == KEPT and split]
    assert sorted(places) == sorted([*range(len(rows)), *twice])
    for side in ("left", "right"):
        order = [getattr(entry, side) for entry in layout.entries if getattr(entry, side) is not None]
        assert order == sorted(order)
    if split:
        for entry in layout.entries:
            if not entry.whole and entry.left is not None and entry.right is not None:
                assert (rows[entry.left].kind, rows[entry.right].kind) in ((KEPT, KEPT), (REMOVED, ADDED))
    lines = [layout.at(line) for line in range(layout.height)]
    assert [entry for entry, part in lines if part == 0] == list(range(len(layout.entries)))
    assert all(layout.start(entry) + part == line for line, (entry, part) in enumerate(lines))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    data=st.data(),
    document=documents(),
    split=st.booleans(),
    width=st.integers(24, 90),
    left=st.integers(0, 30),
    provenance=st.booleans(),
)
def test_every_screen_line_is_as_wide_as_the_screen(
    data: st.DataObject, document: Document, split: bool, width: int, left: int, provenance: bool
) -> None:
    review, rows = reviewed(data, document)
    plain = Style(color="red", bgcolor="black")
    looks = Looks(**dict.fromkeys(Looks.__annotations__, plain))
    painter = Painter(looks, DARK, review, provenance=provenance, find="a", digits=3)
    wrap_at = data.draw(st.sampled_from([None, 10]))
    layout = Layout(rows, split=split, wrap_at=wrap_at, notes_at=width - 3)
    for line in range(layout.height):
        entry, part = layout.at(line)
        strip = painter.line(layout, entry, part, width=width, left=0 if wrap_at else left, at_cursor=line % 3 == 0)
        text = "".join(segment.text for segment in strip)
        assert sum(map(cell_len, text)) == cell_len(text) == width
        assert text.isprintable()


def test_lines_stand_beside_what_they_became() -> None:
    document = open_bytes(b"one = 1\ntwo = 2\nthree = 3\n", "x")
    result = make_result(document, "new line\none = 11\ntwo = 2\nthree = 33\nfour = 4\n")
    rows = review_rows(Review.start(document, make_hunks(result)))
    layout = Layout(rows, split=True, wrap_at=None)
    texts = [*(row.text for row in rows), None]
    pairs = [
        (texts[-1 if entry.left is None else entry.left], texts[-1 if entry.right is None else entry.right])
        for entry in layout.entries
        if not entry.whole
    ]
    assert pairs == [
        (None, "new line"),
        ("one = 1", "one = 11"),
        ("two = 2", "two = 2"),
        ("three = 3", "three = 33"),
        (None, "four = 4"),
    ]
