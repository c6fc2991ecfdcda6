"""Refusals as servers word them, and as users read them."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clients.server_words import refusal_in_stream, refusal_of

HERE = "http://localhost:1"

# Bodies as the servers send them, from their sources and from a real llama-server.
OPENAI_LONG = {"error": {"message": "maximum context length is 8192 tokens", "code": "context_length_exceeded"}}
VLLM_LONG = {"error": {"message": "This model's maximum context length is 4096 tokens.", "type": "BadRequestError"}}
LLAMA_LONG = {
    "error": {
        "code": 400,
        "message": "request (2069 tokens) exceeds the available context size (512 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 2069,
        "n_ctx": 512,
    }
}
OURS_LONG = {
    "error": {"message": "The prompt has 9 tokens; the model's context holds 8.", "code": "context_length_exceeded"}
}


@pytest.mark.parametrize("body", [OPENAI_LONG, VLLM_LONG, LLAMA_LONG, OURS_LONG])
def test_too_long_is_known(body: object) -> None:
    refusal = refusal_of(HERE, 400, {}, json.dumps(body), None)
    assert refusal.too_long and not refusal.passing and "too long" in refusal.sentence


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (401, {"error": {"message": "Incorrect API key"}}, "wants a key; set REDRAFT_ENGINE_KEY"),
        (403, {"detail": "no"}, "forbids the request: no."),
        (404, {"error": {"message": "model 'x' not found", "code": "model_not_found"}}, "does not have this model"),
        (404, {"error": "model 'x' not found"}, "does not have this model"),
        (404, {"detail": "Not Found"}, "no OpenAI-compatible server"),
        (404, "<html>nginx</html>", "no OpenAI-compatible server"),
        (413, "", "too large"),
        (429, {"error": {"message": "slow down"}}, "too many requests; try again later: slow down."),
        (302, "", "another address"),
        (500, {"object": "error", "message": "boom"}, "answered 500: boom."),
        (418, "[1]", "answered 418"),
        (400, {"error": None}, "answered 400"),
    ],
)
def test_statuses_have_words(status: int, body: object, words: str) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    sentence = refusal_of(HERE, status, {}, text, None).sentence
    assert words in sentence and HERE in sentence


def test_a_key_that_is_not_accepted_is_told_from_one_that_lacks_and_is_never_repeated() -> None:
    body = json.dumps({"error": {"message": "Incorrect API key provided: sk-secret"}})
    sentence = refusal_of(HERE, 401, {}, body, "sk-secret").sentence
    assert "does not accept the key" in sentence and "sk-secret" not in sentence
    assert "sk-secret" not in refusal_in_stream(HERE, {"message": "bad sk-secret"}, "sk-secret").sentence


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("1.5", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_what_a_server_asks_to_wait(value: str, wait: float | None) -> None:
    refusal = refusal_of(HERE, 429, {"retry-after": value}, "", None)
    assert refusal.wait_s == wait and refusal.passing


def test_a_moment_to_wait_for() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=3600), usegmt=True)
    wait = refusal_of(HERE, 503, {"retry-after": later}, "", None).wait_s
    assert wait is not None and 3000 < wait <= 3600


def test_an_error_in_a_stream_about_the_context_is_known() -> None:
    refusal = refusal_in_stream(HERE, LLAMA_LONG["error"], None)
    assert refusal.too_long and "exceeds the available context" in refusal.sentence


@settings(derandomize=True, deadline=None)
@given(st.integers(300, 599), st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_answer_is_one_short_sentence(status: int, text: str) -> None:
    sentence = refusal_of(HERE, status, {}, text, None).sentence
    assert "\n" not in sentence and len(sentence) < 500 and sentence[-1] in ".…!?"
