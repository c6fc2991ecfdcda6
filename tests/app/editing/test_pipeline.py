"""The flow of an edit: what is asked of the engine, what comes out in which order, what never is a proposal."""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.diff import join
from app.editing.document import open_bytes
from app.editing.language import detect_language
from app.editing.pipeline import EditOrder, EditPlan, Proposal, Replied, plan_edit, run_edit
from app.editing.prompt import ContextFile
from app.editing.region import Region
from app.engine_client import Capabilities
from app.errors import (
    AppError,
    EngineUnreachableError,
    FileTooLongError,
    InterruptedByUserError,
    RegionError,
    ReplyCutError,
    ReplyEmptyError,
    ReplyEndlessError,
    ReplyNotCodeError,
    UnchangedError,
    UsageError,
)
from editor_engine.events import EngineEvent, Finished, Started, Text
from editor_engine.requests import CancelFlag
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.scripted_client import ScriptedClient, endless, fenced, tokens_of, unending

Event = EngineEvent | Replied | Proposal


def planned(client: ScriptedClient, source: str = SOURCE, name: str = "sums.py", **order: object) -> EditPlan:
    document = open_bytes(source.encode(), name)
    return asyncio.run(plan_edit(document, EditOrder("Do.", **order), client))  # type: ignore[arg-type]


def events_of(plan: EditPlan, client: ScriptedClient, cancel: CancelFlag | None = None) -> list[Event]:
    async def work() -> list[Event]:
        async with aclosing(run_edit(plan, client, cancel or CancelFlag())) as events:
            return [event async for event in events]

    return asyncio.run(work())


def proposal_of(client: ScriptedClient, source: str = SOURCE, name: str = "sums.py", **order: object) -> Proposal:
    last = events_of(planned(client, source, name, **order), client)[-1]
    assert isinstance(last, Proposal)
    return last


def test_events_come_in_order() -> None:
    client = ScriptedClient(fenced(CHANGED))
    events = events_of(planned(client), client)
    assert isinstance(events[0], Started)
    assert [type(event) for event in events[-3:]] == [Finished, Replied, Proposal]
    assert "".join(event.text for event in events if isinstance(event, Text)) == CHANGED


def test_a_proposal_has_the_new_file_its_hunks_and_its_checks() -> None:
    proposal = proposal_of(ScriptedClient(fenced(CHANGED)))
    assert proposal.result.data == CHANGED.encode()
    assert join(proposal.plan.document, proposal.hunks) == CHANGED.encode()
    assert proposal.report.warnings == ()
    assert proposal.stats.output_tokens > 0


def test_the_request_has_the_file_the_opening_and_the_budget() -> None:
    client = ScriptedClient(fenced(CHANGED))
    context = ContextFile("limits.py", "LIMIT = 1\n", detect_language("limits.py", ""))
    proposal = proposal_of(client, context=(context,), draft=False)
    (request,) = client.requests
    assert request.source == SOURCE
    assert request.prefill == "```python\n"
    assert request.stop_line == "```"
    assert SOURCE in request.messages[-1].content and "LIMIT = 1" in request.messages[-1].content
    assert request.max_tokens == proposal.plan.budget.max_tokens == len(tokens_of(SOURCE)) + 256
    assert not request.draft


def test_planning_runs_nothing() -> None:
    client = ScriptedClient(fenced(CHANGED))
    plan = planned(client, lines="11:14")
    assert plan.region == Region(11, 14)
    assert client.requests == []


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ({"lines": "1:99"}, RegionError),
        ({"symbol": "median"}, RegionError),
        ({"lines": "1:2", "symbol": "mean"}, UsageError),
    ],
)
def test_an_order_that_makes_no_sense_never_reaches_the_engine(order: dict[str, str], error: type[AppError]) -> None:
    client = ScriptedClient("", failures={"describe": EngineUnreachableError("never asked")})
    with pytest.raises(error):
        planned(client, **order)


FREE_TEXT = Capabilities(prefill=False, tokenise=False, region=False)


def test_where_we_cannot_open_the_reply_one_block_is_read_out_of_it() -> None:
    client = ScriptedClient(f"Sure:\n```python\n{CHANGED}```\nDone.", capabilities=FREE_TEXT)
    proposal = proposal_of(client)
    assert proposal.result.data == CHANGED.encode() and proposal.plan.budget.estimated
    for reply in (CHANGED, f"```\n{CHANGED}```\n```\n{CHANGED}```\n"):
        with pytest.raises(ReplyNotCodeError):
            proposal_of(ScriptedClient(reply, capabilities=FREE_TEXT))


@pytest.mark.parametrize("order", [{"lines": "11:14"}, {"symbol": "mean"}])
def test_a_region_is_refused_with_the_reason_where_we_cannot_open_the_reply(order: dict[str, str]) -> None:
    client = ScriptedClient("", capabilities=FREE_TEXT)
    with pytest.raises(RegionError, match="does not let us open its reply"):
        planned(client, **order)


def test_an_estimated_budget_says_so_and_an_unknown_context_refuses_nothing() -> None:
    client = ScriptedClient("", context_length=300, capabilities=FREE_TEXT)
    with pytest.raises(FileTooLongError, match="estimated"):
        planned(client)
    plan = planned(ScriptedClient("", capabilities=FREE_TEXT))
    replace(plan.budget, context=None).check(is_region=False)


def test_the_budget_is_exact() -> None:
    needed = planned(ScriptedClient("")).budget.needed
    planned(ScriptedClient("", context_length=needed))
    with pytest.raises(FileTooLongError, match=str(needed)):
        planned(ScriptedClient("", context_length=needed - 1))


@pytest.mark.parametrize(
    ("client", "error"),
    [
        (ScriptedClient(unending()), ReplyCutError),
        (ScriptedClient(endless("x = 1\n")), ReplyEndlessError),
        (ScriptedClient(fenced("")), ReplyEmptyError),
        (ScriptedClient(fenced(SOURCE)), UnchangedError),
    ],
)
def test_what_is_no_new_file_is_no_proposal_and_has_its_figures_all_the_same(
    client: ScriptedClient, error: type[AppError]
) -> None:
    seen: list[Event] = []

    async def work() -> None:
        plan = await plan_edit(open_bytes(SOURCE.encode(), "sums.py"), EditOrder("Do."), client)
        async with aclosing(run_edit(plan, client, CancelFlag())) as events:
            async for event in events:
                seen.append(event)

    with pytest.raises(error):
        asyncio.run(work())
    assert isinstance(seen[-1], Replied)


def test_a_cut_reply_is_cut_at_the_budget() -> None:
    client = ScriptedClient(unending())
    plan = planned(client)
    with pytest.raises(ReplyCutError):
        events_of(plan, client)
    assert client.requests[0].max_tokens == plan.budget.max_tokens


def test_a_flag_set_meanwhile_is_an_interrupt() -> None:
    cancel = CancelFlag()
    client = ScriptedClient(fenced(CHANGED), at_token={10: cancel.set})
    with pytest.raises(InterruptedByUserError):
        events_of(planned(client), client, cancel)
    assert client.open_calls == 0


def test_leaving_early_leaves_the_engine() -> None:
    client = ScriptedClient(unending())
    plan = planned(client)

    async def work() -> None:
        async with aclosing(run_edit(plan, client, CancelFlag())) as events:
            async for event in events:
                if isinstance(event, Text):
                    return

    asyncio.run(work())
    assert client.open_calls == 0


def test_an_engine_that_stops_without_a_word_is_named() -> None:
    class Mute(ScriptedClient):
        async def complete(self, request, cancel):  # type: ignore[no-untyped-def]
            yield Started(1, 0, 1)

    client = Mute("")
    with pytest.raises(EngineUnreachableError):
        events_of(planned(client), client)


def test_a_region_with_its_end_deleted_ends_at_its_anchor() -> None:
    def reply(request: object) -> Iterable[str]:
        return tokens_of("\n\ndef spread(items):\n    low = 1\n")

    proposal = proposal_of(ScriptedClient(reply), symbol="mean", max_deletions=9)
    expected = SOURCE[: SOURCE.index("def mean")] + SOURCE[SOURCE.index("def spread") :]
    assert proposal.result.data.decode().replace("\n\n\n\n\n", "\n\n\n") == expected


LINE = st.sampled_from(["a = 1", "    b", "", "}", "c", "```", "# é"])
ENDED = st.tuples(LINE, st.sampled_from(["\n", "\r\n"]))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(ENDED, min_size=2, max_size=12), st.lists(LINE, max_size=5), st.booleans(), st.data())
def test_nothing_outside_a_region_ever_changes(
    lines: list[tuple[str, str]], new: list[str], cut: bool, data: st.DataObject
) -> None:
    """Not one byte, even where lines inside and outside are the same text with other line ends."""
    raw = [line + ending for line, ending in lines]
    if cut and raw[-1].strip():
        raw[-1] = raw[-1].rstrip()
    source = "".join(raw)
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    reply = "".join(f"{line}\n" for line in [*new, *(line for line, _ in lines[last:])])
    client = ScriptedClient(fenced(reply))
    try:
        proposal = proposal_of(client, source, "a.txt", lines=f"{first}:{last}", max_deletions=99)
    except AppError:
        return
    head, tail = "".join(raw[: first - 1]), "".join(raw[last:])
    made = proposal.result.data.decode()
    assert made.startswith(head) and made.endswith(tail) and len(made) >= len(head) + len(tail)
    for hunk in proposal.hunks:
        for change in hunk.changes:
            assert first - 1 <= change.first <= change.end <= last
