"""Stop texts: found wherever they stand and however the text is cut, dropped whole, and nothing else is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.decode.stop_text import StopText

FEW = st.text(alphabet="ab\n", max_size=30)
STOPS = st.lists(st.text(alphabet="ab\n", min_size=1, max_size=4), max_size=3)


def slow_twin(text: str, stops: list[str]) -> tuple[str, bool]:
    """One character at a time: the first moment at which the text holds a stop text."""
    for end in range(len(text) + 1):
        found = [text[:end].find(stop) for stop in stops if stop in text[:end]]
        if found:
            return text[: min(found)], True
    return text, False


def fed_by_character(text: str, stops: list[str]) -> tuple[str, bool]:
    stop, released = StopText(stops), ""
    for character in text:
        released += stop.feed(character)
        if stop.found:
            return released, True
    return released + stop.finish(), False


@settings(derandomize=True, deadline=None)
@given(FEW, STOPS)
def test_a_stop_text_is_found_by_character(text: str, stops: list[str]) -> None:
    assert fed_by_character(text, stops) == slow_twin(text, stops)


@settings(derandomize=True, deadline=None)
@given(st.lists(FEW), STOPS)
def test_nothing_is_lost_and_no_stop_text_gets_out(pieces: list[str], stops: list[str]) -> None:
    stop, released, fed = StopText(stops), "", ""
    for piece in pieces:
        released += stop.feed(piece)
        fed += piece
        assert fed.startswith(released)
        assert not any(text in released for text in stops)
        if stop.found:
            assert any(fed[len(released) :].startswith(text) for text in stops)
            return
    assert released + stop.finish() == fed
    assert not any(text in fed for text in stops)


def test_text_is_held_back_only_while_it_may_be_a_stop_text() -> None:
    stop = StopText(["END", "ENTER"])
    assert [stop.feed(piece) for piece in ("a E", "N", "T", "x")] == ["a ", "", "", "ENTx"]
    assert not stop.found
    assert [stop.feed(piece) for piece in ("E", "ND and more")] == ["", ""]
    assert stop.found
