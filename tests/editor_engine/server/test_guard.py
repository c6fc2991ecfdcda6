"""What never reaches the routes: other hosts, no key, bodies too large; and connections that stall."""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from editor_engine.server.options import Limits, ServeOptions
from tests.support.served_engine import PATIENCE_S, EchoEngine, LiveServer, chat, live_server, tcp

CHAT = "/v1/chat/completions"
KEY = "a-secret-of-ours"


@pytest.fixture(scope="module")
def keyed() -> Iterator[LiveServer]:
    with live_server(EchoEngine(), ServeOptions(port=0, key=KEY)) as server:
        yield server


@pytest.fixture(scope="module")
def keyless() -> Iterator[LiveServer]:
    with live_server(EchoEngine(), tcp()) as server:
        yield server


@contextlib.contextmanager
def connected(server: LiveServer) -> Iterator[socket.socket]:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as sock:
        yield sock


def read_all(sock: socket.socket) -> bytes:
    got = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            got += piece
    return bytes(got)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:80", "LOCALHOST:1", "[::1]:9"])
def test_a_name_of_this_machine_is_answered(keyless: LiveServer, host: str) -> None:
    with keyless.client() as client:
        assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "[::1"])
def test_another_name_is_refused(keyless: LiveServer, host: str) -> None:
    with keyless.client() as client:
        answer = client.get("/health", headers={"host": host})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "host")


def test_beyond_loopback_any_name_will_do_with_the_key() -> None:
    options = ServeOptions(host="0.0.0.0", port=0, key=KEY)
    with live_server(EchoEngine(), options) as server:
        port = server.url.rpartition(":")[2]
        headers = {"host": "build-box.example", "authorization": f"Bearer {KEY}"}
        for shown, status in ((headers, 200), ({"host": "build-box.example"}, 401)):
            answer = httpx2.get(f"http://127.0.0.1:{port}/health", headers=shown, trust_env=False)
            assert answer.status_code == status


def test_two_host_headers_and_none_are_refused(keyless: LiveServer) -> None:
    for lines in (b"Host: localhost\r\nHost: localhost\r\n", b""):
        with connected(keyless) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\n" + lines + b"\r\n")
            assert read_all(sock).split(b" ")[1] in (b"400", b"403")


def test_a_name_is_no_matter_on_the_unix_socket(tmp_path: Path) -> None:
    options = ServeOptions(socket=tmp_path / "s", key=KEY)  # nor is the key: the socket's mode says who may connect
    with live_server(EchoEngine(), options) as server, server.client() as client:
        assert client.get("/health", headers={"host": "anything"}).status_code == 200


@pytest.mark.parametrize("shown", [None, "", KEY, f"Basic {KEY}", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", "Bearer é"])
@pytest.mark.parametrize("path", ["/health", "/v1/models", "/metrics", CHAT, "/nowhere", "/openapi.json"])
def test_without_the_key_nothing_is_answered(keyed: LiveServer, shown: str | None, path: str) -> None:
    headers = {} if shown is None else {"authorization": shown.encode("utf-8")}
    with keyed.client() as client:
        answer = client.post(path, json=chat("x"), headers=headers)  # type: ignore[arg-type]  # bytes are fine
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "key")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert KEY not in answer.text


def test_with_the_key_everything_is(keyed: LiveServer) -> None:
    with keyed.client(headers={"authorization": f"Bearer {KEY}"}) as client:
        assert client.post(CHAT, json=chat("x")).status_code == 200
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("length", [2001, 10**11, 10**30])
def test_a_body_that_says_it_is_too_large_is_not_read(length: int) -> None:
    with live_server(EchoEngine(), tcp(body_bytes=2000)) as server, connected(server) as sock:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        sock.sendall(head.encode())
        assert read_all(sock).split(b" ")[1] in ((b"413",) if length < 10**20 else (b"413", b"400"))


def test_a_body_that_grows_too_large_is_stopped() -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"model": "'
        for _ in range(100):
            yield b"x" * 100

    with live_server(EchoEngine(), tcp(body_bytes=2000)) as server, server.client() as client:
        answer = client.post(CHAT, content=pieces(), headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
        assert client.post(CHAT, json=chat("x" * 1500)).status_code == 200


def test_more_bodies_than_the_server_can_hold_are_told_to_come_back() -> None:
    engine = EchoEngine(hold_at=0)
    with live_server(engine, tcp(held_bytes=3000)) as server, server.client() as client:
        threads = [threading.Thread(target=client.post, args=(CHAT,), kwargs={"json": chat("x" * 2000)})]
        threads[0].start()
        assert engine.held.wait(PATIENCE_S)
        refused = client.post(CHAT, json=chat("y" * 2000))
        assert (refused.status_code, refused.json()["error"]["code"], refused.headers["retry-after"]) == (
            503,
            "busy",
            "1",
        )
        assert client.get("/health").status_code == 200
        engine.hold_at = None
        engine.release.set()
        threads[0].join(PATIENCE_S)
        assert client.post(CHAT, json=chat("y" * 2000)).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_form_of_another_site_is_no_request(kind: str | None) -> None:
    engine = EchoEngine()
    with live_server(engine, tcp()) as server, server.client() as client:
        headers = {} if kind is None else {"content-type": kind}
        answer = client.post(CHAT, content=client.build_request("POST", "/", json=chat("x")).content, headers=headers)
        assert answer.status_code == 400
        assert not any(name.startswith("access-control") for name in answer.headers)
    assert engine.asked == []


@pytest.mark.parametrize(
    "sent", [b"", b"GET /hea", b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1"]
)
def test_a_client_that_stops_in_the_middle_of_a_request_is_cut_off(sent: bytes) -> None:
    with live_server(EchoEngine(), tcp(read_s=0.2)) as server, connected(server) as sock:
        sock.sendall(sent)
        read_all(sock)  # ends


def test_part_of_a_second_request_has_no_more_patience_than_the_first() -> None:
    with live_server(EchoEngine(), tcp(read_s=1.0)) as server, connected(server) as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")
        assert b"200 OK" in read_all(sock)


def test_a_slow_request_within_its_time_is_answered_however_long_the_answer_takes() -> None:
    engine = EchoEngine(hold_at=0)
    with live_server(engine, tcp(read_s=0.2)) as server, server.client() as client:
        answers: list[int] = []
        asking = threading.Thread(target=lambda: answers.append(client.post(CHAT, json=chat("x")).status_code))
        asking.start()
        assert engine.held.wait(PATIENCE_S)
        with connected(server) as sock:  # longer than a request may take to arrive
            read_all(sock)
        engine.release.set()
        asking.join(PATIENCE_S)
    assert answers == [200]


def test_a_client_that_reads_nothing_is_cut_off_and_its_request_has_run() -> None:
    engine = EchoEngine()
    words = "word " * 20_000  # its events do not fit any socket's buffers
    with live_server(engine, tcp(write_s=0.2)) as server, server.client() as client:
        with connected(server) as sock:
            body = client.build_request("POST", CHAT, json=chat(words, stream=True, redraft={})).content
            head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            poll = select.poll()
            poll.register(sock, 0)  # tells of the end of the connection only
            assert poll.poll(PATIENCE_S * 1000)
        assert client.post(CHAT, json=chat("next")).status_code == 200
    assert engine.asked == [words, "next"]


def test_more_connections_than_allowed_are_told_so() -> None:
    options = ServeOptions(port=0, limits=Limits(connections=3))
    with live_server(EchoEngine(), options) as server, contextlib.ExitStack() as stack:
        for _ in range(3):
            sock = stack.enter_context(connected(server))
            sock.sendall(b"GET /hea")
        with connected(server) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert read_all(sock).startswith(b"HTTP/1.1 503")
