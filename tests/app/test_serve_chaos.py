"""64 clients at once, most of them up to no good: the server lives, leaks nothing and answers every honest request.

A few actions a client in CI; with REDRAFT_SOAK=1 (`make soak`) they go on for a minute.
"""

import asyncio
import json
import random
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import h11
import pytest

from editor_engine.config import EngineConfig
from editor_engine.engine import Engine
from editor_engine.events import Text
from editor_engine.requests import CompletionRequest, Message
from tests.support.serving import PATIENCE_S, Serving, serving
from tests.support.soak import SOAK
from tests.support.tiny_gguf import write_tiny

CLIENTS = 64
SECONDS = 60.0 if SOAK else 0.0
ACTIONS = 5
"""Of each client at least, however long it takes."""
QUESTIONS = [f"Question {number}: what is {number} times {number}?" for number in range(8)]
TOKENS = 12
MOST_GROWTH = 48 << 20
"""Bytes of memory that may stay taken: allocators keep some, a leak in a minute of this would be far more."""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return write_tiny(tmp_path / "tiny.gguf", seed=3)


def body(question: str, stream: bool) -> bytes:
    asked = {"model": "tiny", "messages": [{"role": "user", "content": question}], "max_tokens": TOKENS}
    return json.dumps({**asked, "stream": stream}).encode()


def request(content: bytes) -> bytes:
    head = ["Host: x", "Content-Type: application/json", f"Content-Length: {len(content)}", "", ""]
    return "\r\n".join(["POST /v1/chat/completions HTTP/1.1", *head]).encode() + content


class Client:
    """One of the 64; what it does next is its own seed's choice."""

    def __init__(self, number: int, place: str, replies: dict[str, str]) -> None:
        self._random = random.Random(number)
        self._place = place
        self._replies = replies
        self.honest = 0
        """Requests that were answered as they should be."""

    async def act(self) -> None:
        kinds: Sequence[Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]] = (
            self._honest,
            self._honest,
            self._slow,
            self._killed_while_sending,
            self._killed_while_answered,
            self._malformed,
            self._garbage,
        )
        reader, writer = await asyncio.open_unix_connection(self._place)
        try:
            await self._random.choice(kinds)(reader, writer)  # type: ignore[misc]  # they are coroutines
        finally:
            writer.close()
            try:
                await writer.wait_closed()
            except (ConnectionError, BrokenPipeError):
                pass  # the server was right to hang up

    async def _honest(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One to three requests, sent at once over one connection: answered in order."""
        asked = [
            (self._random.choice(QUESTIONS), self._random.random() < 0.5) for _ in range(self._random.randint(1, 3))
        ]
        writer.write(b"".join(request(body(*each)) for each in asked))
        conn = h11.Connection(h11.CLIENT)
        for question, stream in asked:
            assert text_of(await answer(conn, reader), stream) == self._replies[question]
            self.honest += 1

    async def _slow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Sends in small pieces, and reads in smaller ones."""
        question = self._random.choice(QUESTIONS)
        sent = request(body(question, True))
        for start in range(0, len(sent), 7):
            writer.write(sent[start : start + 7])
            await asyncio.sleep(0)
        assert text_of(await answer(h11.Connection(h11.CLIENT), reader, 64), True) == self._replies[question]
        self.honest += 1

    async def _killed_while_sending(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = request(body(self._random.choice(QUESTIONS), True))
        writer.write(sent[: self._random.randrange(len(sent))])
        writer.transport.abort()

    async def _killed_while_answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request(body(self._random.choice(QUESTIONS), self._random.random() < 0.5)))
        if self._random.random() < 0.5:
            await reader.read(self._random.randint(1, 300))
        writer.transport.abort()

    async def _malformed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """HTTP, and no request that can be served."""
        contents = (b"", b"{", b"[1, 2]", b"\xff\xfe", b'{"model": "tiny"}', body("x", True).replace(b"tiny", b"huge"))
        writer.write(request(self._random.choice(contents)))
        event = await answer(h11.Connection(h11.CLIENT), reader)
        assert json.loads(event[1])["error"]["message"]
        assert event[0] in (400, 404)

    async def _garbage(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bytes of no protocol."""
        writer.write(self._random.randbytes(self._random.randint(1, 2000)) + b"\r\n\r\n")
        writer.write_eof()
        said = await reader.read()
        assert not said or said.startswith(b"HTTP/1.1 4")
        assert b"Traceback" not in said


async def answer(conn: h11.Connection, reader: asyncio.StreamReader, size: int = 65536) -> tuple[int, bytes]:
    """(status, body) of the next answer on a connection that pipelines."""
    if conn.our_state is h11.DONE:
        conn.start_next_cycle()
    conn.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))  # what was sent, as far as h11 needs it
    conn.send(h11.EndOfMessage())
    status, content = 0, b""
    while True:
        event = conn.next_event()
        if event is h11.NEED_DATA:
            conn.receive_data(await reader.read(size))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            content += event.data
        elif isinstance(event, h11.EndOfMessage):
            return status, content
        else:
            raise AssertionError(f"the connection ended early: {event}")


def text_of(answered: tuple[int, bytes], stream: bool) -> str:
    status, content = answered
    assert status == 200, content
    if not stream:
        return str(json.loads(content)["choices"][0]["message"]["content"])
    lines = [line.removeprefix(b"data: ") for line in content.split(b"\n\n") if line]
    assert lines.pop() == b"[DONE]"
    chunks = [json.loads(line) for line in lines]
    return "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])


def expected_replies(model: Path) -> dict[str, str]:
    engine = Engine.load(EngineConfig(model, threads=1))

    def reply(question: str) -> Iterator[str]:
        for event in engine.complete(CompletionRequest((Message("user", question),), TOKENS)):
            if isinstance(event, Text):
                yield event.text

    return {question: "".join(reply(question)) for question in QUESTIONS}


async def run_clients(clients: list[Client], seconds: float) -> None:
    until = time.monotonic() + seconds

    async def run(client: Client) -> None:
        done = 0
        while done < ACTIONS or time.monotonic() < until:
            await asyncio.wait_for(client.act(), PATIENCE_S)
            done += 1

    await asyncio.gather(*map(run, clients))


def settle(server: Serving, held: tuple[int, int]) -> tuple[int, int]:
    """What the process holds once it has noticed that everybody is gone."""
    until = time.monotonic() + PATIENCE_S
    now = server.held()
    while any(more > before for more, before in zip(now, held, strict=True)) and time.monotonic() < until:
        with server.client() as client:
            client.get("/health")
        now = server.held()
    return now


def test_clients_of_all_kinds(model: Path) -> None:
    replies = expected_replies(model)
    with serving("--model", model, "--threads", "1", "--queue", str(4 * CLIENTS)) as server:
        with server.client() as client:  # what it holds while one connection is open; every thread has started
            asked = {"model": "tiny", "messages": [{"role": "user", "content": "x"}]}
            for path in ("/v1/chat/completions", "/v1/redraft/count"):  # the first waits until the model is loaded
                assert client.post(path, json={**asked, "max_tokens": 1}).status_code == 200
            held = server.held()
        asyncio.run(run_clients([Client(number, server.socket, replies) for number in range(8)], 0))
        resident = server.resident_bytes()
        clients = [Client(number, server.socket, replies) for number in range(CLIENTS)]
        asyncio.run(run_clients(clients, SECONDS))
        after = settle(server, held)
        grown = server.resident_bytes() - resident
        with server.client() as client:
            assert client.get("/health").json()["status"] in ("ready", "busy")
            metrics = client.get("/metrics").text
        code, _, err = server.end()
    assert code == 0, err
    assert all(more <= before for more, before in zip(after, held, strict=True)), (after, held)
    assert grown < MOST_GROWTH
    assert sum(client.honest for client in clients) > CLIENTS
    assert 'outcome="internal"' not in metrics


def test_connections_that_say_nothing_keep_nobody_out(model: Path) -> None:
    with serving("--model", model, "--threads", "1") as server:
        silent = []
        for _ in range(CLIENTS):
            silent.append(socket.socket(socket.AF_UNIX))
            silent[-1].connect(server.socket)
        replies = expected_replies(model)
        client = Client(1, server.socket, replies)
        asyncio.run(run_clients([client], 0))
        for sock in silent:
            sock.close()
        assert server.end()[0] == 0
