"""Asking again: a cut reply goes on where it was; a hunk done anew changes its own lines only."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing

import pytest

from app.editing.again import continue_plan, redo_order, redone
from app.editing.document import open_bytes
from app.editing.pipeline import EditOrder, EditPlan, Proposal, live_diff, plan_edit, run_edit
from app.editing.review import Decision, Review
from app.errors import FileTooLongError, ReplyCutError, UsageError
from editor_engine.requests import CancelFlag, CompletionRequest
from tests.support.scripted_client import ScriptedClient, fenced, tokens_of

LINES = [f"line_{number} = {number}" for number in range(60)]
SOURCE = "".join(f"{line}\n" for line in LINES)
NEW = SOURCE.replace("line_3 = 3", "three = 3").replace("line_50 = 50", "fifty = 50")


def plan_of(client: ScriptedClient, **order: str) -> EditPlan:
    return asyncio.run(plan_edit(open_bytes(SOURCE.encode(), "x.py"), EditOrder("Do.", **order), client))


def run(plan: EditPlan, client: ScriptedClient) -> Proposal:
    async def work() -> Proposal:
        async with aclosing(run_edit(plan, client, CancelFlag())) as events:
            async for event in events:
                if isinstance(event, Proposal):
                    return event
        raise AssertionError("no proposal")

    return asyncio.run(work())


def going_on(text: str) -> Callable[[CompletionRequest], Iterable[str]]:
    """A model that says `text`, from where the opening of the reply has got to."""

    def reply(request: CompletionRequest) -> Iterable[str]:
        said = request.prefill.partition("\n")[2]
        assert text.startswith(said)
        return tokens_of(f"{text[len(said) :]}{request.stop_line}\n")

    return reply


@pytest.mark.parametrize("size", [40, 200, 201, 202, 203, 204, 205, 206, 300])
def test_a_cut_reply_goes_on(size: int) -> None:
    client = ScriptedClient(going_on(NEW))
    plan = plan_of(client)
    whole = run(plan, client)
    live = live_diff(plan)

    async def cut() -> None:
        request = plan.prompt.request(size)
        async with aclosing(client.complete(request, CancelFlag())) as events:
            async for event in events:
                if hasattr(event, "spans"):
                    live.feed(event)

    asyncio.run(cut())
    onward = asyncio.run(continue_plan(plan, live.text, client))
    proposal = run(onward, client)
    assert proposal.result.data == NEW.encode()
    assert proposal.hunks == whole.hunks
    assert client.requests[-1].prefill == plan.prompt.prefill + onward.prompt.carried
    # What is left to copy begins where the reply was, so that drafting goes on, too.
    request = client.requests[-1]
    assert request.source_line == 1 + LINES.index(request.source.partition("\n")[0]) == live_diff(onward).reached + 1
    assert request.source_line > 3
    again = asyncio.run(continue_plan(onward, live.text, client))
    assert again.prompt == onward.prompt


def test_a_reply_of_half_a_line_cannot_go_on() -> None:
    client = ScriptedClient(going_on(NEW))
    with pytest.raises(UsageError, match="whole"):
        asyncio.run(continue_plan(plan_of(client), "line_0", client))


def test_it_goes_on_before_a_line_that_is_known_and_not_blank() -> None:
    client = ScriptedClient("")
    plan = plan_of(client)
    for text, carried in [
        ("a\nb\nc", "a\nb\n"),
        ("a\nb\nc\n", "a\nb\n"),
        ("a\nb\n\n\n   ", "a\n"),
        ("a\n\nb", "a\n\n"),
    ]:
        assert asyncio.run(continue_plan(plan, text, client)).prompt.carried == carried


def test_going_on_needs_room() -> None:
    client = ScriptedClient(going_on(NEW))
    plan = plan_of(client)
    small = ScriptedClient(going_on(NEW), context_length=plan.budget.prompt + 10)
    short = plan.__class__(**{**vars(plan), "budget": plan.budget.__class__(1, 1, plan.budget.prompt + 10)})
    with pytest.raises(FileTooLongError):
        asyncio.run(continue_plan(short, NEW[:200], small))


def test_lines_that_may_begin_the_anchor_are_written_again() -> None:
    client = ScriptedClient("")
    plan = plan_of(client, lines="3:5")
    onward = asyncio.run(continue_plan(plan, "a\nline_2 = 2\n\nline_5 = 5\nx", client))
    assert onward.prompt.carried == "a\n"


def test_a_cut_reply_is_refused_until_it_is_whole() -> None:
    client = ScriptedClient(lambda request: (f"value_{number} = {number}\n" for number in range(10_000)))
    plan = plan_of(client)
    with pytest.raises(ReplyCutError):
        run(plan, client)


def test_a_hunk_is_done_anew_within_its_lines() -> None:
    client = ScriptedClient(fenced(NEW))
    proposal = run(plan_of(client), client)
    review = Review.start(proposal.plan.document, proposal.hunks).decide(2, Decision.ACCEPTED)
    order = redo_order(proposal.plan, proposal.hunks[0], "call it drei")
    assert order.lines == "4:4"
    assert "call it drei" in order.instruction and "three = 3" in order.instruction
    redo = ScriptedClient(lambda request: tokens_of("drei = 3\nline_4 = 4\n"))
    plan = asyncio.run(plan_edit(proposal.plan.document, order, redo))
    after = redone(review, 1, run(plan, redo))
    assert after.decisions == (Decision.UNDECIDED, Decision.ACCEPTED)
    data = after.decide(1, Decision.ACCEPTED).data()
    assert data == NEW.replace("three = 3", "drei = 3").encode()


def test_added_lines_are_done_anew_with_their_neighbours() -> None:
    client = ScriptedClient(fenced(SOURCE.replace("line_9 ", "new = 1\nline_9 ")))
    proposal = run(plan_of(client), client)
    assert redo_order(proposal.plan, proposal.hunks[0], "no").lines == "9:10"
    with pytest.raises(UsageError):
        redo_order(proposal.plan, proposal.hunks[0], " ")
