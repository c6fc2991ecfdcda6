"""Where the comments of a source text are, by a parser, so that what looks like a comment in a string is none.

Tree-sitter where there is a grammar, pygments where there is a lexer, whole-line comments by the language's markers
where there is neither. Works on decoded lines; knows nothing of what a comment says. Invariant: comments do not overlap
and come in order, and each starts with one of the language's own markers.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.editing.grammar import parse
from app.editing.language import CommentStyle, Language

_LEXED = {"html", "vue"}
"""Languages with other languages inside, which their grammars take for plain text and their lexers do not."""


@dataclass(frozen=True)
class Comment:
    """One comment, its markers included."""

    first: int
    """0-based line it starts on."""
    start: int
    """Column, in characters, of its opening marker."""
    last: int
    """0-based line it ends on."""
    end: int
    """Column behind its last character; a line comment runs to the end of its line."""
    text: str
    """What is between the markers; lines joined with LF."""
    block: bool
    """It has a closing marker."""


@dataclass(frozen=True)
class _Text:
    """The lines as one string, with offsets in characters."""

    whole: str
    starts: tuple[int, ...]
    """Offset of every line."""

    def place(self, offset: int) -> tuple[int, int]:
        """(0-based line, column) of an offset."""
        line = bisect_right(self.starts, offset) - 1
        return line, offset - self.starts[line]


def find_comments(lines: Sequence[str], language: Language) -> list[Comment]:
    """Every comment of a text, given as lines without their ends."""
    text = _text(lines)
    regions = _parsed(text, lines, language)
    if regions is None:
        regions = _lexed(text, language)
    if regions is None:
        regions = _guessed(text, lines, language.comments)
    found: list[Comment] = []
    for start, end in _merged(regions):
        found += _comments_in(text, start, end, language.comments)
    return found


def _text(lines: Sequence[str]) -> _Text:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    return _Text("".join(f"{line}\n" for line in lines), tuple(starts))


def _parsed(text: _Text, lines: Sequence[str], language: Language) -> list[tuple[int, int]] | None:
    """Ranges of the grammar's comment nodes; None without a grammar."""
    tree = None if language.grammar is None or language.name in _LEXED else parse(language.grammar, text.whole)
    if tree is None:
        return None
    regions: list[tuple[int, int]] = []
    place = _Places(text, lines)
    stack = [tree.root_node]
    while stack:
        node = stack.pop()
        # `marginalia` is SQL's block comment; Markdown's comments are blocks of HTML.
        if "comment" in node.type.lower() or node.type in ("marginalia", "html_block"):
            regions.append((place.offset(*node.start_point), place.offset(*node.end_point)))
        else:
            stack.extend(reversed(node.children))  # in the order of the text, which `_Places` is quick in
    return regions


class _Places:
    """Offsets in characters of places that tree-sitter counts in rows and UTF-8 bytes."""

    def __init__(self, text: _Text, lines: Sequence[str]) -> None:
        self._text = text
        self._lines = lines
        self._row = -1
        self._bytes = b""
        self._at = (0, 0)
        """(byte, character) of this row that was asked for last: a minified file is one row with all the comments."""

    def offset(self, row: int, column: int) -> int:
        """Of a place in any row, quick where places of one row come in order."""
        if row >= len(self._lines):
            return len(self._text.whole)
        if row != self._row:
            self._row, self._at = row, (0, 0)
            self._bytes = self._lines[row].encode("utf-8", "surrogatepass")
        byte, character = self._at if self._at[0] <= column else (0, 0)
        character += len(self._bytes[byte:column].decode("utf-8", "surrogatepass"))
        self._at = (min(column, len(self._bytes)), character)
        return self._text.starts[row] + character


def _lexed(text: _Text, language: Language) -> list[tuple[int, int]] | None:
    """Ranges that pygments takes for comments; None without a lexer."""
    if not language.fence:
        return None
    # Deferred: pygments' lexers cost 30 ms and serve only what has no grammar.
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment as CommentToken
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language.fence)
    except ClassNotFound:
        return None
    tokens = lexer.get_tokens_unprocessed(text.whole)
    return [(at, at + len(value)) for at, kind, value in tokens if kind in CommentToken]


def _guessed(text: _Text, lines: Sequence[str], style: CommentStyle) -> list[tuple[int, int]]:
    """Comments that start a line, by markers alone."""
    regions: list[tuple[int, int]] = []
    inside = 0
    for number, line in enumerate(lines):
        at = text.starts[number] + len(line) - len(line.lstrip())
        if at < inside:
            continue
        block = _opened(text.whole, at, style)
        if block is not None:
            close = text.whole.find(block[1], at + len(block[0]))
            inside = len(text.whole) if close < 0 else close + len(block[1])
            regions.append((at, inside))
        elif line.lstrip().startswith(style.line or ("\0",)):
            regions.append((at, text.starts[number] + len(line)))
    return regions


def _merged(regions: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges in order, those that touch or overlap as one: lexers cut a comment into several tokens."""
    start = end = -1
    for region in sorted(regions):
        if region[0] <= end:
            end = max(end, region[1])
            continue
        if start >= 0:
            yield start, end
        start, end = region
    if start >= 0:
        yield start, end


def _opened(whole: str, at: int, style: CommentStyle) -> tuple[str, str] | None:
    """The block markers of which the opening stands at `at`; the longest one where several fit."""
    fitting = [pair for pair in style.block if whole.startswith(pair[0], at)]
    return max(fitting, key=lambda pair: len(pair[0]), default=None)


def _comments_in(text: _Text, start: int, end: int, style: CommentStyle) -> Iterator[Comment]:
    """The single comments of a range that is nothing but comments and what is between them."""
    at = start
    while at < end:
        line_end = text.whole.find("\n", at)
        block = _opened(text.whole, at, style)
        if block is not None:
            close = text.whole.find(block[1], at + len(block[0]), end)
            if close < 0:  # never closed: not a comment that anyone could remove
                return
            yield _comment(text, at, close + len(block[1]), text.whole[at + len(block[0]) : close], True)
            at = close + len(block[1])
            continue
        marker = next((marker for marker in style.line if text.whole.startswith(marker, at)), None)
        if marker is not None:
            yield _comment(text, at, line_end, text.whole[at + len(marker) : line_end], False)
            at = line_end
        at += 1


def _comment(text: _Text, start: int, end: int, said: str, block: bool) -> Comment:
    return Comment(*text.place(start), *text.place(end), said, block)
