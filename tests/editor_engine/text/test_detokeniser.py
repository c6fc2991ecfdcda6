"""Ids to text as they arrive equals ids to text at once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.text.detokeniser import Detokeniser
from editor_engine.text.tokenizer import load_tokenizer
from tests.editor_engine.text.conftest import tiny_metadata

TOKENIZER = load_tokenizer(tiny_metadata())


def stream(ids: list[int]) -> list[str]:
    detokeniser = Detokeniser(TOKENIZER)
    return [*(detokeniser.feed(token_id) for token_id in ids), detokeniser.finish()]


# Mostly single bytes, so that broken UTF-8 of every shape appears.
IDS = st.lists(st.one_of(st.integers(128, 255), st.integers(0, TOKENIZER.vocab_size - 1)), max_size=40)


@settings(derandomize=True, deadline=None, max_examples=400)
@given(ids=IDS)
def test_any_ids_stream_to_what_they_decode_to(ids: list[int]) -> None:
    assert "".join(stream(ids)) == TOKENIZER.decode(ids)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_streams_without_replacement(text: str) -> None:
    assert "".join(stream(TOKENIZER.encode(text))) == text


def test_a_character_is_held_back_until_it_is_whole() -> None:
    assert stream(list("é€😀".encode())) == ["", "é", "", "", "€", "", "", "", "😀", ""]


def test_a_cut_character_ends_as_a_replacement() -> None:
    assert stream(list("a€".encode()[:-1])) == ["a", "", "", "\ufffd"]


def test_finish_leaves_nothing_for_the_next_text() -> None:
    detokeniser = Detokeniser(TOKENIZER)
    detokeniser.feed(0xE2)
    assert detokeniser.finish() == "\ufffd"
    assert detokeniser.feed(ord("a")) == "a"
    assert detokeniser.finish() == ""
