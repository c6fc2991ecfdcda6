"""Which engine is taken, and why."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from app.clients.child import ChildClient
from app.clients.choose import choose, running_server
from app.clients.http import HttpClient
from app.clients.in_process import InProcessClient
from app.errors import UsageError
from app.load_options import LoadOptions
from app.settings import Settings
from editor_engine.config import HfOptions, socket_path
from editor_engine.kernels import CONTRACT_VERSION
from editor_engine.models.hf.checkpoint import open_folder
from editor_engine.store.installed import LocatedModel
from editor_engine.wire import EngineIdentity, identity_to_json
from tests.support.bare_checkpoint import write_bare

IDENTITY = EngineIdentity(version("redraft"), CONTRACT_VERSION, "served", "a" * 64, "cpu", 2, "scalar", 4096)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    located = LocatedModel(tmp_path / "m.gguf", IDENTITY.sha256, "served")
    monkeypatch.setattr("editor_engine.store.installed.locate", lambda model: located)


@contextmanager
def serving(answer: bytes, mode: int = 0o700) -> Iterator[None]:
    """Something on the default socket that answers every connection with these bytes."""
    path = socket_path()
    path.parent.mkdir()
    path.parent.chmod(mode)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.fspath(path))
        sock.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = sock.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            sock.shutdown(socket.SHUT_RDWR)
            thread.join()


def health(engine: EngineIdentity | None) -> bytes:
    body = json.dumps({"status": "ready", "engine": None if engine is None else identity_to_json(engine)}).encode()
    return b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body


def test_without_anything_the_engine_is_ours() -> None:
    assert isinstance(choose(Settings()), InProcessClient)
    assert isinstance(choose(Settings(), child=True), ChildClient)


def test_an_address_wins_over_the_settings_and_both_over_what_runs() -> None:
    with serving(health(IDENTITY)):
        for found, expected in (
            (
                choose(Settings(engine_url="http://a", engine_model="s"), engine="http://b", load={"model": "o"}),
                ("http://b", "o"),
            ),
            (choose(Settings(engine_url="http://a", engine_model="s")), ("http://a", "s")),
            (choose(Settings(engine_url="http://a", load=LoadOptions(model="local")), child=True), ("http://a", None)),
        ):
            assert isinstance(found, HttpClient)
            assert (found._exchange.place.shown, found._model) == expected


def test_an_address_that_is_none_is_said_before_anything_runs() -> None:
    with pytest.raises(UsageError):
        choose(Settings(), engine="nowhere")


@pytest.mark.parametrize("place", [{"engine": "http://a"}, {}])
def test_options_that_another_engine_would_not_hear_of_are_refused(place: dict[str, str]) -> None:
    settings = Settings() if place else Settings(engine_url="http://a")
    with pytest.raises(UsageError, match=r"^--max-memory, --quantise: this is for an engine of our own"):
        choose(settings, load={"quantise": "nf4", "max_memory": 1, "threads": 3, "model": "m"}, **place)
    kept = Settings(engine_url="http://a", load=LoadOptions(max_memory=1, hf=HfOptions(quantise="nf4")))
    assert isinstance(choose(kept), HttpClient)


def test_the_key_goes_to_an_address_and_not_to_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_ENGINE_KEY", "sk-1")
    keys = []
    for address in ("https://host", "unix:/run/s"):
        client = choose(Settings(), engine=address)
        assert isinstance(client, HttpClient)
        keys.append(client._exchange.key)
    assert keys == ["sk-1", None]


def test_a_running_server_that_is_the_right_one_is_taken() -> None:
    with serving(health(IDENTITY)):
        found = choose(Settings())
        assert isinstance(found, HttpClient) and found._exchange.place.socket == str(socket_path())
        assert isinstance(choose(Settings(), child=True), ChildClient)


@pytest.mark.parametrize(
    "other",
    [
        replace(IDENTITY, version="0.0.0"),
        replace(IDENTITY, contract_version=CONTRACT_VERSION + 1),
        replace(IDENTITY, sha256="b" * 64),
        None,
    ],
)
def test_another_version_arithmetic_or_model_or_one_that_loads_is_passed_over(other: EngineIdentity | None) -> None:
    with serving(health(other)):
        assert isinstance(choose(Settings()), InProcessClient)


def test_a_server_that_loaded_otherwise_is_passed_over(tmp_path: Path) -> None:
    asked = [
        LoadOptions(context_length=4096),
        LoadOptions(draft_model="small"),
        LoadOptions(draft_rule="rejection"),
        LoadOptions(hf=HfOptions(quantise="nf4")),
    ]
    with serving(health(IDENTITY)):
        assert [type(choose(Settings(load=options))) for options in asked] == [InProcessClient] * len(asked)
        for options in (LoadOptions(threads=1), LoadOptions(max_memory=1 << 40)):  # the tokens are the same
            assert isinstance(choose(Settings(load=options)), HttpClient)
    for options in asked:
        draft = None if options.draft_model is None else tmp_path / "m.gguf"
        config = options.config(tmp_path / "m.gguf", draft)
        socket_path().unlink()
        socket_path().parent.rmdir()
        with serving(health(replace(IDENTITY, loaded_as=config.loaded_as))):
            assert isinstance(choose(Settings(load=options)), HttpClient)
            assert isinstance(choose(Settings()), InProcessClient)


def test_a_server_of_another_backend_needs_no_contract_of_ours_but_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_bare(tmp_path / "bare")
    monkeypatch.setattr("editor_engine.store.installed.locate", lambda model: LocatedModel(folder, None, "bare"))
    theirs = replace(IDENTITY, backend="transformers", contract_version=0, sha256=open_folder(folder).sha256)
    with serving(health(theirs)):
        assert isinstance(choose(Settings()), HttpClient)
        assert isinstance(choose(Settings(load=LoadOptions(hf=HfOptions(dtype="float32")))), InProcessClient)
        (folder / "config.json").write_bytes((folder / "config.json").read_bytes() + b" ")
        assert isinstance(choose(Settings()), InProcessClient)


@pytest.mark.parametrize(
    "answer",
    [b"", b"nonsense\r\n\r\n", *(b"HTTP/1.1 200 OK\r\n\r\n" + body for body in (b"[]", b"{", b"[" * 200_000))],
)
def test_another_program_on_the_socket_is_passed_over(answer: bytes) -> None:
    with serving(answer):
        assert running_server(socket_path()) is None


def test_a_folder_that_others_may_enter_is_not_trusted() -> None:
    with serving(health(IDENTITY), mode=0o755):
        assert running_server(socket_path()) is None


def test_what_a_killed_server_left_is_passed_over() -> None:
    path = socket_path()
    path.parent.mkdir(mode=0o700)
    assert running_server(path) is None
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.fspath(path))
    assert path.exists() and running_server(path) is None
    path.unlink()
    path.write_text("a file")
    assert running_server(path) is None
