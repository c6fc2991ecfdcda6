"""Requests that nobody would write: made up from the server's own description, and raw bytes on its socket.

Some hundred in CI; with REDRAFT_SOAK=1 (`make soak`) 10,000. None may be answered with 500, let a traceback out, or
leave the server unable to answer the next one.
"""

import contextlib
import random
import socket
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from editor_engine.config import EngineConfig
from editor_engine.engine import Engine
from editor_engine.server.application import Served, application
from editor_engine.server.dispatcher import Dispatcher
from editor_engine.server.metrics import Metrics
from editor_engine.server.options import Limits, ServeOptions
from tests.support.served_engine import MODEL, PATIENCE_S, live_server
from tests.support.soak import SOAK
from tests.support.tiny_gguf import write_tiny

EACH = 2000 if SOAK else 40
"""Requests made up for each operation of the description."""
RAW = 2000 if SOAK else 150
"""Connections that send raw bytes."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine.load(EngineConfig(write_tiny(tmp_path_factory.mktemp("tiny") / "tiny.gguf", seed=4), threads=1))


CASES = [
    ("POST", "/v1/chat/completions", GenerationMode.POSITIVE),
    ("POST", "/v1/chat/completions", GenerationMode.NEGATIVE),
    ("POST", "/v1/redraft/count", GenerationMode.POSITIVE),
    ("POST", "/v1/redraft/count", GenerationMode.NEGATIVE),
    ("GET", "/v1/models", GenerationMode.POSITIVE),  # nothing can be wrong with a request that has no parameters
    ("GET", "/v1/models/{model_id}", GenerationMode.POSITIVE),
    ("GET", "/health", GenerationMode.POSITIVE),
    ("GET", "/metrics", GenerationMode.POSITIVE),
]


def description() -> dict[str, Any]:
    """The OpenAPI description of the server."""
    dispatcher = Dispatcher(lambda progress: pytest.fail("never loaded"), Limits())
    return application(Served(dispatcher, Metrics(), MODEL, "0", 0)).openapi()


def test_every_operation_is_fuzzed() -> None:
    paths = description()["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert described == {(method, path) for method, path, _ in CASES}


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_made_up_requests(engine: Engine, method: str, path: str, mode: GenerationMode) -> None:
    described = description()
    statuses = {200, *map(int, described["paths"][path][method.lower()]["responses"])}
    cases = schemathesis.openapi.from_dict(described)[path][method].as_strategy(generation_mode=mode)
    seen = set()
    with live_server(engine, ServeOptions(port=0)) as server, requests.Session() as session:
        session.trust_env = False

        @settings(
            max_examples=EACH, derandomize=True, deadline=None, database=None, suppress_health_check=[*HealthCheck]
        )
        @given(case=cases)
        def ask(case: schemathesis.Case) -> None:
            _shorten(case.body)
            answer = case.call(base_url=server.url, session=session, timeout=PATIENCE_S)
            assert answer.status_code < 500, answer.text
            assert answer.status_code in statuses
            assert "Traceback" not in answer.text
            seen.add(answer.status_code)

        ask()
    assert 200 in seen if mode is GenerationMode.POSITIVE and path != "/v1/models/{model_id}" else seen - {200}


def _shorten(body: Any) -> None:
    """Name the model that is there, since a name that is made up ends every request early; and ask for few tokens."""
    if not isinstance(body, dict):
        return
    if isinstance(body.get("model"), str):
        body["model"] = MODEL
    if body.get("max_completion_tokens") is None:
        body.setdefault("max_tokens", None)
    for name in ("max_tokens", "max_completion_tokens"):
        if name in body and (body[name] is None or isinstance(body[name], int)):
            body[name] = 4 if body[name] is None else min(body[name], 4)


def pieces() -> list[bytes]:
    """What raw connections send, in some order."""
    body = b'{"model": "echo", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}'
    return [
        b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n",
        b"Content-Length: %d\r\n\r\n" % len(body) + body,
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"5\r\nabc",
        b"fffffffffffffffff\r\n",
        b"0\r\n\r\n",
        b"Expect: 100-continue\r\n",
        b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /%ff%00/../\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"x" * 70_000,
        b"[" * 40_000,
        b"\r\n",
        b"\x00\xff\x16\x03\x01",
        b"HEAD /metrics HTTP/1.0\r\n\r\n",
    ]


def test_raw_bytes(engine: Engine, tmp_path: Path) -> None:
    chance = random.Random(6)
    options = ServeOptions(socket=tmp_path / "s", limits=Limits(read_s=0.1))
    with live_server(engine, options, log=tmp_path / "log") as server, server.client() as client:
        for _ in range(RAW):
            sent = b"".join(chance.choices(pieces(), k=chance.randint(1, 6)))
            if chance.random() < 0.3:
                at = chance.randrange(len(sent))
                sent = sent[:at] + chance.randbytes(chance.randint(1, 20)) + sent[at + 3 :]
            said = exchange(options, sent)
            assert b"Traceback" not in said
            assert b"HTTP/1.1 5" not in said, sent
            assert client.get("/health").status_code == 200
    assert " fault " not in (tmp_path / "log").read_text()


def exchange(options: ServeOptions, sent: bytes) -> bytes:
    """Send, say that this is all, and take what comes."""
    got = bytearray()
    with socket.socket(socket.AF_UNIX) as sock, contextlib.suppress(ConnectionError):
        sock.settimeout(PATIENCE_S)
        sock.connect(str(options.socket))
        sock.sendall(sent)
        while piece := sock.recv(65536):
            got += piece
    return bytes(got)


def test_deep_json_is_refused(engine: Engine) -> None:
    with live_server(engine, ServeOptions(port=0)) as server, server.client() as client:
        for content in (
            b"[" * 100_000,
            b'{"a":' * 100_000,
            b'{"seed": ' + b"9" * 5000 + b"}",
            b"\xef\xbb\xbf{}",
            b"NaN",
        ):
            answer = client.post("/v1/chat/completions", content=content, headers={"content-type": "application/json"})
            assert answer.status_code == 400
            assert answer.json()["error"]["message"]
