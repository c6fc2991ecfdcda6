"""Server-sent events, cut anywhere."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clients import sse
from app.clients.sse import _LINE_END, MOST_EVENT_CHARS, SseError, SseParser


def parsed(pieces: list[bytes]) -> list[str]:
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)] + parser.finish()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"", []),
        (b"data: a\n\n", ["a"]),
        (b"data:a\n\n", ["a"]),
        (b"data:  a\n\n", [" a"]),
        (b"data: a", ["a"]),
        (b"data: a\n", ["a"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r", ["a", "b"]),
        (b": keep-alive\n\n:\n\ndata: a\n\n", ["a"]),
        (b"data: a\n: in between\ndata: b\n\n", ["a\nb"]),
        (b"event: message\nid: 7\nretry: 10\ndata: a\n\n", ["a"]),
        (b"event: ping\n\n", []),
        (b"data\n\n", [""]),
        (b"data:\n\n", [""]),
        (b"\n\n\n", []),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"database: a\n\n", []),
        ("data: é\u2028\u0085\x0b\n\n".encode(), ["é\u2028\u0085\x0b"]),
        (b"data: \xff\n\n", ["\ufffd"]),
    ],
)
def test_streams(stream: bytes, events: list[str]) -> None:
    assert parsed([stream]) == events
    assert parsed([bytes([byte]) for byte in stream]) == events


LINES = st.sampled_from(["data: ", "data:", ":", "event: x", "", "é€😀", 'data: {"a": "\u2028"}', "id: 1"])
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(LINES, st.text(max_size=5), ENDS)), st.data())
def test_cuts_change_nothing(lines: list[tuple[str, str, str]], data: st.DataObject) -> None:
    stream = "".join(map("".join, lines)).encode("utf-8", "surrogatepass")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert parsed(pieces) == parsed([stream])


@settings(derandomize=True, deadline=None)
@given(st.lists(st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]))), ENDS)
def test_what_a_server_sends_arrives(events: list[str], end: str) -> None:
    stream = "".join(f"data: {event}{end}{end}" for event in events)
    assert parsed([stream.encode()]) == events


def test_a_long_line_is_not_read_again_with_every_piece() -> None:
    class Counting:
        read = 0

        def search(self, text: str) -> object:
            self.read += len(text)
            return _LINE_END.search(text)

        def finditer(self, text: str) -> object:
            self.read += len(text)
            return _LINE_END.finditer(text)

    counting = Counting()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sse, "_LINE_END", counting)
        parser = SseParser()
        for _ in range(1000):
            assert parser.feed(b"data: " + b"x" * 994) == []
        assert len(parser.feed(b"\n\n")) == 1
    assert counting.read < 3_000_000


def test_an_event_without_end_is_refused() -> None:
    parser = SseParser()
    with pytest.raises(SseError):
        for _ in range(MOST_EVENT_CHARS // 1_000_000 + 2):
            parser.feed(b"x" * 1_000_000)
    parser = SseParser()
    with pytest.raises(SseError):
        for _ in range(MOST_EVENT_CHARS // 1_000_000 + 2):
            parser.feed(b"data: " + b"x" * 1_000_000 + b"\n")
