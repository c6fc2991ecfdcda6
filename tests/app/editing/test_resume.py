"""A sitting put away and taken up again: the same hunks, decisions and figures, or a sentence that says why not."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.document import open_document
from app.editing.pipeline import EditOrder, Proposal, plan_edit, run_edit
from app.editing.region import Region
from app.editing.resume import Standing, resumed_turns, saved_session, standing
from app.editing.review import Decision
from app.editing.session_store import SavedSession, SessionKeeper, left_sessions
from app.editing.turns import Turns
from app.errors import AppError, StateError
from editor_engine.requests import CancelFlag
from tests.support.byte_forms import documents, rewrites
from tests.support.headless_edit import CHANGED, SOURCE, assert_sentence
from tests.support.scripted_client import ScriptedClient, fenced

OTHER = CHANGED.replace("max(items)", "max(items, default=0)")


def asked(turns: Turns, reply: str, region: Region | None = None) -> Turns:
    """One more turn, whose model answers with `reply`."""
    turns = turns.begin("Do.", region)
    lines = None if region is None else f"{region.first}:{region.last}"

    async def work() -> Proposal:
        client = ScriptedClient(fenced(reply))
        assert turns.current is not None
        plan = await plan_edit(turns.current.base, EditOrder("Do.", lines=lines), client)
        async with aclosing(run_edit(plan, client, CancelFlag())) as events:
            (proposal,) = [event async for event in events if isinstance(event, Proposal)]
        return proposal

    return turns.proposed(asyncio.run(work()))


def assert_same(turns: Turns, again: Turns) -> None:
    assert again.document.data == turns.document.data and again.base == turns.base
    assert len(again.turns) == len(turns.turns)
    for old, new in zip(turns.turns, again.turns, strict=True):
        assert (new.number, new.instruction, new.region, new.based_on) == (
            old.number,
            old.instruction,
            old.region,
            old.based_on,
        )
        assert (new.failure, new.applied, new.base.data) == (old.failure, old.applied, old.base.data)
        assert (new.proposal is None) == (old.proposal is None) and (new.review is None) == (old.review is None)
        if old.proposal is not None and new.proposal is not None:
            assert new.proposal.result.data == old.proposal.result.data
            assert new.proposal.stats == old.proposal.stats and new.proposal.report == old.proposal.report
            assert new.proposal.plan.engine == old.proposal.plan.engine
        if old.review is not None and new.review is not None:
            assert new.review.decisions == old.review.decisions and new.review.hunks == old.review.hunks
            assert new.review.data() == old.review.data()


def through_the_disk(turns: Turns) -> Turns:
    keeper = SessionKeeper()
    keeper.save(saved_session(turns))
    keeper.close()
    (left,) = left_sessions().sessions
    keeper.forget()
    return resumed_turns(left.session)


def test_turns_decisions_and_figures_come_back(file: Path) -> None:
    turns = asked(Turns(open_document(file)), CHANGED)
    assert turns.current is not None and turns.current.review is not None
    turns = turns.decided(turns.current.review.decide(1, Decision.ACCEPTED)).switch_base(1)
    turns = asked(turns, OTHER)
    turns = turns.begin("Again.", None).failed("The reply is empty.")
    again = through_the_disk(turns)
    assert_same(turns, again)
    assert again.document == turns.document  # owner and mode are the file's own


def test_a_region_and_edits_by_hand_come_back(file: Path) -> None:
    turns = asked(Turns(open_document(file)), CHANGED, Region(1, 20))
    assert turns.current is not None and turns.current.review is not None
    review = turns.current.review.edit(1, ["by hand"]).decide(1, Decision.ACCEPTED)
    assert_same(turns.decided(review), through_the_disk(turns.decided(review)))
    assert b"by hand" in review.data()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_any_bytes_and_decisions_come_back(data: st.DataObject) -> None:
    document = data.draw(documents())
    reply = data.draw(rewrites(document))
    turns = Turns(replace(document, target=Path("/nowhere/file")))
    try:
        turns = asked(turns, reply)
    except AppError:
        return  # a reply that is refused makes no session
    assert turns.current is not None and turns.current.review is not None
    review = turns.current.review
    for index in range(1, len(review.hunks) + 1):
        review = review.decide(index, data.draw(st.sampled_from(list(Decision))))
    turns = turns.decided(review)
    assert_same(turns, resumed_turns(saved_session(turns)))


def saved(file: Path) -> SavedSession:
    turns = asked(Turns(open_document(file)), CHANGED)
    return saved_session(turns)


def test_how_the_file_is_today(file: Path) -> None:
    session = saved(file)
    assert standing(session)[0] is Standing.SAME
    file.write_text("# new first line\n" + SOURCE)
    assert standing(session)[0] is Standing.CHANGED
    file.write_text("nothing of it is left\n")
    found, sentence = standing(session)
    assert found is Standing.STALE and "1 hunk does not fit it now" in sentence
    file.write_bytes(b"\x00")
    assert standing(session)[0] is Standing.GONE
    file.unlink()
    found, sentence = standing(session)
    assert found is Standing.GONE and "is gone" in sentence
    assert_sentence(sentence)


def test_a_file_that_is_gone_can_still_be_looked_at(file: Path) -> None:
    turns = asked(Turns(open_document(file)), CHANGED)
    session = saved_session(turns)
    file.unlink()
    assert_same(turns, resumed_turns(session))


@pytest.mark.parametrize(
    "change",
    [
        {"proposed": SOURCE.encode()},
        {"proposed": b"\xff\n"},
        {"facts": {}},
        {"based_on": 1},
        {"lines": "90:99"},
        {"base": b""},
    ],
)
def test_what_does_not_lead_to_the_same_bytes_is_refused(file: Path, change: dict[str, object]) -> None:
    session = saved(file)
    turn = replace(session.turns[0], **change)  # type: ignore[arg-type]
    with pytest.raises(StateError, match="cannot be opened again") as caught:
        resumed_turns(replace(session, turns=(turn,)))
    assert_sentence(str(caught.value))


def test_a_base_that_is_not_there_is_refused(file: Path) -> None:
    with pytest.raises(StateError, match="no turn 7"):
        resumed_turns(replace(saved(file), base=7))
