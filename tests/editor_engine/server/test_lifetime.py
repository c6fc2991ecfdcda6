"""The server over time: the queue, clients that go away, limits, loading and stopping."""

import gc
import json
import socket
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from editor_engine import errors
from editor_engine.config import ENGINE_THREAD, EngineConfig
from editor_engine.engine import Engine
from editor_engine.events import Finished
from editor_engine.requests import CompletionRequest, Message
from editor_engine.server.options import ServeOptions
from editor_engine.server.run import Ending
from tests.support.served_engine import PATIENCE_S, EchoEngine, chat, data_of, live_server, tcp

CHAT = "/v1/chat/completions"


def test_health_and_counts_answer_while_a_request_runs_and_requests_run_in_order() -> None:
    engine = EchoEngine(hold_at=1)
    with live_server(engine, tcp(queue=3)) as server, server.client() as client:
        threads, answers = [], {}

        def ask(text: str) -> None:
            answers[text] = client.post(CHAT, json=chat(text)).json()["choices"][0]["message"]["content"]

        for number, text in enumerate(("a b", "c d", "e f", "g h")):
            threads.append(threading.Thread(target=ask, args=(text,)))
            threads[-1].start()
            if number == 0:
                assert engine.held.wait(PATIENCE_S)
            else:  # in the queue before the next one comes
                while client.get("/health").json()["waiting"] < number:
                    pass
        assert client.get("/health").json()["status"] == "busy"
        assert client.post("/v1/redraft/count", json=chat("a b c")).json()["prompt_tokens"] == 3
        refused = client.post(CHAT, json=chat("one too many"))
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
        assert int(refused.headers["retry-after"]) >= 1
        engine.hold_at = None
        engine.release.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert answers == {text: text + " " for text in ("a b", "c d", "e f", "g h")}
    assert engine.asked == ["a b", "c d", "e f", "g h"]


def test_a_server_that_has_ended_keeps_no_engine() -> None:
    def served() -> weakref.ref[EchoEngine]:
        engine = EchoEngine()
        with live_server(engine, tcp()) as server, server.client() as client:
            assert client.post(CHAT, json=chat("a b")).status_code == 200
            assert client.post("/v1/redraft/count", json=chat("a b")).status_code == 200
        return weakref.ref(engine)

    left = served()
    gc.collect()
    assert left() is None  # else a process that serves twice has its weights twice


def test_without_a_queue_one_request_runs_and_the_next_is_refused() -> None:
    engine = EchoEngine(hold_at=0)
    with live_server(engine, tcp(queue=0)) as server, server.client() as client:
        first = _raw_request(server.url, chat("first"))
        assert engine.held.wait(PATIENCE_S)
        assert client.post(CHAT, json=chat("second")).status_code == 429
        engine.hold_at = None
        first.close()
        while client.get("/health").json()["status"] == "busy":
            pass
        assert client.post(CHAT, json=chat("third")).status_code == 200
    assert engine.asked == ["first", "third"]


@pytest.mark.parametrize("hold_at", [0, 1])
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_stops_its_request(hold_at: int, stream: bool) -> None:
    engine = EchoEngine(hold_at)
    with live_server(engine, tcp()) as server:
        with server.client() as client:
            sock = _raw_request(server.url, chat("left alone", stream=stream))
            assert engine.held.wait(PATIENCE_S)
            sock.close()
            engine.hold_at = None
            assert client.post(CHAT, json=chat("next")).status_code == 200
    assert engine.cancelled == ["left alone"]
    assert engine.asked == ["left alone", "next"]


def test_a_client_that_goes_away_while_it_waits_never_runs() -> None:
    engine = EchoEngine(hold_at=0)
    with live_server(engine, tcp()) as server, server.client() as client:
        first = _raw_request(server.url, chat("first"))
        assert engine.held.wait(PATIENCE_S)
        second = _raw_request(server.url, chat("second"))
        while client.get("/health").json()["waiting"] < 1:
            pass
        second.close()
        while client.get("/health").json()["waiting"] > 0:
            pass
        engine.hold_at = None
        first.close()
        assert client.post(CHAT, json=chat("third")).status_code == 200
    assert engine.asked == ["first", "third"]


def test_a_request_is_cut_at_the_time_limit() -> None:
    engine = EchoEngine(hold_at=1)
    with live_server(engine, tcp(request_s=0.05)) as server, server.client() as client:
        answer = client.post(CHAT, json=chat("too slow"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "time_limit")
        streamed = data_of(iter(client.post(CHAT, json=chat("too slow", stream=True)).text.splitlines()))
        assert streamed[-1]["error"]["code"] == "time_limit"
    assert engine.cancelled == ["too slow", "too slow"]


def test_a_stop_lets_the_running_request_finish_and_refuses_the_others() -> None:
    engine = EchoEngine(hold_at=1)
    with live_server(engine, tcp(grace_s=PATIENCE_S)) as server, server.client() as client:
        answers: list[Any] = []
        threads = [
            threading.Thread(target=lambda text=text: answers.append((text, client.post(CHAT, json=chat(text)))))
            for text in ("runs on", "waits")
        ]
        threads[0].start()
        assert engine.held.wait(PATIENCE_S)
        threads[1].start()
        while client.get("/health").json()["waiting"] < 1:
            pass
        server.stop()
        threads[1].join(PATIENCE_S)
        assert client.get("/health").json()["status"] == "stopping"
        assert client.post(CHAT, json=chat("late")).json()["error"]["code"] == "stopping"
        engine.release.set()
        threads[0].join(PATIENCE_S)
    by_text = dict(answers)
    assert by_text["runs on"].json()["choices"][0]["message"]["content"] == "runs on "
    assert (by_text["waits"].status_code, by_text["waits"].json()["error"]["code"]) == (503, "stopping")
    assert server.ending is Ending.TERMINATED


def test_a_stop_cuts_a_request_that_outlasts_the_grace() -> None:
    engine = EchoEngine(hold_at=1)
    with live_server(engine, tcp(grace_s=0.05)) as server, server.client() as client:
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(client.post(CHAT, json=chat("goes on"))))
        thread.start()
        assert engine.held.wait(PATIENCE_S)
        server.stop()
        thread.join(PATIENCE_S)
    assert answers[0].json()["error"]["code"] == "stopping"
    assert engine.cancelled == ["goes on"]


def test_health_tells_of_the_load_and_requests_wait_for_it() -> None:
    engine, proceed = EchoEngine(), threading.Event()

    def load(progress: Any) -> EchoEngine:
        progress(3, 10)
        assert proceed.wait(PATIENCE_S)
        return engine

    with live_server(load, tcp(), ready=False) as server, server.client() as client:
        while (health := client.get("/health").json())["loading"] is None:
            pass
        assert health["status"] == "loading"
        assert health["loading"] == {"done": 3, "total": 10}
        assert health["engine"] is None
        assert client.post("/v1/redraft/count", json=chat("x")).status_code == 503
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(client.post(CHAT, json=chat("early"))))
        thread.start()
        while client.get("/health").json()["waiting"] < 1:
            pass
        proceed.set()
        thread.join(PATIENCE_S)
        assert answers[0].status_code == 200
        assert client.get("/health").json()["loading"] is None


def test_a_stop_in_a_load_ends_the_server_without_it_and_tells_who_waits() -> None:
    proceed = threading.Event()

    def load(progress: Any) -> EchoEngine:
        assert proceed.wait(PATIENCE_S)
        return EchoEngine()

    answers: list[Any] = []
    with live_server(load, tcp(), ready=False) as server, server.client() as client:
        thread = threading.Thread(target=lambda: answers.append(client.post(CHAT, json=chat("early"))))
        thread.start()
        while client.get("/health").json()["waiting"] < 1:
            pass
        server.stop()
        server.thread.join(PATIENCE_S)
        thread.join(PATIENCE_S)
    assert server.ending is Ending.TERMINATED and answers[0].json()["error"]["code"] == "stopping"
    # Whoever ends the process knows by this name that nobody waits for the thread.
    assert any(thread.name.startswith(ENGINE_THREAD) for thread in threading.enumerate())
    proceed.set()


def test_a_stop_while_weights_are_packed_ends_the_packing() -> None:
    begun, left = threading.Event(), threading.Event()

    def load(progress: Any) -> EchoEngine:
        try:
            while True:
                progress(1, 10)
                begun.set()
        finally:
            left.set()

    with live_server(load, tcp(), ready=False) as server:
        assert begun.wait(PATIENCE_S)
        server.stop()
        server.thread.join(PATIENCE_S)
    assert left.is_set() and server.ending is Ending.TERMINATED


def test_a_load_that_fails_ends_the_server_with_its_reason() -> None:
    def load(progress: Any) -> EchoEngine:
        raise errors.ModelFileError("The file is damaged.")

    with live_server(load, tcp()) as server:
        pass
    assert isinstance(server.ending, errors.ModelFileError)


def test_the_idle_limit_ends_the_server() -> None:
    options = ServeOptions(port=0, idle_s=0.1)
    with live_server(EchoEngine(), options, ready=False) as server:
        server.thread.join(PATIENCE_S)
    assert server.ending is Ending.IDLE


@pytest.mark.model
def test_a_client_that_leaves_in_the_prefill_of_real_weights_changes_no_token(smollm2_path: Path) -> None:
    fresh = Engine.load(EngineConfig(smollm2_path))
    *_, end = fresh.complete(CompletionRequest((Message("user", "Say hello."),), 8))
    assert isinstance(end, Finished)
    with live_server(Engine.load(EngineConfig(smollm2_path)), tcp()) as server, server.client() as client:
        with client.stream("POST", CHAT, json=chat("word " * 3000, stream=True, redraft={})) as answer:
            for line in answer.iter_lines():  # left after the first pass of many
                if '"type":"prefill","done":0' not in line and '"prefill"' in line:
                    break
        whole = client.post(CHAT, json=chat("Say hello.", max_tokens=8, redraft={})).json()
        metrics = client.get("/metrics").text
    assert whole["redraft"]["token_ids"] == list(end.token_ids)
    assert 'redraft_requests_total{outcome="cancelled"} 1.0' in metrics


def _raw_request(url: str, body: dict[str, Any]) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    content = json.dumps(body).encode()
    sock = socket.create_connection((host, int(port)))
    head = ["Host: 127.0.0.1", "Content-Type: application/json", f"Content-Length: {len(content)}"]
    sock.sendall("\r\n".join([f"POST {CHAT} HTTP/1.1", *head, "", ""]).encode() + content)
    return sock
