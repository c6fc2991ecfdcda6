"""Tree-sitter parsers by grammar name, loaded when first asked for.

The grammars are the separate wheels of textual's `syntax` extra. Knows nothing of symbols or checks. Invariant: a
grammar that is not installed or does not fit the installed tree-sitter is None, never an error: what needs it is
skipped and said so.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Tree


@cache
def load_grammar(name: str) -> "Grammar | None":
    """The grammar `name` (python, go, ...), or None where this machine has none that works."""
    # Deferred: 35 ms, and many edits need no parser.
    try:
        from tree_sitter import Language as Grammar

        module = import_module(f"tree_sitter_{name}")
        return Grammar(module.language_xml() if name == "xml" else module.language())
    except (ImportError, AttributeError, ValueError):
        return None


def parse(name: str, text: str) -> "Tree | None":
    """Syntax tree of `text`, with columns in UTF-8 bytes and rows from 0; None without the grammar."""
    grammar = load_grammar(name)
    if grammar is None:
        return None
    from tree_sitter import Parser

    # A lone surrogate cannot come from a decoded file, but a reply may hold one: it is data here, too.
    return Parser(grammar).parse(text.encode("utf-8", "surrogatepass"))


def node_text(node: "Node") -> str:
    """Text of a node; bytes that are not UTF-8 are shown replaced."""
    return node.text.decode("utf-8", "replace") if node.text is not None else ""
