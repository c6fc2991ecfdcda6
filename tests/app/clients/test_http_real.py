"""The client against servers that are real: `redraft serve` over both its ways, and llama.cpp's with a small model."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.clients.exchange import Exchange
from app.clients.http import HttpClient, http_client
from app.clients.place import parse_place
from app.engine_client import EngineClient, TokenCounts
from app.errors import EngineUnreachableError, FileTooLongError
from editor_engine.config import EngineConfig
from editor_engine.engine import Engine
from editor_engine.errors import ContextOverflowError, NumericsError
from editor_engine.events import EngineEvent, Finished, FinishReason, Prefill, Text
from editor_engine.requests import CancelFlag, CompletionRequest, Message
from editor_engine.server.options import ServeOptions
from tests.support import llama_server
from tests.support.served_engine import PATIENCE_S, EchoEngine, LiveServer, live_server
from tests.support.tiny_gguf import write_tiny

ECHO = CompletionRequest((Message("user", "one two three"),), 50, source="one two")
SOURCE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"


@pytest.fixture(params=["tcp", "unix"])
def options(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServeOptions:
    if request.param == "unix":
        return ServeOptions(socket=tmp_path / "s")
    monkeypatch.setenv("REDRAFT_ENGINE_KEY", "a-key")
    return ServeOptions(port=0, key="a-key")


def client_of(server: LiveServer) -> HttpClient:
    socket = server.options.socket
    return http_client(parse_place(f"unix:{socket}" if socket else server.url), None)


async def completed(client: EngineClient, request: CompletionRequest = ECHO) -> list[EngineEvent]:
    async with aclosing(client.complete(request, CancelFlag())) as events:
        return [event async for event in events]


def test_our_own_server_says_what_its_engine_says(options: ServeOptions) -> None:
    async def work(server: LiveServer) -> None:
        client = client_of(server)
        try:
            described = await client.describe()
            assert (described.model_id, described.sha256, described.exactness) == ("echo", "e" * 64, "exact")
            assert "a note" in described.notes and described.capabilities.region
            assert "redraft serve" in described.reached and described.threads == 1
            assert await client.count(ECHO) == TokenCounts(3, 2)
            assert await completed(client) == list(EchoEngine().complete(ECHO))
        finally:
            await client.close()

    with live_server(EchoEngine(), options) as server:
        asyncio.run(work(server))


@pytest.mark.parametrize("hold_at", [0, 2])
@pytest.mark.parametrize("way", ["cancel", "leave"])
def test_our_own_server_stops_when_the_client_does(options: ServeOptions, hold_at: int, way: str) -> None:
    engine = EchoEngine(hold_at)

    async def work(server: LiveServer) -> None:
        client, cancel = client_of(server), CancelFlag()
        try:
            async with aclosing(client.complete(ECHO, cancel)) as events:
                async for event in events:
                    if isinstance(event, Text if hold_at else Prefill):
                        await asyncio.to_thread(engine.held.wait, PATIENCE_S)
                        if way == "leave":
                            break
                        cancel.set()
            if way == "cancel":
                assert isinstance(event, Finished) and event.reason is FinishReason.CANCELLED
            engine.hold_at = None
            assert isinstance((await completed(client))[-1], Finished)
        finally:
            await client.close()

    with live_server(engine, options) as server:
        asyncio.run(work(server))
    assert engine.cancelled == ["one two three"]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ContextOverflowError("The prompt has 9 tokens; the context holds 8."), FileTooLongError),
        (NumericsError("A NaN in layer 3."), EngineUnreachableError),
    ],
)
def test_our_own_server_s_errors_keep_their_sentences(failure: Exception, expected: type[Exception]) -> None:
    engine = EchoEngine()
    engine.failure = failure

    async def work(server: LiveServer) -> None:
        client = client_of(server)
        try:
            with pytest.raises(expected, match=re.escape(str(failure))):
                await completed(client)
        finally:
            await client.close()

    with live_server(engine, ServeOptions(port=0)) as server:
        asyncio.run(work(server))


def test_the_wrong_key_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_ENGINE_KEY", "another")

    async def work(server: LiveServer) -> None:
        client = client_of(server)
        try:
            with pytest.raises(EngineUnreachableError, match="does not accept the key in REDRAFT_ENGINE_KEY"):
                await client.describe()
        finally:
            await client.close()

    with live_server(EchoEngine(), ServeOptions(port=0, key="a-key")) as server:
        asyncio.run(work(server))


def test_the_same_tokens_through_our_server_as_in_process(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny(path)
    request = CompletionRequest((Message("user", SOURCE),), 40, prefill="```\n", source=SOURCE, stop_line="```")
    *_, direct = Engine.load(EngineConfig(path, 1)).complete(request)

    async def work(server: LiveServer) -> list[EngineEvent]:
        client = client_of(server)
        try:
            return await completed(client, request)
        finally:
            await client.close()

    with live_server(Engine.load(EngineConfig(path, 1)), ServeOptions(socket=tmp_path / "s")) as server:
        *_, served = asyncio.run(work(server))
    assert isinstance(direct, Finished) and isinstance(served, Finished)
    assert served.token_ids == direct.token_ids and served.reason == direct.reason


@contextmanager
def llama(model: Path, context: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    if find_spec("xllamacpp") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("xllamacpp is not installed; `make ci-deps` installs it")
        pytest.skip("xllamacpp is not installed (extra `bench`)")
    command = [sys.executable, llama_server.__file__, str(model), str(context)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = next((line.strip() for line in process.stdout if line.startswith("http")), "")
            assert address, "llama.cpp did not start"
            yield address, process
        finally:
            process.kill()


@pytest.mark.model
def test_llama_cpp_s_own_server(smollm2_path: Path) -> None:
    fenced = f"Repeat this program:\n```python\n{SOURCE}```"
    whole = CompletionRequest(
        (Message("user", fenced),), 80, prefill="```python\n", source=SOURCE, stop_line="```", temperature=0.0
    )

    async def work(address: str, process: "subprocess.Popen[str]") -> None:
        client = HttpClient(Exchange(parse_place(address)))
        try:
            described = await client.describe()
            assert "llama-server" in described.reached and described.context_length == 512
            assert described.exactness == "not guaranteed" and described.capabilities.prefill
            counts = await client.count(whole)
            assert not counts.estimated and 20 < counts.source < 60
            events = await completed(client, whole)
            text = "".join(event.text for event in events if isinstance(event, Text))
            assert text.startswith("def ") and "```" not in text  # it went on from our opening
            assert any(isinstance(event, Prefill) for event in events)
            last = events[-1]
            assert isinstance(last, Finished)
            assert last.stats.prompt_tokens == counts.prompt
            assert last.stats.output_tokens and last.stats.prefill_tok_s and last.stats.decode_tok_s
            anchored = CompletionRequest(
                whole.messages, 80, prefill="```python\n", source=SOURCE, anchor=("def sub(a, b):",)
            )
            (end,) = [event for event in await completed(client, anchored) if isinstance(event, Finished)]
            if end.reason is FinishReason.ANCHOR:
                assert end.stats.output_tokens  # in every chunk: the connection was closed before the last one
            long = CompletionRequest((Message("user", SOURCE * 60),), 5, prefill="```\n")
            with pytest.raises(FileTooLongError, match="too long"):
                await completed(client, long)
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE_S)
            with pytest.raises(EngineUnreachableError):
                await completed(client, whole)
        finally:
            await client.close()

    with llama(smollm2_path, 512) as (address, process):
        asyncio.run(work(address, process))


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    options: ServeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")

    async def work(server: LiveServer) -> None:
        client = client_of(server)
        try:
            assert (await client.describe()).model_id == "echo"
        finally:
            await client.close()

    with live_server(EchoEngine(), options) as server:
        asyncio.run(work(server))
