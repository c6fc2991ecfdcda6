"""Review states: pure, undoable, and true to the bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.diff import join, make_hunks
from app.editing.document import Document, open_bytes
from app.editing.result import make_result
from app.editing.review import Decision, Review
from tests.support.byte_forms import documents, rewrites


@settings(derandomize=True, deadline=None)
@given(data=st.data(), document=documents())
def test_every_step_can_be_taken_back(data: st.DataObject, document: Document) -> None:
    result = make_result(document, data.draw(rewrites(document)))
    review = Review.start(document, make_hunks(result, context=0))
    states = [review]
    for _ in range(data.draw(st.integers(0, 6))):
        decision = data.draw(st.sampled_from(Decision))
        index = data.draw(st.integers(0, len(review.hunks)))
        review = review.decide(index, decision) if index else review.decide_rest(decision)
        assert review.data() == join(document, review.accepted)
        if review != states[-1]:
            states.append(review)
    for state in reversed(states):
        assert review == state
        review = review.undo()
    assert review.data() == document.data


def test_accepting_all_is_the_result_and_rejecting_all_the_source() -> None:
    source = "".join(f"{n}\n" for n in range(40)).encode()
    document = open_bytes(source, "f")
    result = make_result(document, document.text.replace("1\n", "x\n"))
    review = Review.start(document, make_hunks(result))
    assert review.undecided == len(review.hunks) > 1
    assert review.decide_rest(Decision.ACCEPTED).data() == result.data
    assert review.decide(1, Decision.REJECTED).decide_rest(Decision.ACCEPTED).data() == join(document, review.hunks[1:])
    assert review.decide_rest(Decision.REJECTED).data() == source
    with pytest.raises(IndexError):
        review.decide(0, Decision.ACCEPTED)
