"""Where a reply ends: fed in any pieces, the text and the reason are those of the whole text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.decode.stopping import RepetitionGuard, ReplyEnd
from editor_engine.events import FinishReason

FENCE = "```"


def ended_at_once(text: str, stop_line: str | None, anchor: tuple[str, ...], blanks: int) -> tuple[str, FinishReason]:
    """The slow twin: the whole reply is there, and the first line that ends it is looked for."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line == stop_line and (at + 1 < len(lines) or line):
            return "".join(f"{kept}\n" for kept in lines[:at]), FinishReason.STOP_LINE
        solid = [index for index in range(at + 1) if lines[index].strip()]
        tail = solid[-len(anchor) :] if anchor else []
        if anchor and line.strip() and tuple(lines[index] for index in tail) == anchor:
            start = tail[0]
            while start and blanks and not lines[start - 1].strip():
                start -= 1
                blanks -= 1
            return "".join(f"{kept}\n" for kept in lines[:start]), FinishReason.ANCHOR
    return text, FinishReason.STOP


def fed(
    pieces: list[str], stop_line: str | None, anchor: tuple[str, ...] = (), blanks: int = 0
) -> tuple[str, FinishReason]:
    end = ReplyEnd(stop_line, anchor, blanks)
    released = ""
    for piece in pieces:
        released += end.feed(piece)
        if end.reason is not None:
            return released, end.reason
    released += end.finish(FinishReason.STOP)
    assert end.reason is not None
    return released, end.reason


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    return [*pieces, text[at:]]


line = st.sampled_from(["", " ", "a", "b", "ab", FENCE, "````", "``", "x = 1"])
texts = st.lists(line, max_size=12).map("\n".join)
sizes = st.lists(st.integers(0, 5), max_size=40)
anchors = st.lists(st.sampled_from(["a", "b", "ab", "x = 1"]), max_size=3).map(tuple)


@settings(derandomize=True, deadline=None, max_examples=600)
@given(text=texts, sizes=sizes, anchor=anchors, blanks=st.integers(0, 2))
def test_pieces_end_where_the_whole_ends(text: str, sizes: list[int], anchor: tuple[str, ...], blanks: int) -> None:
    assert fed(cut(text, sizes), FENCE, anchor, blanks) == ended_at_once(text, FENCE, anchor, blanks)


def test_text_that_cannot_be_the_stop_line_is_released_at_once() -> None:
    end = ReplyEnd(FENCE)
    assert end.feed("x") == "x"
    assert end.feed("\n``") == "\n"
    assert end.feed("y") == "``y"
    assert end.feed("\n") == "\n"


def test_a_longer_fence_is_data() -> None:
    assert fed(["````\ncode\n````\n"], FENCE) == ("````\ncode\n````\n", FinishReason.STOP)


def test_the_anchor_takes_only_the_blank_lines_the_file_has() -> None:
    text = "new\n\n\n\ndef next():\n    pass\n"
    assert fed([text], FENCE, ("def next():",), 2) == ("new\n\n", FinishReason.ANCHOR)


def test_a_false_start_of_the_anchor_is_text() -> None:
    anchor = ("}", "}", "end")
    assert fed(["a\n}\n}\n}\nend\n"], None, anchor) == ("a\n}\n", FinishReason.ANCHOR)
    assert fed(["a\n}\n}\n"], None, anchor) == ("a\n}\n}\n", FinishReason.STOP)


def test_a_cut_reply_releases_what_was_held() -> None:
    end = ReplyEnd(FENCE, ("end", "of"))
    assert end.feed("a\nend\n``") == "a\n"
    assert end.finish(FinishReason.LENGTH) == "end\n``"
    assert end.reason is FinishReason.LENGTH


def loop_length(output: list[int], source: list[int]) -> int | None:
    guard = RepetitionGuard(source)
    for count, token in enumerate(output, 1):
        if guard.feed(token):
            return count
    return None


@pytest.mark.parametrize("period", [1, 2, 7, 40, 200])
def test_a_loop_is_seen(period: int) -> None:
    output = list(range(1000, 1100)) + list(range(period)) * (4000 // period)
    found = loop_length(output, [])
    assert found is not None
    rounds = max(RepetitionGuard.MIN_ROUNDS * period, RepetitionGuard.MIN_TOKENS)
    assert rounds <= found <= 100 + rounds + 2 * RepetitionGuard.EVERY


def test_a_loop_that_the_source_has_is_no_loop() -> None:
    table = [1, 2, 3, 4] * 200
    assert loop_length(table, table) is None
    assert loop_length(table + table, table) is not None


def test_ordinary_code_is_no_loop() -> None:
    output = [(index * index) % 997 for index in range(5000)]
    assert loop_length(output, []) is None
