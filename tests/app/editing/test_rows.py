"""Rows to show: every changed line once, pending lines pending, both numbers right."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.diff import changes_of, group_changes, make_hunks
from app.editing.document import Document, open_bytes
from app.editing.language import TEXT, detect_language
from app.editing.live import LiveDiff, LiveState
from app.editing.prompt import build_prompt
from app.editing.region import Region
from app.editing.result import make_result
from app.editing.review import Decision, Review
from app.editing.rows import (
    ADDED,
    FOLD,
    HUNK,
    KEPT,
    PENDING,
    REMOVED,
    LiveRows,
    Row,
    live_rows,
    review_rows,
    with_symbols,
)
from app.editing.symbols import find_symbols
from editor_engine.events import Text
from tests.support.byte_forms import documents, rewrites
from tests.support.long_edits import long_documents, long_rewrites

LINES = tuple(f"line {number}" for number in range(60))


def hidden(rows: list[Row]) -> int:
    return sum(int(row.text.split()[0]) for row in rows if row.kind == FOLD)


@settings(derandomize=True, deadline=None)
@given(data=st.data(), document=documents())
def test_rows_of_a_review_are_the_whole_file(data: st.DataObject, document: Document) -> None:
    result = make_result(document, data.draw(rewrites(document)))
    review = Review.start(document, make_hunks(result))
    extra = {hunk.changes[0].first: data.draw(st.integers(0, 9)) for hunk in review.hunks}
    rows = review_rows(review, extra)
    if not review.items:
        assert rows == []
        return
    changed = [(row.hunk, row.position) for row in rows if row.kind in (REMOVED, ADDED)]
    assert changed == [
        (hunk.index, at) for hunk in review.hunks for at, line in enumerate(hunk.lines) if line.kind != " "
    ]
    assert len([row for row in rows if row.kind in (KEPT, REMOVED)]) + hidden(rows) == len(document.lines)
    for row in rows:
        if row.old is not None and row.kind in (KEPT, REMOVED):
            assert document.lines[row.old - 1] == row.text
        if row.new is not None:
            assert result.lines[row.new - 1].text == row.text
    assert [row.hunk for row in rows if row.kind == HUNK] == [hunk.index for hunk in review.hunks]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data(), document=long_documents())
def test_rows_of_a_reply_that_comes_are_the_whole_file(data: st.DataObject, document: Document) -> None:
    live = LiveDiff(document, build_prompt(document.lines, "Do.", TEXT))
    lines = data.draw(long_rewrites(document.lines))
    lines = lines[: data.draw(st.integers(0, len(lines)))]
    live.feed(Text("".join(f"{line}\n" for line in lines), ()))
    rows = live_rows(Review.start(document, live.hunks), live.state())
    olds = [row.old for row in rows if row.kind in (KEPT, REMOVED, PENDING)]
    assert olds == sorted(set(olds), key=lambda old: old or 0)
    assert len(olds) + hidden(rows) == len(document.lines)
    for row in rows:
        if row.kind in (KEPT, REMOVED, PENDING):
            assert row.old is not None and document.lines[row.old - 1] == row.text
        if row.new is not None and row.kind == ADDED:
            assert live.state().lines[row.new - 1] == row.text
        assert row.kind != REMOVED or row.hunk or (row.old or 0) <= live.reached


def live_over(region: Region | None = None) -> LiveDiff:
    document = open_bytes("".join(f"{line}\n" for line in LINES).encode(), "x")
    return LiveDiff(document, build_prompt(document.lines, "Do.", TEXT, region))


def shapes(live: LiveDiff) -> list[str]:
    document = open_bytes("".join(f"{line}\n" for line in LINES).encode(), "x")
    rows = live_rows(Review.start(document, live.hunks), live.state())
    return [row.kind + row.text if row.kind in (FOLD, ADDED, REMOVED) else row.kind for row in rows]


def folded_row_by_row(rows: list[Row]) -> list[Row]:
    """The slow twin: every kept line is a row at first, and gives way to a fold then."""
    folded: list[Row] = []
    run: list[Row] = []
    after_change = False
    for row in [*rows, None]:
        if row is not None and row.kind == KEPT:
            run.append(row)
            continue
        head, tail = 3 if after_change else 0, 6 if row is None else 3
        if len(run) > head + tail + 1:
            hidden_lines = len(run) - head - tail
            fold = Row(FOLD, f"{hidden_lines} line{'s' * (hidden_lines != 1)} unchanged")
            folded += [*run[:head], fold, *run[len(run) - tail :]]
        else:
            folded += run
        run = []
        if row is not None:
            folded.append(row)
            after_change = True
    return folded


def rows_line_by_line(document: Document, state: LiveState) -> list[Row]:
    """The slow twin: what a reply without a final hunk says so far, every line of it."""
    rows: list[Row] = []
    old = new = 0
    matched = {(match.old + at, match.new + at) for match in state.matches for at in range(match.length)}
    while old < state.reached or new < len(state.lines):
        if (old, new) in matched:
            rows.append(Row(KEPT, document.lines[old], old=old + 1, new=new + 1))
            old, new = old + 1, new + 1
        elif old < state.reached and not any(left == old for left, _ in matched):
            rows.append(Row(REMOVED, document.lines[old], old=old + 1))
            old += 1
        else:
            rows.append(Row(ADDED, state.lines[new], new=new + 1))
            new += 1
    return rows


@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data(), document=long_documents())
def test_rows_of_shown_lines_alone_are_those_of_all_lines_folded(data: st.DataObject, document: Document) -> None:
    live = LiveDiff(document, build_prompt(document.lines, "Do.", TEXT))
    lines = data.draw(long_rewrites(document.lines))
    lines = lines[: data.draw(st.integers(0, len(lines)))]
    live.feed(Text("".join(f"{line}\n" for line in lines), ()))
    state, nothing_final = live.state(), Review.start(document)
    rows = [row for row in live_rows(nothing_final, state) if row.kind != PENDING and "not reached" not in row.text]
    assert rows == folded_row_by_row(rows_line_by_line(document, state))


def test_lines_not_reached_are_pending_and_not_removed() -> None:
    live = live_over()
    live.feed(Text("".join(f"{line}\n" for line in LINES[:20]) + "new", ()))
    assert shapes(live) == [
        "fold17 lines unchanged",
        *[KEPT] * 3,
        "+new",
        *[PENDING] * 6,
        "fold34 lines not reached yet",
    ]


def test_a_region_shows_what_lies_outside() -> None:
    live = live_over(Region(11, 20))
    live.feed(Text("line 10\nnew\nline 12\nline 13\nline 14\n", ()))
    assert shapes(live)[-2:] == [PENDING, "fold40 lines outside of the region"]
    assert "-line 11" in shapes(live) and "+new" in shapes(live)


def test_more_context_is_shown_on_both_sides() -> None:
    document = open_bytes("".join(f"{line}\n" for line in LINES).encode(), "x")
    result = make_result(document, document.text.replace("line 30", "thirty"))
    review = Review.start(document, make_hunks(result))
    assert [row.old for row in review_rows(review) if row.kind == KEPT] == [28, 29, 30, 32, 33, 34]
    more = [row.old for row in review_rows(review, {30: 2}) if row.kind == KEPT]
    assert more == [26, 27, 28, 29, 30, 32, 33, 34, 35, 36]


def test_lines_know_what_they_stand_for() -> None:
    document = open_bytes(b"total = 1\n", "x")
    (hunk,) = group_changes(document, make_hunks(make_result(document, "total = 2\nnew\n"))[0].changes)
    rows = review_rows(Review.start(document, [hunk]))
    assert [(row.kind, row.mate, row.place) for row in rows[1:]] == [
        (REMOVED, "total = 2", None),
        (ADDED, "total = 1", (0, 0)),
        (ADDED, None, (0, 1)),
    ]


def test_a_hunk_is_headed_by_the_definition_it_changes() -> None:
    source = (
        "import os\n\n\nclass Room:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n"
    )
    document = open_bytes(source.encode(), "room.py")
    changed = source.replace("import os", "import sys").replace("return 2", "return 3")
    hunks = group_changes(document, changes_of(make_result(document, changed)))
    review = Review.start(document, hunks)
    symbols = find_symbols(document.lines, detect_language("room.py", ""))
    assert symbols is not None
    rows = with_symbols(review_rows(review), review, symbols)
    assert [row.text for row in rows if row.kind == HUNK][-1] == "Room.two"
    plain = [row for row in review_rows(review) if row.kind != HUNK]
    assert [row for row in rows if row.kind != HUNK] == plain


@settings(derandomize=True, deadline=None, max_examples=30)
@given(data=st.data(), document=long_documents())
def test_rows_that_are_kept_are_those_made_anew(data: st.DataObject, document: Document) -> None:
    """Over a whole reply, hunks being decided meanwhile."""
    language = detect_language("a.py", "")
    live = LiveDiff(document, build_prompt(document.lines, "Change it", language))
    symbols = find_symbols(document.lines, language) or ()
    kept, review = LiveRows(symbols), Review.start(document)
    for line in data.draw(long_rewrites(document.lines)):
        live.feed(Text(f"{line}\n", ()))
        if len(live.hunks) > review.received:
            review = review.extended(live.hunks[review.received :])
        if review.undecided and data.draw(st.booleans()):
            review = review.decide(len(review.items), Decision.ACCEPTED)
        state = live.state()
        assert kept.now(review, state) == with_symbols(live_rows(review, state), review, symbols)


def test_rows_of_final_hunks_are_made_once_for_each_state_of_their_review(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Review] = []

    def counted(review: Review, *, to_end: bool) -> list[Row]:
        made.append(review)
        return review_rows(review, to_end=to_end)

    monkeypatch.setattr("app.editing.rows.review_rows", counted)
    document = open_bytes("".join(f"{line}\n" for line in LINES).encode(), "a.txt")
    live = LiveDiff(document, build_prompt(document.lines, "Change it", TEXT))
    kept, review = LiveRows(()), Review.start(document)
    for number, line in enumerate(LINES):
        live.feed(Text(f"{line}{'!' * (number == 5)}\n", ()))
        if len(live.hunks) > review.received:
            review = review.extended(live.hunks[review.received :])
        kept.now(review, live.state())
    assert len(review.items) == 1 and len(made) == 2
