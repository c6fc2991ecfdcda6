"""What an instruction names in a file: symbols, and words that look like code.

Matching is by whole words, case kept. Knows nothing of checks. Invariant: a word that the file does not have names
nothing.
"""

import re
from collections.abc import Sequence

from app.editing.language import Language
from app.editing.lost_lines import indent
from app.editing.symbols import Symbol, find_symbols

_NAME = re.compile(r"[^\W\d][\w$]*")
_QUOTED = re.compile(r"`([^`\n]+)`")
_CODE_LIKE = re.compile(r"\w_\w|[a-z0-9][A-Z]|^_|\d")
_CLOSER = re.compile(r"\W*(?:end\w*|fi|done|esac)?\W*$")
_DEFINES = re.compile(
    r"(?:\b(?:def|defp?|fn|fun|func|function|sub|proc|procedure|method|class|struct|enum|union|interface|trait|impl|"
    r"module|namespace|type|record|object|protocol|macro|const|let|var|val|static)\b[^=(]*?|^\s*(?:[\w<>\[\]:*&,]+\s+)*)"
    r"([^\W\d][\w$]*)\s*(?:[(<:={]|$)"
)
_LONGEST_DEFINING = 500
"""Characters of a line that may define something: the search takes time by the square of that and worse."""


def words_of(text: str) -> set[str]:
    """Every identifier-like word."""
    return set(_NAME.findall(text))


def code_words(instruction: str) -> set[str]:
    """Words that are meant as code: quoted with backticks, called, or spelled like no word of prose."""
    quoted = {word for span in _QUOTED.findall(instruction) for word in _NAME.findall(span)}
    spelled = {word for word in words_of(instruction) if _CODE_LIKE.search(word)}
    # Looked at behind each word: an expression with the bracket in it tries every letter of a long word as a start.
    called = {word[0] for word in _NAME.finditer(instruction) if instruction.startswith("(", word.end())}
    return quoted | spelled | called


def symbols_of(lines: Sequence[str], language: Language, instruction: str) -> tuple[Symbol, ...]:
    """The file's definitions; where the language has no parser here, those that the instruction seems to name."""
    found = find_symbols(lines, language)
    return found if found is not None else _indented_blocks(lines, words_of(instruction))


def named_symbols(symbols: Sequence[Symbol], instruction: str) -> list[Symbol]:
    """Those whose last name is a word of the instruction."""
    words = words_of(instruction)
    return [symbol for symbol in symbols if symbol.base in words]


def asked_lines(symbols: Sequence[Symbol], named: Sequence[Symbol], survivors: set[str], gone_only: bool) -> set[int]:
    """0-based lines inside named symbols, whose loss was asked for.

    Args:
        symbols: all of the source's.
        named: those the instruction names.
        survivors: dotted names that the result still defines.
        gone_only: count a symbol only if the result no longer defines it.

    A definition inside a named one that vanished without being named itself does not count: adding a method to a class
    is no leave to drop another.
    """
    asked: set[int] = set()
    names = {symbol.name for symbol in named}
    for symbol in named:
        gone = symbol.name not in survivors
        if gone_only and not gone:
            continue
        asked.update(range(symbol.first - 1, symbol.last))
        if gone:
            continue
        for inner in symbols:
            vanished = inner.name not in survivors and inner.name not in names
            if vanished and inner.name.startswith(f"{symbol.name}."):
                asked.difference_update(range(inner.first - 1, inner.last))
    return asked


def _indented_blocks(lines: Sequence[str], words: set[str]) -> tuple[Symbol, ...]:
    """Definitions by their look: a line that defines a word, and what is indented below it."""
    blocks = []
    for at, line in enumerate(lines):
        match = _DEFINES.search(line) if len(line) <= _LONGEST_DEFINING else None
        if match is None or match[1] not in words:
            continue
        depth = indent(line)
        last = at
        for below in range(at + 1, len(lines)):
            text = lines[below]
            if not text.strip():
                continue
            closes = indent(text) == depth and _CLOSER.match(text) is not None
            if indent(text) <= depth and not closes:
                break
            last = below
            if closes and "{" not in text:
                break
        blocks.append(Symbol(match[1], at + 1, last + 1))
    return tuple(blocks)
