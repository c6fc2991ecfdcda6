"""Filler text has the length asked for and is always the same."""

import ast
from itertools import islice

import pytest

from editor_engine.bench.filler import filler_text, filler_tokens, functions


def encode(text: str) -> list[int]:
    return [ord(character) for character in text]


@pytest.mark.parametrize("tokens", [1, 7, 1000, 9001])
def test_exactly_so_many_tokens_each_length_a_beginning_of_the_next(tokens: int) -> None:
    assert len(filler_tokens(tokens, encode)) == tokens
    assert filler_tokens(tokens + 50, encode)[:tokens] == filler_tokens(tokens, encode)


def test_text_reaches_its_length_with_whole_functions() -> None:
    text = filler_text(900, encode)
    longest = max(len(piece) for piece in islice(functions(), 10))
    assert 900 <= len(text) < 900 + longest
    assert ast.parse(text).body and text == "".join(islice(functions(), text.count("def ")))
