"""The official `openai` client, unchanged, over TCP and over the unix socket; and the same tokens as in process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from editor_engine.config import EngineConfig
from editor_engine.engine import Engine
from editor_engine.events import Finished, Text
from editor_engine.requests import CompletionRequest, Message
from editor_engine.server.options import ServeOptions
from editor_engine.wire import event_from_json, extension_to_json
from tests.support.served_engine import MODEL, PATIENCE_S, EchoEngine, LiveServer, live_server
from tests.support.tiny_gguf import write_tiny

KEY = "the-key-of-this-test"
EXAMPLE = Path(__file__).parents[3] / "examples" / "stockroom.py"
MESSAGES: Any = [{"role": "system", "content": "You talk."}, {"role": "user", "content": "one two three four"}]


@pytest.fixture(params=["tcp", "unix"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> ServeOptions:
    return ServeOptions(port=0, key=KEY) if request.param == "tcp" else ServeOptions(socket=tmp_path / "s")


@contextmanager
def official(server: LiveServer, key: str = KEY) -> Iterator[openai.OpenAI]:
    socket = server.options.socket
    transport = httpx2.HTTPTransport(uds=str(socket)) if socket else None
    base = "http://localhost/v1" if socket else f"{server.url}/v1"
    with (
        httpx2.Client(transport=transport, trust_env=False) as http,
        openai.OpenAI(base_url=base, api_key=key, http_client=http, timeout=PATIENCE_S, max_retries=0) as client,
    ):
        yield client


def test_a_completion_with_a_prediction(options: ServeOptions) -> None:
    with live_server(EchoEngine(), options) as server, official(server) as client:
        answer = client.chat.completions.create(
            model=MODEL, messages=MESSAGES, prediction={"type": "content", "content": "one two five"}, seed=3
        )
        assert [model.id for model in client.models.list()] == [MODEL]
        assert client.models.retrieve(MODEL).id == MODEL
    assert answer.choices[0].message.content == "one two three four "
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None and answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens == 4
    assert answer.usage.completion_tokens_details.accepted_prediction_tokens == 0
    assert answer.usage.completion_tokens_details.rejected_prediction_tokens == 3


def test_a_stream_with_usage(options: ServeOptions) -> None:
    with live_server(EchoEngine(), options) as server, official(server) as client:
        stream = client.chat.completions.create(
            model=MODEL, messages=MESSAGES, stream=True, stream_options={"include_usage": True}, max_completion_tokens=3
        )
        chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "one two three "
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"
    assert chunks[-1].usage is not None and chunks[-1].usage.total_tokens == 6 + 3


def test_faults_are_the_clients_own_exceptions(options: ServeOptions) -> None:
    engine = EchoEngine()
    with live_server(engine, options) as server, official(server) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            client.chat.completions.create(model=MODEL, messages=MESSAGES, n=2)
        assert refused.value.param == "n"
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="gpt-x", messages=MESSAGES)
        engine.failure = RuntimeError()
        with pytest.raises(openai.APIError):
            list(client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True))
        if server.options.key:
            with official(server, "wrong") as stranger, pytest.raises(openai.AuthenticationError):
                stranger.models.list()


@pytest.mark.parametrize("source", ["", "def f(a):\n    return a\n"])
def test_the_tokens_are_those_of_the_engine_in_process(options: ServeOptions, tmp_path: Path, source: str) -> None:
    path = write_tiny(tmp_path / "tiny.gguf", seed=5)
    same_tokens(path, options, CompletionRequest((Message("user", f"Change it.\n{source}"),), 60, source=source))


@pytest.mark.model
def test_real_weights_give_the_same_tokens_through_the_server(options: ServeOptions, smollm2_path: Path) -> None:
    source = "".join(EXAMPLE.read_text("utf-8").splitlines(keepends=True)[:60])
    task = f"```python\n{source}```\n\nRename the class Item to Article. Output only the whole file."
    messages = (Message("system", "You rewrite files."), Message("user", task))
    request = CompletionRequest(messages, 160, prefill="```python\n", source=source, stop_line="```")
    stats = same_tokens(smollm2_path, options, request).stats
    assert stats.accepted


def same_tokens(path: Path, options: ServeOptions, request: CompletionRequest) -> Finished:
    """Run the request in process, streamed and whole through the official client; returns the streamed end."""
    events = list(Engine.load(EngineConfig(path, threads=1)).complete(request))
    text = "".join(event.text for event in events if isinstance(event, Text))
    end = events[-1]
    assert isinstance(end, Finished)
    asked: Any = {
        "model": MODEL,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "max_tokens": request.max_tokens,
    }
    ours = {"redraft": extension_to_json(request)}
    engine = Engine.load(EngineConfig(path, threads=2))
    with live_server(engine, options) as server, official(server) as client:
        chunks = list(client.chat.completions.create(**asked, stream=True, extra_body=ours))
        whole = client.chat.completions.create(**asked, extra_body=ours)
        predicted = client.chat.completions.create(
            **asked,
            prediction={"type": "content", "content": request.source},
            extra_body={"redraft": {**ours["redraft"], "source": ""}},
        )
    streamed = [event_from_json((chunk.model_extra or {})["redraft"]) for chunk in chunks if chunk.model_extra]
    last = streamed[-1]
    assert isinstance(last, Finished)
    assert last.token_ids == end.token_ids
    assert last.reason is end.reason
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == text
    assert "".join(event.text for event in streamed if isinstance(event, Text)) == text
    for answer in (whole, predicted):
        assert answer.choices[0].message.content == text
        assert answer.usage is not None and answer.usage.completion_tokens == len(end.token_ids)
        done = event_from_json((answer.model_extra or {})["redraft"])
        assert isinstance(done, Finished) and done.token_ids == end.token_ids
    return last
