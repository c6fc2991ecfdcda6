"""Other programs' servers behind the client: whole edits in each dialect, and every way a stream can go wrong."""

import json
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import httpx2
import pytest

from app.clients.exchange import Exchange
from app.clients.http import LONGEST_WAIT_S, PAUSES_S, HttpClient
from app.clients.place import parse_place
from app.editing.document import open_bytes
from app.editing.pipeline import EditOrder, Proposal, plan_edit, run_edit
from app.errors import (
    AppError,
    EngineUnreachableError,
    FileTooLongError,
    ModelError,
    RegionError,
    ReplyCutError,
    ReplyEndlessError,
    ReplyNotCodeError,
)
from editor_engine.events import EngineEvent, Finished, Stats
from editor_engine.requests import CancelFlag, CompletionRequest, Message
from tests.support import dialects
from tests.support.dialects import Dialect
from tests.support.http_clients import CHANGED, REQUEST, SOURCE, client_of, completed, run, stats_of, text_of

OPENED = [dialects.vllm, dialects.sglang, dialects.llama]
CLOSED = [dialects.ollama, dialects.cloud]


async def edited(client: HttpClient, **order: Any) -> Proposal:
    plan = await plan_edit(open_bytes(SOURCE.encode(), "a.py"), EditOrder("Rename sub.", **order), client)
    async with aclosing(run_edit(plan, client, CancelFlag())) as events:
        found = [event async for event in events]
    assert isinstance(found[-1], Proposal)
    return found[-1]


@pytest.mark.parametrize("make", OPENED)
def test_an_edit_where_we_open_the_reply(make: Callable[..., Dialect]) -> None:
    dialect = make(lambda body: f"{CHANGED}```\nThat is all.")
    proposal = run(client_of(dialect), edited)
    assert proposal.result.data.decode() == CHANGED
    (body,) = dialect.bodies
    assert body["messages"][-1] == {"role": "assistant", "content": "```python\n"}
    assert body["stop"] == ["\n```\n"] and body["temperature"] == 0 and body["stream"] is True
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    continues = (body.get("continue_final_message"), body.get("add_generation_prompt"))
    assert continues == ((None, None) if make is dialects.llama else (True, False))


@pytest.mark.parametrize("make", CLOSED)
def test_an_edit_where_the_reply_is_free_text(make: Callable[..., Dialect]) -> None:
    dialect = make(lambda body: f"Sure!\n```python\n{CHANGED}```\nDone.")
    proposal = run(client_of(dialect), edited)
    assert proposal.result.data.decode() == CHANGED
    assert dialect.bodies[0]["messages"][-1]["role"] == "user" and "stop" not in dialect.bodies[0]
    assert proposal.plan.engine.exactness == "not guaranteed" and proposal.plan.budget.estimated


@pytest.mark.parametrize("make", CLOSED)
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (CHANGED, ReplyNotCodeError),
        (f"```python\n{CHANGED}", ReplyCutError),
        (f"```python\n{CHANGED}```\n```\nx\n```\n", ReplyNotCodeError),
        ("```\n" + "again = 1\n" * 500 + "```\n", ReplyEndlessError),
    ],
)
def test_free_text_that_is_not_one_block_is_refused(
    make: Callable[..., Dialect], reply: str, error: type[AppError]
) -> None:
    with pytest.raises(error):
        run(client_of(make(lambda body: reply)), edited)


@pytest.mark.parametrize("make", CLOSED)
def test_regions_are_refused_with_the_reason_where_we_cannot_open_the_reply(make: Callable[..., Dialect]) -> None:
    dialect = make(lambda body: "")
    with pytest.raises(RegionError, match="does not let us open its reply"):
        run(client_of(dialect), lambda client: edited(client, symbol="sub"))
    assert not dialect.bodies


@pytest.mark.parametrize("make", OPENED)
def test_a_region_ends_at_its_anchor(make: Callable[..., Dialect]) -> None:
    dialect = make(lambda body: "def plus(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a * b\n" * 9)
    proposal = run(client_of(dialect), lambda client: edited(client, lines="1:2"))
    assert proposal.result.data.decode() == SOURCE.replace("add", "plus")
    assert dialect.streams[-1].closed


def test_figures_come_from_where_each_server_has_them() -> None:
    def stats(make: Callable[..., Dialect]) -> Stats:
        return stats_of(run(client_of(make(lambda body: "a b c\n")), completed))

    by_vllm, by_llama, by_openai = stats(dialects.vllm), stats(dialects.llama), stats(dialects.cloud)
    assert (by_vllm.passes, by_vllm.drafted, by_vllm.accepted) == (3, 12, 10)
    assert (by_llama.drafted, by_llama.accepted, by_llama.cached_tokens) == (21, 13, 4)
    assert (by_llama.prefill_tok_s, by_llama.decode_tok_s) == (400.0, 10.0)  # five tokens after the first, in 0.5 s
    assert (by_openai.prediction, by_openai.drafted, by_openai.acceptance) == ((9, 3), None, None)
    for found in (by_vllm, by_llama, by_openai):
        assert found.output_tokens == 6 and found.prompt_tokens is not None
        assert (found.by_drafter, found.by_provenance, found.copied_share) == ({}, {}, None)


def test_a_server_without_figures_has_none_and_the_edit_goes_on() -> None:
    dialect = dialects.cloud(lambda body: "a\n")
    dialect.usage = None
    stats = stats_of(run(client_of(dialect), completed))
    unknown = (stats.prompt_tokens, stats.cached_tokens, stats.output_tokens, stats.drafted, stats.decode_tok_s)
    assert unknown == (None,) * 5


def test_vllm_s_counters_stand_in_for_a_request_s_own_figures() -> None:
    dialect = dialects.vllm(lambda body: "a b c\n")
    dialect.usage = dialects.openai_usage
    counts = iter([(100, 50, 1000), (140, 80, 1006)])

    def metrics(body: object) -> str:
        drafted, accepted, output = next(counts)
        return (
            f"vllm:spec_decode_num_draft_tokens_total {drafted}\nvllm:spec_decode_num_accepted_tokens_total "
            f"{accepted}\nvllm:generation_tokens_total {output}\n"
        )

    dialect.pages["/metrics"] = metrics
    stats = stats_of(run(client_of(dialect), completed))
    assert (stats.drafted, stats.accepted) == (40, 30)


def test_counts_are_exact_where_there_is_a_tokeniser_and_estimates_elsewhere() -> None:
    for make in (dialects.vllm, dialects.llama):
        counts = run(client_of(make(lambda body: "")), lambda client: client.count(REQUEST))
        assert not counts.estimated and counts.source == len(dialects.tokens_of(SOURCE))
    for make in (dialects.sglang, *CLOSED):
        counts = run(client_of(make(lambda body: "")), lambda client: client.count(REQUEST))
        assert counts.estimated and counts.source > 0
    without = dialects.vllm(lambda body: "")
    del without.pages["/tokenize"]
    assert run(client_of(without), lambda client: client.count(REQUEST)).estimated


@pytest.mark.parametrize(
    ("make", "context", "name"),
    [
        (dialects.vllm, 8192, "vLLM"),
        (dialects.sglang, 8192, "SGLang"),
        (dialects.llama, 2048, "llama-server"),
        (dialects.ollama, 4096, "Ollama"),
        (dialects.cloud, None, "OpenAI-compatible"),
    ],
)
def test_a_server_is_recognised(make: Callable[..., Dialect], context: int | None, name: str) -> None:
    described = run(client_of(make(lambda body: "")), lambda client: client.describe())
    assert described.context_length == context and name in described.reached
    assert described.sha256 is None and described.threads is None


def test_ollama_is_recognised_by_a_model_of_the_user_s_own_making() -> None:
    dialect = dialects.ollama(lambda body: "")
    dialect.owner = "somebody"
    described = run(client_of(dialect), lambda client: client.describe())
    assert "Ollama" in described.reached and not described.capabilities.prefill


def test_a_prompt_that_the_server_cut_fails_the_run() -> None:
    dialect = dialects.ollama(lambda body: f"```\n{CHANGED}```", context=40)
    request = CompletionRequest((Message("user", SOURCE * 20),), 50)
    with pytest.raises(FileTooLongError, match="read 40 tokens"):
        run(client_of(dialect), lambda client: completed(client, request))


def test_a_file_too_long_for_what_ollama_has_loaded_is_refused_before_it_runs() -> None:
    dialect = dialects.ollama(lambda body: "", context=300)
    with pytest.raises(FileTooLongError, match="estimated"):
        run(client_of(dialect), edited)
    assert not dialect.bodies


def test_a_prediction_that_is_not_taken_is_left_out_from_then_on() -> None:
    dialect = dialects.cloud(lambda body: "a\n")
    dialect.refusals = [httpx2.Response(400, json={"error": {"message": "prediction is not supported"}})]

    async def twice(client: HttpClient) -> list[EngineEvent]:
        await completed(client)
        return await completed(client)

    assert text_of(run(client_of(dialect), twice)) == "a\n"
    assert ["prediction" in body for body in dialect.bodies] == [True, False, False]
    assert dialect.bodies[0]["prediction"] == {"type": "content", "content": SOURCE}


def test_a_400_that_stays_is_told_after_one_more_try() -> None:
    dialect = dialects.cloud(lambda body: "a\n")
    dialect.refusals = [httpx2.Response(400, json={"error": {"message": "bad seed"}}) for _ in range(5)]
    with pytest.raises(EngineUnreachableError, match="bad seed"):
        run(client_of(dialect), completed)
    assert len(dialect.bodies) == 2


def test_the_newer_name_of_max_tokens_is_used_where_it_is_asked_for() -> None:
    dialect = dialects.cloud(lambda body: "a\n")
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    dialect.refusals = [httpx2.Response(400, json={"error": {"message": words}}) for _ in range(2)]
    assert text_of(run(client_of(dialect), completed)) == "a\n"
    assert dialect.bodies[-1]["max_completion_tokens"] == 50 and "max_tokens" not in dialect.bodies[-1]


def test_what_may_pass_is_tried_again_as_the_server_asks() -> None:
    dialect = dialects.vllm(lambda body: "a\n")
    dialect.refusals = [
        httpx2.Response(429, headers={"retry-after": "7"}),
        httpx2.Response(503),
        httpx2.ConnectError("refused"),
    ]
    client = client_of(dialect)
    assert text_of(run(client, completed)) == "a\n"
    assert client.pauses == [7.0, PAUSES_S[1], PAUSES_S[2]]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("refusals", "error", "words"),
    [
        ([httpx2.Response(429)] * 9, EngineUnreachableError, "too many requests"),
        ([httpx2.Response(429, headers={"retry-after": "600"})], EngineUnreachableError, "wait 600 s"),
        ([httpx2.ConnectError("x")] * 9, EngineUnreachableError, "Nobody answers"),
        ([httpx2.ReadError("x")] * 9, EngineUnreachableError, "broke the connection off"),
        ([httpx2.Response(401)], EngineUnreachableError, "wants a key"),
        ([httpx2.Response(422, text="[" * 100_000)], EngineUnreachableError, "answered 422"),
        ([httpx2.Response(404, json={"error": {"message": "The model `m` does not exist"}})], ModelError, "model"),
        ([httpx2.Response(400, json={"error": {"message": "maximum context length is 9"}})], FileTooLongError, "long"),
        ([httpx2.Response(307, headers={"location": "http://evil.example"})], EngineUnreachableError, "not followed"),
    ],
)
def test_what_stays_is_told(refusals: list[Any], error: type[AppError], words: str) -> None:
    dialect = dialects.vllm(lambda body: "a\n")
    dialect.refusals = list(refusals)
    client = client_of(dialect)
    with pytest.raises(error, match=words) as caught:
        run(client, completed)
    assert type(caught.value) is error or isinstance(caught.value, EngineUnreachableError)
    assert len(dialect.bodies) <= len(PAUSES_S) + 1
    assert all(pause <= LONGEST_WAIT_S for pause in client.pauses)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("make", "asks"), [(dialects.llama, True), (dialects.vllm, True), (dialects.cloud, False)])
def test_a_prefill_in_the_background_costs_no_more_than_time(make: Callable[..., Dialect], asks: bool) -> None:
    dialect = make(lambda body: "a b c")
    request = CompletionRequest(REQUEST.messages, 0)
    events = run(client_of(dialect), lambda client: completed(client, request))
    assert text_of(events) == "" and isinstance(events[-1], Finished)
    assert [body["max_tokens"] for body in dialect.bodies] == ([1] if asks else [])


def test_the_key_is_sent_and_said_to_be_in_the_open() -> None:
    dialect = dialects.vllm(lambda body: "")
    assert run(client_of(dialect, key="sk-1"), lambda client: client.describe()).notes == ()
    assert {headers.get("authorization") for headers in dialect.headers} == {"Bearer sk-1"}
    exchange = Exchange(parse_place("http://far.example"), "sk-1", transport=dialect.transport())
    (note,) = run(HttpClient(exchange), lambda client: client.describe()).notes
    assert "unencrypted" in note and "sk-1" not in note
    assert "sk-1" not in repr(exchange)


@pytest.mark.parametrize(
    ("listed", "model", "words"),
    [
        ({"data": []}, None, "none"),
        ({"data": [{"id": "a"}, {"id": "b"}]}, None, "a, b"),
        ({"data": [{"id": "a"}]}, "c", "no model 'c'; it has: a"),
        ({"data": "x"}, None, "lists no models"),
        ("<html>", None, "lists no models"),
    ],
)
def test_a_model_that_is_not_there_or_must_be_named(listed: object, model: str | None, words: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, text=listed if isinstance(listed, str) else json.dumps(listed))

    exchange = Exchange(parse_place("http://localhost:1"), transport=httpx2.MockTransport(answer))
    with pytest.raises((ModelError, EngineUnreachableError), match=words):
        run(HttpClient(exchange, model), lambda client: client.describe())


def test_names_that_mean_a_listed_model() -> None:
    for make, name, expected in ((dialects.ollama, "m", "m:latest"), (dialects.llama, "alias", "m")):
        exchange = Exchange(parse_place("http://localhost:1"), transport=make(lambda body: "").transport())
        described = run(HttpClient(exchange, name), lambda client: client.describe())
        assert described.model_id == expected
