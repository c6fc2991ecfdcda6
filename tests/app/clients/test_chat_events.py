"""Chunks as events: any chunk a server may send, cut anywhere, and the figures of each dialect."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clients.chat_events import ChatEvents, Usage, usage_of
from editor_engine.decode.stopping import ReplyEnd
from editor_engine.events import EngineEvent, Finished, FinishReason, Text
from editor_engine.requests import CompletionRequest, Message

REQUEST = CompletionRequest((Message("user", "Do."),), 50, source="a = 1\nb = 2\n", stop_line="```", anchor=("end",))


def clock() -> Any:
    return itertools.count().__next__


def said(chat: ChatEvents, pieces: list[str], reason: str | None = "stop") -> list[EngineEvent]:
    events = [event for piece in pieces for event in chat.take({"choices": [{"delta": {"content": piece}}]})]
    events += chat.take({"choices": [{"delta": {}, "finish_reason": reason}]})
    return [*events, *chat.finish()]


def text_of(events: list[EngineEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


def cut(text: str, cuts: list[int]) -> list[str]:
    places = sorted({place % (len(text) + 1) for place in cuts})
    return [text[a:b] for a, b in itertools.pairwise([0, *places, len(text)])]


LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "", "end", "```", "``", "c", "  end"]), max_size=8)


@settings(derandomize=True, deadline=None)
@given(LINES, st.booleans(), st.lists(st.integers(0, 99)))
def test_a_reply_ends_as_an_engine_of_ours_ends_it_however_it_is_cut(
    lines: list[str], whole: bool, cuts: list[int]
) -> None:
    text = "\n".join(lines) + ("\n" if whole else "")
    end = ReplyEnd(REQUEST.stop_line, REQUEST.anchor, REQUEST.anchor_blank_lines)
    expected = end.feed(text)
    if end.reason is None:
        expected += end.finish(FinishReason.STOP)
    events = said(ChatEvents(REQUEST, clock(), opened=True), cut(text, cuts))
    assert text_of(events) == expected
    assert isinstance(events[-1], Finished) and events[-1].reason is end.reason
    for event in events:
        if isinstance(event, Text):
            assert sum(span.chars for span in event.spans) == len(event.text)


@settings(derandomize=True, deadline=None)
@given(LINES, st.lists(st.integers(0, 99)))
def test_free_text_passes_through_whole(lines: list[str], cuts: list[int]) -> None:
    text = "\n".join(lines)
    events = said(ChatEvents(REQUEST, clock(), opened=False), cut(text, cuts))
    assert text_of(events) == text


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 9999)))
def test_a_loop_is_stopped_at_the_same_place_however_it_is_cut(cuts: list[int]) -> None:
    text = "again = 1\n" * 200
    events = said(ChatEvents(REQUEST, clock(), opened=True), cut(text, cuts))
    assert isinstance(events[-1], Finished) and events[-1].reason is FinishReason.REPETITION
    whole = text_of(said(ChatEvents(REQUEST, clock(), opened=True), [text]))
    assert text_of(events) == whole and len(whole) < len(text)


def test_a_loop_that_the_source_has_is_none() -> None:
    text = "again = 1\n" * 100
    request = CompletionRequest((Message("user", "Do."),), 50, source=text)
    events = said(ChatEvents(request, clock(), opened=True), [text])
    assert text_of(events) == text and isinstance(events[-1], Finished) and events[-1].reason is FinishReason.STOP


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        *(("stop", FinishReason.STOP), ("length", FinishReason.LENGTH), (None, FinishReason.LENGTH)),
        *(("content_filter", FinishReason.LENGTH), ("abort", FinishReason.LENGTH), ("", FinishReason.LENGTH)),
    ],
)
def test_only_a_stop_is_an_end(reason: str | None, expected: FinishReason) -> None:
    events = said(ChatEvents(REQUEST, clock(), opened=True), ["a\n"], reason)
    assert isinstance(events[-1], Finished) and events[-1].reason is expected


HUGE = st.sampled_from([10**400, -(10**400), 1 << 1024, 10**30])
SCALARS = st.none() | st.booleans() | st.integers() | HUGE | st.floats() | st.text(max_size=5)
NAMES = st.sampled_from(
    [
        *("choices", "delta", "content", "finish_reason", "usage", "timings", "metrics", "prompt_progress"),
        *("speculative_decoding", "completion_tokens_details", "prompt_tokens_details", "processed", "total", "cache"),
        *("prompt_tokens", "completion_tokens", "predicted_n", "predicted_ms", "prompt_per_second", "draft_n"),
        *("num_draft_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens", "cached_tokens"),
    ]
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6))


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.lists(st.dictionaries(NAMES, JSON, max_size=6), max_size=4))
def test_no_chunk_is_too_strange(chunks: list[dict[str, Any]]) -> None:
    chat = ChatEvents(REQUEST, clock(), opened=True)
    events = [event for chunk in chunks for event in chat.take(chunk)]
    *_, last = [*events, *chat.finish()]
    assert isinstance(last, Finished)


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), 10**400, -1, 0, True, "9"])
def test_what_cannot_be_a_figure_is_none(figure: object) -> None:
    timings = {"predicted_n": 5, "predicted_ms": figure, "prompt_per_second": figure}
    usage = usage_of({"timings": timings}, Usage())
    assert (usage.output, usage.decode_tok_s, usage.prefill_tok_s) == (5, None, None)
    assert usage_of({"timings": {"predicted_n": 10**400, "predicted_ms": 1}}, Usage()) == Usage()


def test_zeros_of_servers_that_know_no_predictions_are_no_figures() -> None:
    details = {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}
    assert usage_of({"usage": {"completion_tokens_details": details}}, Usage()).prediction is None


def test_later_chunks_add_and_do_not_take_away() -> None:
    first = usage_of({"usage": {"prompt_tokens": 7}, "timings": {"draft_n": 4, "draft_n_accepted": 3}}, Usage())
    second = usage_of({"usage": {"completion_tokens": 5}}, first)
    assert (second.prompt, second.output, second.drafted, second.accepted) == (7, 5, 4, 3)
