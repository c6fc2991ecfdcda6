"""The server as clients meet it: answers, streams, refusals, the queue, and what happens when a client goes away."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from editor_engine import errors
from editor_engine.events import Finished, Text
from editor_engine.wire import EXTENSION_FIELDS, event_from_json, identity_from_json
from tests.support.served_engine import MODEL, EchoEngine, LiveServer, chat, data_of, live_server, tcp

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def echo() -> EchoEngine:
    return EchoEngine()


@pytest.fixture(scope="module")
def shared(echo: EchoEngine) -> Iterator[LiveServer]:
    """A server for tests that only ask."""
    with live_server(echo, tcp()) as server:
        yield server


def test_a_completion_is_the_reply_with_its_figures() -> None:
    with live_server(EchoEngine(), tcp()) as server, server.client() as client:
        answer = client.post(CHAT, json=chat("one two three", max_tokens=2))
    assert answer.status_code == 200
    whole = answer.json()
    assert whole["object"] == "chat.completion"
    assert whole["model"] == MODEL
    assert whole["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "one two ", "refusal": None},
            "logprobs": None,
            "finish_reason": "length",
        }
    ]
    assert whole["usage"]["prompt_tokens"] == 3
    assert whole["usage"]["completion_tokens"] == 2
    assert "redraft" not in whole


def test_a_stream_says_the_same_in_pieces() -> None:
    with live_server(EchoEngine(), tcp()) as server, server.client() as client:
        body = chat("one two three", stream=True, stream_options={"include_usage": True})
        with client.stream("POST", CHAT, json=body) as answer:
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            chunks = data_of(answer.iter_lines())
        whole = client.post(CHAT, json=chat("one two three")).json()
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    deltas = [choice for chunk in chunks for choice in chunk["choices"]]
    assert deltas[0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(choice["delta"].get("content", "") for choice in deltas) == "one two three "
    assert [choice["finish_reason"] for choice in deltas] == [None] * 4 + ["stop"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole["usage"]
    assert not any("redraft" in chunk for chunk in chunks)


def test_a_client_of_ours_gets_every_event() -> None:
    engine = EchoEngine()
    with live_server(engine, tcp()) as server, server.client() as client:
        with client.stream("POST", CHAT, json=chat("one two", stream=True, redraft={})) as answer:
            chunks = data_of(answer.iter_lines())
        whole = client.post(CHAT, json=chat("one two", redraft={})).json()
    events = [event_from_json(chunk["redraft"]) for chunk in chunks if "redraft" in chunk]
    assert events == list(engine.complete(engine.requests[0]))
    assert "".join(event.text for event in events if isinstance(event, Text)) == "one two "
    assert event_from_json(whole["redraft"]) == events[-1]
    assert isinstance(events[-1], Finished)


def test_the_request_arrives_as_it_was_meant() -> None:
    engine = EchoEngine()
    extension = {
        "prefill": "```python\n",
        "source": "a = 1\n",
        "source_line": 7,
        "stop_line": "```",
        "anchor": ["b = 2"],
        "anchor_blank_lines": 2,
        "score": True,
        "draft": False,
    }
    assert set(extension) == set(EXTENSION_FIELDS)
    body = chat("x", max_completion_tokens=5, temperature=0.5, seed=-1, stop="END", redraft=extension)
    body["messages"].insert(
        0, {"role": "developer", "content": [{"type": "text", "text": t} for t in ("Be ", "brief.")]}
    )
    with live_server(engine, tcp()) as server, server.client() as client:
        assert client.post(CHAT, json=body).status_code == 200
    (request,) = engine.requests
    assert {name: getattr(request, name) for name in extension} == {**extension, "anchor": ("b = 2",)}
    assert [(message.role, message.content) for message in request.messages] == [("system", "Be brief."), ("user", "x")]
    assert (request.max_tokens, request.temperature, request.seed, request.stop) == (5, 0.5, 2**64 - 1, ("END",))


def test_left_out_fields_mean_greedy_and_as_long_as_fits() -> None:
    engine = EchoEngine()
    with live_server(engine, tcp()) as server, server.client() as client:
        client.post(CHAT, json=chat("x", prediction={"type": "content", "content": "old text"}))
    (request,) = engine.requests
    assert (request.temperature, request.seed, request.stop, request.draft) == (0.0, 0, (), True)
    assert request.max_tokens >= engine.info.context_length
    assert request.source == "old text"


def test_prediction_tokens_are_counted_as_openai_means_them() -> None:
    with live_server(EchoEngine(), tcp()) as server, server.client() as client:
        answer = client.post(CHAT, json=chat("x", prediction={"type": "content", "content": "four words of it"}))
    details = answer.json()["usage"]["completion_tokens_details"]
    assert details == {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 4}
    assert answer.json()["usage"]["completion_tokens"] == 1


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"redraft": {"colour": 1}}, "redraft.colour"),
        ({"redraft": {"fidelity": "loose"}}, "redraft.fidelity"),
        ({"colour": 1}, "colour"),
        ({"n": 2}, "n"),
        ({"top_p": 0.9}, "top_p"),
        ({"logprobs": True}, "logprobs"),
        ({"tools": [{}]}, "tools"),
        ({"frequency_penalty": 0.1}, "frequency_penalty"),
        ({"response_format": {"type": "json_object"}}, "response_format.type"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": 3}, "temperature"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"stop": ""}, "stop"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "messages.0.content"),
        ({"prediction": {"type": "content", "content": "a"}, "redraft": {"source": "b"}}, "prediction"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(
    echo: EchoEngine, shared: LiveServer, change: dict[str, object], param: str
) -> None:
    before = len(echo.asked)
    with shared.client() as client:
        answer = client.post(
            CHAT, content=json.dumps(chat("x", **change)), headers={"content-type": "application/json"}
        )
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert len(echo.asked) == before


@pytest.mark.parametrize(
    "defaults",
    [
        {"n": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {}, "logprobs": False},
        {"tools": [], "tool_choice": "none", "response_format": {"type": "text"}, "store": False, "user": "me"},
        {name: None for name in ("n", "top_p", "tools", "stop", "seed", "temperature", "max_tokens", "redraft")},
    ],
)
def test_fields_that_ask_for_nothing_are_accepted(shared: LiveServer, defaults: dict[str, object]) -> None:
    with shared.client() as client:
        assert client.post(CHAT, json=chat("x", **defaults)).status_code == 200


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.ContextOverflowError("Too long."), 400, "context_length_exceeded"),
        (errors.RequestError("No."), 400, "request"),
        (errors.OutOfMemoryError("Full."), 503, "out_of_memory"),
        (errors.NumericsError("NaN."), 500, "numerics"),
        (MemoryError(), 503, "out_of_memory"),
        (ZeroDivisionError("the words of it"), 500, "internal"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_is_an_answer_and_the_next_request_runs(
    echo: EchoEngine, shared: LiveServer, error: BaseException, status: int, code: str, stream: bool
) -> None:
    with shared.client() as client:
        echo.failure = error
        answer = client.post(CHAT, json=chat("x", stream=stream))
        if stream:  # it came after the first event
            assert answer.status_code == 200
            said: Any = data_of(iter(answer.text.splitlines()))[-1]
        else:
            assert answer.status_code == status
            said = answer.json()
        assert said["error"]["code"] == code
        assert "the words of it" not in answer.text
        assert client.post(CHAT, json=chat("x")).status_code == 200


def test_facts(tmp_path: Path) -> None:
    engine = EchoEngine()
    with live_server(engine, tcp()) as server, server.client() as client:
        assert [model["id"] for model in client.get("/v1/models").json()["data"]] == [MODEL]
        assert client.get(f"/v1/models/{MODEL}").json()["id"] == MODEL
        assert client.get("/v1/models/other").json()["error"]["code"] == "model_not_found"
        assert client.post(CHAT, json={**chat("x"), "model": "other"}).status_code == 404
        health = client.get("/health").json()
        assert health["status"] == "ready"
        identity = identity_from_json(health["engine"])
        assert (identity.sha256, identity.contract_version, identity.notes) == ("e" * 64, 1, ("a note",))
        assert identity.version == health["version"]
        counts = client.post("/v1/redraft/count", json=chat("a b c", redraft={"source": "d e"})).json()
        assert counts == {"prompt_tokens": 3, "source_tokens": 2}
        client.post(CHAT, json=chat("x y"))
        metrics = client.get("/metrics").text
        assert 'redraft_requests_total{outcome="stop"} 1.0' in metrics
        assert "redraft_output_tokens_total 2.0" in metrics
        assert 'redraft_state{state="ready"} 1.0' in metrics


@pytest.mark.parametrize("path", ["/", "/docs", "/v1/chat/completions/", "/v1/completions"])
def test_other_paths_are_404_in_the_same_shape(shared: LiveServer, path: str) -> None:
    with shared.client() as client:
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "http")
        wrong = client.get(CHAT)
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
