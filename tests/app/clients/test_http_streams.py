"""Every way a stream of another program's server can go wrong, and what the client makes of it."""

import asyncio
import dataclasses
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clients.http import HttpClient
from app.errors import (
    AppError,
    EngineUnreachableError,
)
from editor_engine.events import Finished, FinishReason, Prefill, Started, Text
from editor_engine.requests import CancelFlag
from tests.support import dialects
from tests.support.dialects import Dialect, chunk, event
from tests.support.http_clients import REQUEST, client_of, completed, run, stats_of, text_of


def streaming(*pieces: Any, **timeouts: float) -> tuple[Dialect, HttpClient]:
    dialect = dialects.vllm(lambda body: "")
    dialect.stream = list(pieces)
    return dialect, client_of(dialect, **timeouts)


def test_quirks_of_streams_change_nothing() -> None:
    whole = b"".join(
        [
            b": keep-alive\r\n\r\n",
            event({"choices": None}),
            event({"choices": [None]}),
            event({"choices": [{"delta": None}]}),
            event({"choices": [{"delta": {"content": None, "role": "assistant"}}], "usage": None, "timings": 3}),
            event(chunk({"content": "é€😀\n"})).replace(b"\n", b"\r\n"),
            event({"choices": [], "usage": {"prompt_tokens": "many", "completion_tokens": True}}),
            b"event: ping\ndata\n\n".replace(b"data\n", b""),
            event(chunk({"content": "b\n"}, "stop")),
        ]
    )
    for size in (1, 2, 3, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        _, client = streaming(*pieces)
        events = run(client, completed)
        assert text_of(events) == "é€😀\nb\n"
        assert isinstance(events[-1], Finished) and events[-1].reason is FinishReason.STOP
        assert stats_of(events).prompt_tokens is None


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([event({"error": {"message": "out of memory", "code": 500}})], "failed while it answered: out of memory"),
        ([event(chunk({"content": "a"})), event({"error": "boom"})], "boom"),
        ([event("{nonsense")], "no JSON"),
        ([event("[1]")], "no JSON object"),
        ([event("[" * 100_000)], "no JSON"),
        ([event(chunk({"content": "a"})), httpx2.ReadError("reset")], "broke the connection off"),
        ([event(chunk({"content": "a"})), httpx2.RemoteProtocolError("cut")], "broke the connection off"),
    ],
)
def test_what_goes_wrong_inside_a_stream_is_told(pieces: list[Any], words: str) -> None:
    dialect, client = streaming(*pieces)
    with pytest.raises(EngineUnreachableError, match=words):
        run(client, completed)
    assert len(dialect.bodies) == 1  # never again once there was a chunk


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([event(chunk({"content": "a\n"}))], "without saying that it is whole"),
        ([event(chunk({"content": "a\n"})), event("[DONE]")], "without saying that it is whole"),
        ([], "is this the address"),
        ([event("[DONE]")], "is this the address"),
        ([b"<html>\n<p>Welcome</p></html>"], "is this the address"),
        ([b'{"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}'], "is this the address"),
        ([event({"choices": 5})], "is this the address"),
        ([event(chunk({"refusal": "No."}, "content_filter"))], "of its own: content_filter"),
        ([event(chunk({"content": "a\n"}, "tool\ncalls"))], "of its own: tool calls"),
    ],
)
def test_what_is_no_whole_reply_is_told_and_not_called_cut_at_the_limit(pieces: list[Any], words: str) -> None:
    _, client = streaming(*pieces)
    with pytest.raises(EngineUnreachableError, match=words):
        run(client, completed)


def test_a_reply_at_the_limit_and_a_prefill_alone_are_no_failures() -> None:
    _, client = streaming(event(chunk({"content": "a\n"}, "length")))
    last = run(client, completed)[-1]
    assert isinstance(last, Finished) and last.reason is FinishReason.LENGTH
    _, client = streaming(event("[DONE]"))
    warm = dataclasses.replace(REQUEST, max_tokens=0)
    assert isinstance(run(client, lambda client: completed(client, warm))[-1], Finished)


@pytest.mark.parametrize(
    ("before", "words"), [([], "no its first token|no first token"), ([event(chunk({"content": "a"}))], "next token")]
)
def test_silence_is_told_and_a_comment_does_not_break_it(before: list[bytes], words: str) -> None:
    async def work(_: HttpClient) -> None:
        never = asyncio.Event()
        _, client = streaming(*before, b": keep-alive\n\n", never, first=0.05, between=0.05)
        try:
            await completed(client)
        finally:
            await client.close()

    with pytest.raises(EngineUnreachableError, match=words):
        run(client_of(dialects.vllm(lambda body: "")), work)


@pytest.mark.parametrize("at", ["before the first token", "in the middle", "while it waits to try again"])
def test_cancelling_ends_at_once_and_closes_the_connection(at: str) -> None:
    async def work(_: HttpClient) -> None:
        never, cancel = asyncio.Event(), CancelFlag()
        dialect, client = streaming(event(chunk({"content": "a\npart"})), never)
        if at == "before the first token":
            dialect.stream = [never]
        if at == "while it waits to try again":
            dialect.refusals = [httpx2.Response(503)]

            async def forever(seconds: float) -> None:
                cancel.set()
                await never.wait()

            client._pause = forever
        events = []
        async with aclosing(client.complete(REQUEST, cancel)) as stream:
            async for found in stream:
                events.append(found)
                if isinstance(found, Started if at == "before the first token" else Text):
                    cancel.set()
        assert isinstance(events[-1], Finished) and events[-1].reason is FinishReason.CANCELLED
        assert text_of(events) == ("a\npart" if at == "in the middle" else "")
        assert all(stream.closed for stream in dialect.streams)
        await client.close()

    run(client_of(dialects.vllm(lambda body: "")), work)


def test_leaving_closes_the_connection() -> None:
    async def work(_: HttpClient) -> None:
        dialect, client = streaming(event(chunk({"content": "a\n"})), asyncio.Event())
        async with aclosing(client.complete(REQUEST, CancelFlag())) as events:
            async for found in events:
                if isinstance(found, Text):
                    break
        assert dialect.streams[0].closed
        await client.close()

    run(client_of(dialects.vllm(lambda body: "")), work)


def test_progress_of_the_prefill_is_passed_on() -> None:
    dialect = dialects.llama(lambda body: "")
    progress = {"total": 62, "cache": 10, "processed": 40, "time_ms": 5}
    dialect.stream = [event({**chunk(None), "prompt_progress": progress}), event(chunk({"content": "a"}, "stop"))]
    assert Prefill(30, 52) in run(client_of(dialect), completed)


PIECES = st.one_of(
    st.sampled_from(
        [
            *(event(chunk({"content": text})) for text in ("a\n", "```\n", "def f():\n", "é")),
            *(event(chunk({}, reason)) for reason in ("stop", "length")),
            *(event("[DONE]"), event("{"), event("[]"), event({"error": {"message": "no"}}), b": ping\n\n", b"\n"),
        ]
    ),
    st.binary(max_size=8),
    st.sampled_from([httpx2.ReadError("x"), httpx2.RemoteProtocolError("x"), httpx2.DecodingError("x")]),
)


@settings(derandomize=True, deadline=None)
@given(st.lists(PIECES, max_size=6), st.sampled_from([dialects.vllm, dialects.llama, dialects.ollama, dialects.cloud]))
def test_any_stream_ends_in_an_end_or_a_sentence(pieces: list[Any], make: Callable[..., Dialect]) -> None:
    dialect = make(lambda body: "")
    dialect.stream = pieces
    try:
        events = run(client_of(dialect), completed)
    except AppError as error:
        assert str(error).endswith((".", "…", "?", "!")) and "\n" not in str(error)
    else:
        assert isinstance(events[-1], Finished)
        assert sum(isinstance(event, Finished) for event in events) == 1
    assert all(stream.closed for stream in dialect.streams)
