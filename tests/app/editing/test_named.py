"""Words of an instruction that are meant as code, and what a line seems to define."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.language import language_named
from app.editing.named import code_words, symbols_of

_CALLED = re.compile(r"([^\W\d][\w$]*)\(")


@settings(derandomize=True, deadline=None)
@given(st.text("ab1_$(é ", max_size=30))
def test_what_is_called_is_found_as_one_expression_would(instruction: str) -> None:
    plain = re.compile(r"\w_\w|[a-z0-9][A-Z]|^_|\d")
    spelled = {word for word in re.findall(r"[^\W\d][\w$]*", instruction) if plain.search(word)}
    assert code_words(instruction) == spelled | set(_CALLED.findall(instruction))


def test_long_words_and_long_lines_take_no_square_of_their_size() -> None:
    """Else this is minutes and hours: an instruction and a file may come from anyone."""
    assert code_words("x" * 500_000) == set()
    assert code_words("x" * 500_000 + "(") == {"x" * 500_000}
    assert symbols_of(["let " * 20_000 + "!"], language_named("kotlin"), "let") == ()


def test_a_line_that_defines_is_known_without_a_parser() -> None:
    [symbol] = symbols_of(["fun load(a: Int) {", "    a", "}", "x"], language_named("kotlin"), "mend load")
    assert (symbol.base, symbol.first, symbol.last) == ("load", 1, 3)
