"""Definitions in a source text: dotted name and the lines each one covers.

Python goes through `ast` while it parses; every other language, and Python with a syntax error, through tree-sitter
definitions. Knows nothing of regions or checks. Invariant: a symbol lies inside every symbol that its dotted name
names, and symbols come in the order of their first lines, outer before inner.
"""

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.editing.grammar import node_text, parse
from app.editing.language import Language

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True)
class Symbol:
    """One definition."""

    name: str
    """Dotted from the outermost definition in: `Model.view`."""
    first: int
    """1-based line of its first line, decorators and attributes included, a comment before it not."""
    last: int
    """1-based line of its last line, at least `first`."""

    @property
    def base(self) -> str:
        """Last part of the dotted name."""
        return self.name.rpartition(".")[2]


# grammar -> node type -> field that holds the name
_DEFINITIONS: dict[str, dict[str, str]] = {
    "python": {"function_definition": "name", "class_definition": "name"},
    "javascript": {
        "function_declaration": "name",
        "generator_function_declaration": "name",
        "class_declaration": "name",
        "method_definition": "name",
        "variable_declarator": "name",
        "field_definition": "property",
        "pair": "key",
        "assignment_expression": "left",
    },
    "go": {
        "function_declaration": "name",
        "method_declaration": "name",
        "type_spec": "name",
        "type_alias": "name",
        "const_spec": "name",
        "var_spec": "name",
    },
    "rust": {
        "function_item": "name",
        "function_signature_item": "name",
        "struct_item": "name",
        "enum_item": "name",
        "union_item": "name",
        "trait_item": "name",
        "type_item": "name",
        "const_item": "name",
        "static_item": "name",
        "mod_item": "name",
        "macro_definition": "name",
        "impl_item": "type",
    },
    "java": {
        "class_declaration": "name",
        "interface_declaration": "name",
        "enum_declaration": "name",
        "record_declaration": "name",
        "annotation_type_declaration": "name",
        "method_declaration": "name",
        "constructor_declaration": "name",
    },
    "bash": {"function_definition": "name"},
}

# Nodes that only count as a definition with one of these values: `const f = () => ...`, `a: function () {}`.
_FUNCTION_VALUES = {"arrow_function", "function_expression", "generator_function", "class", "function"}
_NEED_VALUE = {"field_definition": "value", "pair": "value", "assignment_expression": "right"}

# A parent that belongs to the definition: `export function f`, `@decorated def f`, `type T struct` as one declaration.
_WRAPPERS = {
    "export_statement",
    "decorated_definition",
    "lexical_declaration",
    "variable_declaration",
    "expression_statement",
    "type_declaration",
    "const_declaration",
    "var_declaration",
}


def has_symbols(language: Language) -> bool:
    """True for a language whose definitions we can find."""
    return language.grammar in _DEFINITIONS


def find_symbols(lines: Sequence[str], language: Language) -> tuple[Symbol, ...] | None:
    """Every definition in `lines`, or None where the language has no parser here."""
    if not has_symbols(language):
        return None
    if language.grammar == "python":
        module = parse_python("\n".join(lines))
        if module is not None:
            return tuple(_python_symbols(module, ""))
    tree = parse(str(language.grammar), "\n".join(lines) + "\n")
    if tree is None:
        return None
    found = _tree_symbols(tree.root_node, _DEFINITIONS[str(language.grammar)])
    return tuple(sorted(found, key=lambda symbol: (symbol.first, -symbol.last)))


def enclosing(symbols: Sequence[Symbol], line: int) -> str:
    """Dotted name of the innermost definition around a 1-based line; empty outside all of them."""
    around = [symbol for symbol in symbols if symbol.first <= line <= symbol.last]
    return min(around, key=lambda symbol: symbol.last - symbol.first).name if around else ""


def parse_python(text: str) -> ast.Module | None:
    """Syntax tree of `text`, or None where this Python cannot parse it. Nothing is run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _python_symbols(node: ast.AST, prefix: str) -> Iterator[Symbol]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            yield Symbol(prefix + child.name, first, child.end_lineno or child.lineno)
            yield from _python_symbols(child, f"{prefix}{child.name}.")
        else:
            yield from _python_symbols(child, prefix)


def _tree_symbols(root: "Node", definitions: dict[str, str]) -> Iterator[Symbol]:
    # An explicit stack: generated code nests deeper than Python's own.
    stack: list[tuple[Node, str]] = [(root, "")]
    while stack:
        node, prefix = stack.pop()
        name = _defined_name(node, definitions)
        if name is not None:
            first, last = _extent(node)
            yield Symbol(prefix + name, first, last)
            prefix = f"{prefix}{name}."
        stack.extend((child, prefix) for child in reversed(node.named_children))


def _defined_name(node: "Node", definitions: dict[str, str]) -> str | None:
    field = definitions.get(node.type)
    if field is None:
        return None
    target = node.child_by_field_name(field)
    if target is None:
        return None
    value = _NEED_VALUE.get(node.type)
    if value is not None:
        held = node.child_by_field_name(value)
        if held is None or held.type not in _FUNCTION_VALUES:
            return None
    if node.type == "variable_declarator" and not _is_named_variable(node, target):
        return None
    if node.type in ("const_spec", "var_spec", "type_spec") and _inside_block(node):
        return None
    if node.type == "method_declaration" and (receiver := node.child_by_field_name("receiver")) is not None:
        return f"{_receiver_type(receiver)}.{node_text(target)}"
    return _plain_name(target)


def _is_named_variable(node: "Node", target: "Node") -> bool:
    """A function held by a variable anywhere, or any plain variable at the top of the file."""
    value = node.child_by_field_name("value")
    if value is not None and value.type in _FUNCTION_VALUES:
        return True
    declaration = node.parent
    outer = declaration.parent if declaration is not None else None
    at_top = outer is not None and outer.type in ("program", "export_statement")
    return at_top and target.type == "identifier"


def _inside_block(node: "Node") -> bool:
    """True for a Go declaration inside a function: a local name is nobody's symbol."""
    parent = node.parent
    while parent is not None and parent.type != "block":
        parent = parent.parent
    return parent is not None


def _receiver_type(receiver: "Node") -> str:
    """`Model` of a Go receiver `(m *Model[T])`."""
    stack = [receiver]
    while stack:
        node = stack.pop()
        if node.type == "type_identifier":
            return node_text(node)
        stack.extend(reversed(node.named_children))
    return node_text(receiver).strip("()")


def _plain_name(target: "Node") -> str:
    """The name without type parameters, quotes or `.prototype`."""
    if target.type == "generic_type" and (inner := target.child_by_field_name("type")) is not None:
        target = inner
    return node_text(target).strip("'\"`").replace(".prototype.", ".").replace("::", ".")


def _extent(node: "Node") -> tuple[int, int]:
    """1-based first and last line, with the wrappers and attributes that belong to the definition."""
    while (parent := node.parent) is not None and parent.type in _WRAPPERS and parent.named_child_count == _own(parent):
        node = parent
    first = node
    while (before := first.prev_named_sibling) is not None and before.type == "attribute_item":
        first = before
    # A node that ends at column 0 ends with the line before.
    row, column = node.end_point
    last = row if column == 0 and row > node.start_point[0] else row + 1
    return first.start_point[0] + 1, last


def _own(parent: "Node") -> int:
    """Named children a wrapper has when it wraps one definition only."""
    return 1 + sum(child.type in ("decorator", "comment") for child in parent.named_children)
