"""Syntax colours of a text's lines, found when a line is first shown.

Tree-sitter where a grammar and its highlight queries are installed, pygments elsewhere. Knows nothing of widgets.
Invariant: colours never change a character, and a text that no parser takes has none.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from rich.style import Style
from textual.theme import Theme

from app.editing.grammar import load_grammar, parse
from app.editing.language import Language

if TYPE_CHECKING:
    from tree_sitter import Query, Tree

_CHUNK = 64
"""Lines coloured at once."""
_LONGEST = 2_000
"""Characters of a line that are coloured: longer ones are data, and would cost a frame."""

Spans = tuple[tuple[int, int, str], ...]
"""(first character, end, class) in order, later ones over earlier ones."""

_QUERY_NAMES = {
    "string": "string",
    "comment": "comment",
    "number": "number",
    "float": "number",
    "keyword": "keyword",
    "repeat": "keyword",
    "conditional": "keyword",
    "exception": "keyword",
    "include": "keyword",
    "function": "function",
    "method": "function",
    "constructor": "type",
    "class": "type",
    "type": "type",
    "boolean": "constant",
    "constant": "constant",
    "tag": "tag",
    "heading": "heading",
    "label": "field",
    "json.label": "field",
    "yaml.field": "field",
    "css.property": "field",
    "property": "field",
    "none": "",
}
"""First part (or all) of a query's capture name to a class; "" takes colours off again."""

_DARK = {
    "comment": Style(color="#8a93a6", italic=True),
    "string": Style(color="#a8cc88"),
    "number": Style(color="#d8a871"),
    "keyword": Style(color="#c792ea"),
    "function": Style(color="#82b1ff"),
    "type": Style(color="#7fd4c8"),
    "constant": Style(color="#e0aa70"),
    "tag": Style(color="#f08d86"),
    "heading": Style(color="#82b1ff", bold=True),
    "field": Style(color="#9cc4e4"),
}
_LIGHT = {
    "comment": Style(color="#66707f", italic=True),
    "string": Style(color="#3a6b1e"),
    "number": Style(color="#8a4b00"),
    "keyword": Style(color="#7b2fa8"),
    "function": Style(color="#1c4fb0"),
    "type": Style(color="#0c6b62"),
    "constant": Style(color="#94500a"),
    "tag": Style(color="#a8322a"),
    "heading": Style(color="#1c4fb0", bold=True),
    "field": Style(color="#245a82"),
}


_ANSI = {
    "comment": Style(color="bright_black", italic=True),
    "string": Style(color="green"),
    "number": Style(color="yellow"),
    "keyword": Style(color="magenta"),
    "function": Style(color="blue"),
    "type": Style(color="cyan"),
    "constant": Style(color="yellow"),
    "tag": Style(color="red"),
    "heading": Style(color="blue", bold=True),
    "field": Style(color="cyan"),
}
"""The terminal's own sixteen colours, which it keeps readable on its own background."""


def class_style(kind: str, theme: Theme) -> Style:
    """How a class is drawn on a theme; the foreground only."""
    if theme.ansi:
        return _ANSI[kind]
    return (_DARK if theme.dark else _LIGHT)[kind]


class Highlighter:
    """The colours of one text, line by line."""

    def __init__(self, lines: Sequence[str], language: Language) -> None:
        self._lines = lines
        self._found: dict[int, Spans] = {}
        query = None if language.grammar is None else _query(language.grammar)
        tree = None if query is None else parse(language.grammar or "", "\n".join(lines))
        self._parsed = None if query is None or tree is None else (query, tree)
        self._lexed = _lexed(lines, language) if self._parsed is None else None
        self._lexed_to = 0

    def spans(self, number: int) -> Spans:
        """Coloured parts of line `number` (from 0)."""
        if number not in self._found:
            if self._parsed is not None:
                self._colour_parsed(*self._parsed, number // _CHUNK * _CHUNK)
            elif self._lexed is not None:
                self._colour_lexed(self._lexed, number)
        return self._found.get(number, ())

    def find_first(self, count: int) -> None:
        """Find the colours of the first `count` lines before they are shown, as on a thread."""
        for number in range(0, min(count, len(self._lines)), _CHUNK):
            self.spans(number)

    def _colour_parsed(self, query: "Query", tree: "Tree", first: int) -> None:
        from tree_sitter import QueryCursor

        end = min(first + _CHUNK, len(self._lines))
        cursor = QueryCursor(query)
        cursor.set_point_range((first, 0), (end, 0))
        found: dict[int, list[tuple[int, int, str]]] = {number: [] for number in range(first, end)}
        nodes = [
            (node.start_byte, -node.end_byte, order, node, kind)
            for order, (name, all_) in enumerate(cursor.captures(tree.root_node).items())
            if (kind := _class_of(name)) is not None
            for node in all_
        ]
        nodes.sort(key=lambda entry: entry[:3])
        columns = {number: _Columns(self._lines[number]) for number in range(first, end)}
        for *_, node, kind in nodes:
            last = node.end_point.row
            for row in range(max(first, node.start_point.row), min(end - 1, last) + 1):
                if len(self._lines[row]) > _LONGEST:
                    continue
                left = columns[row](node.start_point.column) if row == node.start_point.row else 0
                right = columns[row](node.end_point.column) if row == last else len(self._lines[row])
                if left < right:
                    found[row].append((left, right, kind))
        self._found.update((number, tuple(spans)) for number, spans in found.items())

    def _colour_lexed(self, lexed: "Iterator[tuple[int, Spans]]", number: int) -> None:
        while self._lexed_to <= number:
            line = next(lexed, None)
            if line is None:
                return
            self._found[line[0]] = line[1]
            self._lexed_to = line[0] + 1


class _Columns:
    """Bytes of a line's UTF-8 form to characters."""

    def __init__(self, line: str) -> None:
        self._starts: list[int] | None = None
        if not line.isascii():
            self._starts = [0]
            for char in line:
                self._starts.append(self._starts[-1] + len(char.encode("utf-8", "surrogatepass")))

    def __call__(self, byte: int) -> int:
        return byte if self._starts is None else bisect_right(self._starts, byte) - 1


@cache
def _query(grammar: str) -> "Query | None":
    language = load_grammar(grammar)
    source = files("textual").joinpath("tree-sitter", "highlights", f"{grammar}.scm")
    if language is None or not source.is_file():
        return None
    from tree_sitter import Query, QueryError

    try:
        return Query(language, source.read_text(encoding="utf-8"))
    except QueryError:  # the grammar is newer than the query: pygments serves
        return None


@cache
def _class_of(name: str) -> str | None:
    return _QUERY_NAMES.get(name, _QUERY_NAMES.get(name.partition(".")[0]))


def _lexed(lines: Sequence[str], language: Language) -> "Iterator[tuple[int, Spans]] | None":
    """The lines' colours by pygments, lexed no further than asked; None where it has no lexer."""
    # Deferred: pygments' table of lexers costs 30 ms.
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    if not language.fence:
        return None
    try:
        lexer = get_lexer_by_name(language.fence, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None

    def walk() -> Iterator[tuple[int, Spans]]:
        number = column = 0
        spans: list[tuple[int, int, str]] = []
        for token, text in lexer.get_tokens("\n".join(line[:_LONGEST] for line in lines)):
            kind = _class_of_token(token)
            for index, part in enumerate(text.split("\n")):
                if index:
                    yield number, tuple(spans)
                    number, column, spans = number + 1, 0, []
                if part and kind is not None:
                    spans.append((column, column + len(part), kind))
                column += len(part)
        yield number, tuple(spans)

    return walk()


@cache
def _class_of_token(token: object) -> str | None:
    from pygments.token import Token

    for kind, name in (
        (Token.Comment, "comment"),
        (Token.Literal.String, "string"),
        (Token.Literal.Number, "number"),
        (Token.Keyword.Type, "type"),
        (Token.Keyword.Constant, "constant"),
        (Token.Keyword, "keyword"),
        (Token.Operator.Word, "keyword"),
        (Token.Name.Function, "function"),
        (Token.Name.Class, "type"),
        (Token.Name.Builtin, "function"),
        (Token.Name.Constant, "constant"),
        (Token.Name.Tag, "tag"),
        (Token.Name.Attribute, "field"),
        (Token.Generic.Heading, "heading"),
    ):
        if token in kind:
            return name
    return None
