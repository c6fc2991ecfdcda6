"""The live diff: final is final, the finished proposal agrees, and it is the same however the text is cut."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.alignment import Match, align
from app.editing.diff import Hunk, join, make_hunks
from app.editing.document import Document, open_bytes
from app.editing.language import TEXT
from app.editing.live import LEAST_RUN, LiveDiff
from app.editing.pipeline import EditOrder, HunkReady, Proposal, plan_edit, run_edit
from app.editing.prompt import EditPrompt, build_prompt
from app.editing.region import Region
from app.editing.result import make_result
from app.errors import AppError
from editor_engine.events import Provenance, Span, Text
from editor_engine.requests import CancelFlag
from tests.support.long_edits import long_documents, long_rewrites
from tests.support.scripted_client import ScriptedClient, fenced, tokens_of

LINES = tuple(f"line {number}" for number in range(40))


def prompt_of(document: Document, region: Region | None = None) -> EditPrompt:
    return build_prompt(document.lines, "Do.", TEXT, region)


def text_of(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def live_over(lines: Sequence[str] = LINES) -> LiveDiff:
    document = open_bytes(text_of(lines).encode(), "x")
    return LiveDiff(document, prompt_of(document))


def say(live: LiveDiff, text: str) -> tuple[Hunk, ...]:
    return live.feed(Text(text, (Span(len(text), Provenance.GENERATED, None),)))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data(), document=long_documents())
def test_what_was_final_is_how_the_proposal_begins(data: st.DataObject, document: Document) -> None:
    check_what_was_final(data, document)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=3_000)
@given(data=st.data(), document=long_documents())
def test_what_was_final_is_how_the_proposal_begins_in_full(data: st.DataObject, document: Document) -> None:
    check_what_was_final(data, document)


def check_what_was_final(data: st.DataObject, document: Document) -> None:
    count = len(document.lines)
    lines = None
    inside = document.lines
    if data.draw(st.booleans()):
        first = data.draw(st.integers(1, count))
        last = data.draw(st.integers(first, count))
        lines, inside = f"{first}:{last}", document.lines[first - 1 : last]
    reply = text_of(data.draw(long_rewrites(inside))) + data.draw(st.sampled_from(["", "\n\n", "```\n", "```"]))
    rest = text_of(document.lines[len(inside) + (int(lines.split(":")[0]) - 1 if lines else 0) :])

    async def work() -> tuple[list[Hunk], Proposal | None]:
        client = ScriptedClient(lambda request: tokens_of(f"{reply}{rest}{request.stop_line}\n"))
        plan = await plan_edit(document, EditOrder("Do.", lines=lines), client)
        final: list[Hunk] = []
        async with aclosing(run_edit(plan, client, CancelFlag())) as events:
            async for event in events:
                if isinstance(event, HunkReady):
                    final.append(event.hunk)
                elif isinstance(event, Proposal):
                    return final, event
        return final, None

    try:
        final, proposal = asyncio.run(work())
    except AppError:  # nothing to decide about, and nothing that was decided is written
        return
    assert proposal is not None
    assert proposal.hunks[: len(final)] == tuple(final)
    assert join(document, proposal.hunks) == proposal.result.data


@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data(), document=long_documents())
def test_it_does_not_matter_how_the_text_is_cut(data: st.DataObject, document: Document) -> None:
    reply = text_of(data.draw(long_rewrites(document.lines)))
    whole, cut = LiveDiff(document, prompt_of(document)), LiveDiff(document, prompt_of(document))
    say(whole, reply)
    collected: tuple[Hunk, ...] = ()
    rest = reply
    while rest:
        size = data.draw(st.integers(1, 200))
        collected += say(cut, rest[:size])
        rest = rest[size:]
        state = cut.state()
        assert collected == cut.hunks
        assert state.reached <= len(document.lines)
        assert len(state.lines) == len(state.origins)
        for match in state.matches:
            assert match.old + match.length <= state.reached
            assert (
                document.lines[match.old : match.old + match.length]
                == state.lines[match.new : match.new + match.length]
            )
    assert (cut.hunks, cut.pins, cut.state()) == (whole.hunks, whole.pins, whole.state())


def test_a_hunk_is_final_when_the_reply_has_followed_the_source_for_long_enough() -> None:
    live = live_over()
    assert say(live, text_of([*LINES[:5], "new", *LINES[6 : 5 + LEAST_RUN]])) == ()
    (hunk,) = say(live, text_of([LINES[5 + LEAST_RUN]]))
    assert [change.first for change in hunk.changes] == [5]
    changed = text_of([*LINES[:5], "new", *LINES[6:]])
    document = open_bytes(text_of(LINES).encode(), "x")
    assert (hunk,) == make_hunks(make_result(document, changed))


def test_a_stretch_left_out_needs_a_longer_run() -> None:
    live = live_over()
    assert say(live, text_of(LINES[:5])) == ()
    ready = [at for at in range(15, 40) if say(live, text_of([LINES[at]]))]
    assert ready == [15 + LEAST_RUN + 10 - 1]
    assert [(change.first, change.end) for change in live.hunks[0].changes] == [(5, 15)]


def test_lines_that_are_not_reached_are_pending() -> None:
    live = live_over()
    say(live, text_of([*LINES[:5], "new"]) + "lin")
    state = live.state()
    assert (state.reached, state.pending_end, state.whole_lines) == (5, 40, 6)
    assert state.lines[-1] == "lin"
    assert live.share == 5 / 40


def test_an_opening_said_again_is_no_line_and_keeps_origins_in_step() -> None:
    document = open_bytes(b"a = 1\nb = 2\n", "x.py")
    live = LiveDiff(document, prompt_of(document))
    say(live, prompt_of(document).opening + "\n")
    live.feed(Text("a = 1\n", (Span(6, Provenance.COPIED, 1),)))
    state = live.state()
    assert state.lines == ("a = 1",)
    assert state.origins == ((Span(5, Provenance.COPIED, 1),),)


def test_a_reply_we_did_not_open_and_a_region_without_an_anchor_make_nothing_final() -> None:
    document = open_bytes(text_of(LINES).encode(), "x")
    new = text_of(["new", *LINES[1:]])
    unopened = LiveDiff(document, prompt_of(document), opened=False)
    assert say(unopened, new) == ()
    tail = LiveDiff(document, prompt_of(document, Region(1, 40)))
    assert say(tail, new) == ()


def test_a_character_the_encoding_lacks_makes_nothing_final() -> None:
    document = open_bytes(text_of(LINES).encode(), "x", "latin-1")
    live = LiveDiff(document, prompt_of(document))
    assert say(live, text_of(["€", *LINES[1:30]])) == ()


def test_a_last_line_without_its_end_changes_after_all_and_joins_no_hunk_that_was_final() -> None:
    document = open_bytes(text_of(["", "", "", *LINES[:5], "}", *LINES[5:], "}"]).removesuffix("\n").encode(), "x")
    live = LiveDiff(document, prompt_of(document))
    new = text_of(["", "new", "", *LINES[:5], "}"])
    say(live, new)
    proposed = make_hunks(make_result(document, new, live.locked, live.pins))
    assert proposed[: len(live.hunks)] == live.hunks


def test_lines_that_repeat_are_tried_seldom() -> None:
    # A deletion among equal lines slides down to the end: no place is far enough from it.
    same = ["same"] * 400
    live = live_over([*same, "end"])
    say(live, text_of(["first", *same]))
    assert live.hunks == () or live.hunks[0].changes[0].first == 0


def test_a_pin_aligns_what_came_since_the_one_before_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    aligned: list[int] = []

    def counted(old: Sequence[str], new: Sequence[str]) -> list[Match]:
        aligned.append(len(new))
        return align(old, new)

    for user in ("live", "result"):
        monkeypatch.setattr(f"app.editing.{user}.align", counted)
    lines = [f"line {number}" for number in range(900)]
    live = live_over(lines)
    for number, line in enumerate(lines):
        say(live, f"{line}{'!' * (number % 30 == 9)}\n")
    assert len(live.pins) == 30
    assert sum(aligned) < 2 * len(lines)


def test_a_cut_reply_that_goes_on_begins_where_it_was() -> None:
    client = ScriptedClient(fenced(text_of(["new", *LINES[1:]])))
    document = open_bytes(text_of(LINES).encode(), "x")
    plan = asyncio.run(plan_edit(document, EditOrder("Do."), client))
    carried = text_of(["new", *LINES[1:20]])
    live = LiveDiff(document, replace(plan.prompt, carried=carried))
    assert len(live.hunks) == 1
    assert live.reached == 20
