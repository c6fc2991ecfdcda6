"""Review states: pure, undoable, and true to the bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.diff import Change, changes_of, hunk_of, join, make_hunks
from app.editing.document import Document, open_bytes
from app.editing.result import make_result
from app.editing.review import Decision, Item, Review
from app.editing.review_state import review_from_json, review_to_json
from app.editing.rework import changed_positions, new_side
from app.errors import AppError
from tests.support.byte_forms import LINES, documents, rewrites

NUMBERS = "".join(f"{n}\n" for n in range(40))


def review_of(source: str, new: str) -> Review:
    document = open_bytes(source.encode(), "f")
    return Review.start(document, make_hunks(make_result(document, new)))


def step(data: st.DataObject, review: Review) -> Review:
    """Any step a person can take."""
    decision = data.draw(st.sampled_from(Decision))
    if not review.items or data.draw(st.integers(0, 6)) == 0:
        return review.decide_rest(decision, data.draw(st.sets(st.integers(1, 3))))
    index = data.draw(st.integers(1, len(review.items)))
    hunk = review.item(index).hunk
    match data.draw(st.integers(0, 5)):
        case 0:
            return review.decide(index, decision)
        case 1:
            return review.toggle(index)
        case 2:
            return review.split(index)
        case 3:
            return review.choose(index, data.draw(st.sets(st.sampled_from(sorted(changed_positions(hunk))))))
        case 4:
            lines = new_side(hunk)
            at = data.draw(st.integers(0, len(lines)))
            return review.edit(index, [*lines[:at], data.draw(LINES), *lines[at + data.draw(st.integers(0, 2)) :]])
        case _:
            return review.redone(index, data.draw(st.sampled_from([None, hunk])))


def twin(review: Review) -> bytes:
    """The slow, obvious twin of `data`: source lines as they are, and accepted lines where the hunks have them."""
    out: list[bytes] = []
    at = 0
    for hunk in review.accepted:
        out += [line.raw for line in review.document.source_lines[at : hunk.old_first]]
        out += [line.raw for line in hunk.lines if line.kind != "-"]
        at = hunk.old_end
    return b"".join(out + [line.raw for line in review.document.source_lines[at:]])


@settings(derandomize=True, deadline=None, max_examples=200)
@given(data=st.data(), document=documents())
def test_every_step_can_be_taken_back_and_again(data: st.DataObject, document: Document) -> None:
    check_steps(data, document)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=5_000)
@given(data=st.data(), document=documents())
def test_every_step_can_be_taken_back_and_again_in_full(data: st.DataObject, document: Document) -> None:
    check_steps(data, document)


def check_steps(data: st.DataObject, document: Document) -> None:
    hunks = make_hunks(make_result(document, data.draw(rewrites(document))), data.draw(st.integers(0, 3)))
    early = data.draw(st.integers(0, len(hunks)))
    review = Review.start(document, hunks[:early])
    states = [review.items]
    for _ in range(data.draw(st.integers(0, 6))):
        try:
            review = step(data, review)
        except AppError:  # a choice that would leave nothing, a character that the encoding lacks: no step
            continue
        if review.items != states[-1]:
            states.append(review.items)
        check(review)
    review = review.extended(hunks[early:])
    assert review.received == len(hunks)
    new = review.items[len(states[-1]) :]
    assert [item.decision for item in new] == [Decision.UNDECIDED] * (len(hunks) - early)
    for state in reversed(states):
        assert [bare(item) for item in review.items] == [bare(item) for item in state + new]
        review = review.undo()
    assert review.undo() == review
    assert review.data() == document.data
    for state in states[1:]:
        review = review.redo()
        assert [bare(item) for item in review.items] == [bare(item) for item in state + new]
    assert review.redo() == review


def bare(item: Item) -> tuple[tuple[Change, ...], Decision, frozenset[int] | None]:
    return item.hunk.changes, item.decision, item.chosen


def check(review: Review) -> None:
    """What holds in every state."""
    document = review.document
    new = review.data()
    assert new == join(document, review.accepted) == twin(review)
    text = document.codec.decode(new[len(document.codec.bom) :])
    assert new.startswith(document.codec.bom)
    endings = [line.ending for hunk in review.hunks for line in hunk.lines if line.kind == "+"]
    assert "" not in endings or not document.final_newline
    assert text.endswith(("\n", "\r")) == document.final_newline or "\r" in document.text
    assert [hunk.index for hunk in review.hunks] == list(range(1, len(review.hunks) + 1))
    ends = [0]
    for hunk in review.hunks:
        assert hunk.old_first >= ends[-1] or hunk.old_first == max(0, hunk.changes[0].first - 3)
        ends.append(hunk.old_end)
    # What is stored comes back as it was.
    stored = review_from_json(document, review_to_json(review))
    assert (stored.items, stored.received) == (review.items, review.received)
    assert stored.data() == new


def test_accepting_all_is_the_result_and_rejecting_all_the_source() -> None:
    document = open_bytes(NUMBERS.encode(), "f")
    result = make_result(document, document.text.replace("1\n", "x\n"))
    review = Review.start(document, make_hunks(result))
    assert review.undecided == len(review.hunks) > 1
    assert review.decide_rest(Decision.ACCEPTED).data() == result.data
    assert review.decide(1, Decision.REJECTED).decide_rest(Decision.ACCEPTED).data() == join(document, review.hunks[1:])
    assert review.decide_rest(Decision.REJECTED).data() == NUMBERS.encode()
    assert review.decide_rest(Decision.ACCEPTED).lines() == tuple(result.data.decode().split("\n")[:-1])
    for index in (0, len(review.hunks) + 1):
        with pytest.raises(IndexError):
            review.decide(index, Decision.ACCEPTED)


def test_what_is_held_is_not_decided_with_the_rest() -> None:
    review = review_of(NUMBERS, NUMBERS.replace("1\n", "x\n")).decide_rest(Decision.ACCEPTED, held=[2])
    assert review.decisions[1] is Decision.UNDECIDED
    assert review.undecided == 1


def test_lines_are_chosen_one_by_one() -> None:
    review = review_of("a\nb\nc\nd\n", "a\nB\nC\nd\n")
    hunk = review.hunks[0]
    assert [line.kind + line.text for line in hunk.lines] == [" a", "-b", "-c", "+B", "+C", " d"]
    # An added line stands where the removed one stood.
    assert review.choose(1, [1, 3]).data() == b"a\nB\nc\nd\n"
    assert review.choose(1, [2, 4]).data() == b"a\nb\nC\nd\n"
    assert review.choose(1, [3]).data() == b"a\nb\nc\nB\nd\n"
    assert review.choose(1, [1, 2]).data() == b"a\nd\n"
    assert review.choose(1, []).decisions == (Decision.REJECTED,)
    assert review.choose(1, [1, 2, 3, 4]).items[0].chosen is None
    toggled = review.choose(1, [1, 3]).toggle(1)
    assert toggled.data() == b"a\nb\nc\nd\n"
    assert toggled.toggle(1).data() == b"a\nB\nc\nd\n"


def test_chosen_lines_keep_the_end_of_the_file_as_it_is() -> None:
    document = open_bytes(b"a\r\nb", "f")
    review = Review.start(document, make_hunks(make_result(document, "a\nB\nc\n")))
    # -b +B +c: the source's last line has no end, and gets its neighbour's when another follows.
    assert review.choose(1, [3]).data() == b"a\r\nb\r\nc"
    assert review.choose(1, [1]).data() == b"a"


def test_nothing_can_be_chosen_that_leaves_nothing() -> None:
    review = review_of("a\nb\n", "c\n")
    with pytest.raises(AppError, match="nothing of f"):
        review.choose(1, [0, 1])


def test_a_hunk_is_split_into_its_changes_that_share_the_lines_between() -> None:
    review = review_of(NUMBERS, NUMBERS.replace("\n5\n", "\nfive\n").replace("\n9\n", "\nnine\n"))
    assert len(review.hunks) == 1
    split = review.decide(1, Decision.ACCEPTED).split(1)
    assert split.decisions == (Decision.UNDECIDED,) * 2
    first, second = split.hunks
    assert first.old_end == second.old_first
    assert (first.index, second.index) == (1, 2)
    assert split.split(1) == split
    accepted = split.decide_rest(Decision.ACCEPTED)
    assert accepted.accepted == review.hunks
    assert split.decide(2, Decision.ACCEPTED).data() == NUMBERS.replace("\n9\n", "\nnine\n").encode()


def test_a_hunk_is_edited_in_place() -> None:
    review = review_of("a\r\nb\r\nc\r\n", "a\nB\nc\n")
    assert new_side(review.hunks[0]) == ["a", "B", "c"]
    edited = review.edit(1, ["a", "B1", "B2", "c"])
    assert edited.data() == b"a\r\nB1\r\nB2\r\nc\r\n"
    assert edited.decisions == (Decision.ACCEPTED,)
    assert review.edit(1, ["a", "b", "c"]).decisions == (Decision.REJECTED,)


def test_another_hunk_takes_its_place_and_moves_those_below() -> None:
    new = NUMBERS.replace("\n5\n", "\nfive\n").replace("\n30\n", "\nthirty\n")
    review = review_of(NUMBERS, new)
    again = make_result(review.document, NUMBERS.replace("\n5\n", "\nV\nV\nV\n"))
    redone = review.decide_rest(Decision.ACCEPTED).redone(1, hunk_of(review.document, changes_of(again)))
    assert redone.decisions == (Decision.UNDECIDED, Decision.ACCEPTED)
    assert redone.hunks[1].new_start == review.hunks[1].new_start + 2
    assert review.redone(1, None).decisions[0] is Decision.REJECTED


@pytest.mark.parametrize(
    "damage",
    [
        {"received": -1},
        {"received": "1"},
        {"items": 3},
        {"items": [{}]},
        {"items": [{"first": 0, "end": 99, "changes": [], "decision": "accepted", "chosen": None}]},
        {"items": [{"first": 0, "end": 1, "changes": [], "decision": "perhaps", "chosen": None}]},
    ],
)
def test_damaged_data_is_refused(damage: dict[str, object]) -> None:
    review = review_of("a\nb\n", "a\nc\n")
    with pytest.raises(ValueError):
        review_from_json(review.document, review_to_json(review) | damage)


@pytest.mark.parametrize(
    "damage",
    [
        {"chosen": [0]},
        {"chosen": [99]},
        {"first": 1, "end": 1},
        {"changes": [{"first": 5, "end": 9, "added": []}]},
        {"changes": [{"first": 1, "end": 2, "added": [["c", "\n", "????"]]}]},
        {"changes": [{"first": 1, "end": 2, "added": [["c", "\n", "eAo="]]}]},
    ],
)
def test_damaged_hunks_are_refused(damage: dict[str, object]) -> None:
    review = review_of("a\nb\n", "a\nc\n")
    data = review_to_json(review)
    (item,) = data["items"]  # type: ignore[misc]
    with pytest.raises(ValueError):
        review_from_json(review.document, data | {"items": [item | damage]})  # type: ignore[operator]
    with pytest.raises(ValueError):
        review_from_json(review.document, data | {"items": [item, item]})
