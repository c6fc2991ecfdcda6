"""Where an engine is, as users write it."""

import pytest

from app.clients.place import parse_place
from app.errors import UsageError


@pytest.mark.parametrize(
    ("text", "root", "api"),
    [
        ("http://localhost:8000", "http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000", "http://localhost:8000/v1"),
        (" http://localhost:8000/v1/ ", "http://localhost:8000", "http://localhost:8000/v1"),
        ("https://host/team/llm", "https://host/team/llm", "https://host/team/llm/v1"),
        ("https://host/api/v1", "https://host/api", "https://host/api/v1"),
        ("https://host/v1beta/openai/", "https://host/v1beta/openai", "https://host/v1beta/openai"),
        ("http://[::1]:80/v1", "http://[::1]:80", "http://[::1]:80/v1"),
        ("http://h:1/v1/chat/completions", "http://h:1", "http://h:1/v1"),
        ("http://h:1/chat/completions/", "http://h:1", "http://h:1/v1"),
    ],
)
def test_web_addresses(text: str, root: str, api: str) -> None:
    place = parse_place(text)
    assert (place.root, place.api, place.socket) == (root, api, None)


@pytest.mark.parametrize("text", ["unix:/run/a b/serve.sock", "unix:///run/a b/serve.sock"])
def test_sockets(text: str) -> None:
    place = parse_place(text)
    assert (place.socket, place.shown) == ("/run/a b/serve.sock", "unix:/run/a b/serve.sock")
    assert not place.in_the_open


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "localhost:8000",
            "ftp://host",
            "http://",
            "http://host:port",
            "http://[1/v1",
            "unix:",
            "unix:serve.sock",
        ),
        *("http://host/v1?key=a", "http://host/#a", "file:///etc/passwd"),
    ],
)
def test_what_is_no_address_is_said_so(text: str) -> None:
    with pytest.raises(UsageError, match="engine"):
        parse_place(text)


def test_a_key_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="REDRAFT_ENGINE_KEY") as caught:
        parse_place("https://user:sk-secret@host/v1")
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("http://host", True),
        ("https://host", False),
        ("http://localhost", False),
        ("http://127.0.0.1:1", False),
        ("http://[::1]:1", False),
        ("http://10.0.0.1", True),
        ("http://localhost.evil.example", True),
    ],
)
def test_what_can_be_read_on_the_way(text: str, is_open: bool) -> None:
    assert parse_place(text).in_the_open is is_open
