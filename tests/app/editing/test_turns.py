"""Turns over a file: bases that never change, bytes that are the accepted hunks, decisions that move with the file."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.diff import apply_edits, byte_edits, join, make_hunks
from app.editing.document import open_bytes
from app.editing.region import Region
from app.editing.result import make_result
from app.editing.review import Review
from app.editing.turns import Turns, derived, moved_region, whole_change
from tests.support.sittings import BASE, NO, OPEN, YES, changed, decided, document, joined, proposal


def test_a_turn_from_its_instruction_to_its_bytes() -> None:
    turns = Turns(document()).begin("Do this.", None)
    assert turns.current is not None and turns.current.number == 1 and turns.current.base is turns.document
    assert not turns.waiting and turns.to_apply() == ()
    turns = turns.proposed(proposal(turns.document, changed(BASE, 2, 20)))
    assert turns.waiting
    turns = decided(turns, YES, NO)
    assert turns.waiting  # accepted, and not applied yet
    assert join(turns.document, turns.to_apply()) == joined(changed(BASE, 2))
    newer = document(changed(BASE, 2))
    applied = turns.applied(newer)
    assert not applied.waiting and applied.document is newer
    assert decided(turns, NO, NO).waiting == ()


def test_a_turn_that_failed_keeps_its_place() -> None:
    turns = Turns(document()).begin("Do.", None).failed("The reply was cut.")
    assert turns.current is not None and turns.current.failure == "The reply was cut."
    assert turns.document_of(1) is turns.document
    assert turns.begin("Again.", None).turns[0] == turns.current


def test_the_next_turn_works_on_what_was_accepted_and_both_are_applied_together() -> None:
    turns = Turns(document()).begin("One.", None)
    turns = decided(turns.proposed(proposal(turns.document, changed(BASE, 2, 20))), YES, NO)
    turns = turns.switch_base(1).begin("Two.", None)
    last = turns.current
    assert last is not None and last.based_on == 1
    assert last.base.data == joined(changed(BASE, 2))
    turns = decided(turns.proposed(proposal(last.base, changed(list(last.base.lines), 30, to="two"))), YES)
    assert join(turns.document, turns.to_apply()) == joined(changed(changed(BASE, 2), 30, to="two"))
    with pytest.raises(IndexError, match="no turn 3"):
        turns.switch_base(3)


def test_what_was_decided_while_it_streamed_stays() -> None:
    turns = Turns(document()).begin("Do.", None)
    made = proposal(turns.document, changed(BASE, 2, 20))
    early = Review.start(turns.document, made.hunks[:1]).decide(1, YES)
    turns = turns.decided(early).proposed(made)
    assert turns.current is not None and turns.current.review == early


def test_the_next_turn_takes_what_was_accepted_and_not_applied() -> None:
    turns = Turns(document()).begin("One.", None)
    assert turns.on_accepted(Region(3, 4)) == (turns, Region(3, 4))
    turns = decided(turns.proposed(proposal(turns.document, ["first", *changed(BASE, 20)])), YES, OPEN)
    taken, region = turns.on_accepted(Region(3, 4))
    assert taken.base == 1 and region == Region(4, 5)
    assert taken.document_of(1).lines[3:5] == turns.document.lines[2:4]
    assert turns.on_accepted(None)[1] is None
    applied = turns.applied(document(["first", *BASE]))
    assert applied.on_accepted(None)[0] is applied
    other = taken.switch_base(1)
    assert other.on_accepted(None)[0] is other  # that base was chosen already


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    new=st.lists(st.sampled_from(["a", "b", "c", "x"]), min_size=1, max_size=10),
    first=st.integers(1, 8),
    length=st.integers(0, 7),
)
def test_a_moved_region_has_the_lines_that_are_left_of_it_and_none_from_outside(
    new: list[str], first: int, length: int
) -> None:
    old = [*"abcabcab"]
    last = min(8, first + length)
    source = open_bytes(joined(old), "f.txt")
    hunks = make_hunks(make_result(source, joined(new).decode()))
    changes = [change for hunk in hunks for change in hunk.changes]
    moved = moved_region(Region(first, last), changes)
    places: list[int | None] = []  # for each new line, the old one that it is
    at = 0
    for change in changes:
        places += [*range(at, change.first), *[None] * len(change.added)]
        at = change.end
    places += range(at, 8)
    inside = {place for place in places[moved.first - 1 : moved.last] if place is not None}
    kept = {place for place in places if place is not None and first - 1 <= place < last}
    assert kept <= inside
    assert moved.last - moved.first <= len(new)
    if kept:
        assert inside == kept


def test_undecided_hunks_move_with_the_file_after_an_apply() -> None:
    turns = Turns(document()).begin("Do.", None)
    turns = decided(turns.proposed(proposal(turns.document, ["first", *changed(BASE, 10, 20, 30)])), YES, OPEN, NO)
    newer = open_bytes(join(turns.document, turns.to_apply()), "f.txt")
    moved, lost = turns.applied(newer).moved_to(newer)
    last = moved.current
    assert lost == 0 and last is not None and last.review is not None
    assert last.review.decisions == (OPEN, NO, OPEN)
    assert moved.waiting and last.base is newer
    again = moved.decided(last.review.decide(1, YES))
    assert again.waiting
    assert join(newer, again.to_apply()) == joined(["first", *changed(BASE, 10)])


def test_hunks_that_do_not_fit_the_changed_file_are_counted() -> None:
    turns = Turns(document()).begin("Do.", None)
    turns = decided(turns.proposed(proposal(turns.document, changed(BASE, 2, 20))), YES, OPEN)
    moved, lost = turns.moved_to(document(changed(BASE, 2, to="theirs")))
    assert lost == 1 and moved.current is not None and moved.current.review is not None
    assert moved.current.review.decisions == (OPEN,)


def test_chosen_lines_move_as_what_was_chosen() -> None:
    turns = Turns(document()).begin("Do.", None)
    made = proposal(turns.document, [*BASE[:5], "a", "b", *BASE[5:]])
    hunk = made.hunks[0]
    at = next(place for place, line in enumerate(hunk.lines) if line.text == "a")
    turns = turns.proposed(made).decided(Review.start(turns.document, made.hunks).choose(1, {at}))
    moved, lost = turns.moved_to(document(["theirs", *BASE]))
    assert lost == 0
    assert join(moved.document, moved.to_apply()) == joined(["theirs", *BASE[:5], "a", *BASE[5:]])


def test_a_fresh_reading_must_have_the_same_bytes() -> None:
    turns = Turns(document())
    again = document()
    assert turns.reread(again).document is again
    with pytest.raises(ValueError, match="not the same"):
        turns.reread(document(BASE[1:]))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    old=st.lists(st.sampled_from([b"a\n", b"b\r\n", b"c\n", b"\n", b"\xc3\xa9\n"]), min_size=1, max_size=12),
    new=st.lists(st.sampled_from([b"a\n", b"b\n", b"b\r\n", b"x\r\n", b"\n"]), min_size=1, max_size=12),
    cut=st.booleans(),
)
def test_several_turns_amount_to_exactly_their_bytes(old: list[bytes], new: list[bytes], cut: bool) -> None:
    source = open_bytes(b"".join(old), "f.txt")
    data = b"".join(new)
    data = data.rstrip(b"\r\n") or data if cut else data
    assert apply_edits(source.data, byte_edits(source, whole_change(source, data))) == data
    assert derived(source, data).data == data


def test_decisions_about_a_reply_that_is_not_whole_never_apply() -> None:
    turns = Turns(document()).begin("Do.", None)
    early = Review.start(turns.document, proposal(turns.document, changed(BASE, 2)).hunks).decide(1, YES)
    streaming = turns.decided(early)
    assert streaming.to_apply() == ()
    failed = streaming.failed("It was cut.")
    assert failed.decided(early) == failed
    assert failed.decided(early).to_apply() == ()


def test_an_apply_over_an_older_state_says_what_it_takes_back() -> None:
    turns = Turns(document())
    for line in (2, 20, 30):
        turns = turns.begin("Change.", None)
        made = changed(list(turns.document.lines), line)
        turns = decided(turns.proposed(proposal(turns.document, made)), YES)
        assert turns.taken_back == 0
        newer = document(made)
        turns = turns.applied(newer).moved_to(newer)[0]
    assert [turns.switch_base(number).begin("", None).taken_back for number in range(4)] == [0, 2, 1, 0]
    one = turns.switch_base(1).begin("On one.", None)
    assert one.current is not None
    one = decided(one.proposed(proposal(one.current.base, changed(list(one.current.base.lines), 25))), YES)
    assert one.taken_back == 2
    two = one.switch_base(4).begin("On that.", None)
    assert two.taken_back == 2
    assert two.moved_to(document(changed(BASE, 2, 20, 30, 35)))[0].begin("", None).taken_back == 0


def test_the_lines_that_may_change_move_with_the_file() -> None:
    turns = Turns(document()).begin("Region.", Region(11, 12))
    turns = decided(turns.proposed(proposal(turns.document, changed(BASE, 10))), OPEN)
    assert turns.region_of(1) == Region(11, 12)
    newer = document(["first", "second", *BASE])
    moved = turns.moved_to(newer)[0]
    assert moved.current is not None and moved.current.region == Region(13, 14)
    assert moved.region_of(1) == Region(13, 14)
    failed = Turns(document()).begin("Region.", Region(11, 12)).failed("No.")
    assert failed.moved_to(newer)[0].region_of(1) == Region(13, 14)
