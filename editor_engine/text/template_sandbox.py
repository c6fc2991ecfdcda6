"""Jinja for templates that a stranger wrote: no attribute that leads out of them, and an end to time and memory.

Knows Jinja; nothing of conversations. Invariant: what runs within `limited` has ended after CPU_SECONDS of its thread's
processor time (and the one library call that was under way), and its texts and lists had no more than LONGEST in all;
beyond either is a `SecurityError`.
"""

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from math import prod
from types import FrameType
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.filters import make_attrgetter
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

CPU_SECONDS = 2.0
"""Real templates take a few milliseconds."""

LONGEST = 1 << 28
"""Characters and elements of all texts and lists that are made; also the most that the sizes of a call's arguments may
multiply to."""

_CODE = "<template>"  # the file name that Jinja gives what it compiles from a string
_MOST_BITS = 4096  # of a number that is multiplied
_PERCENT = re.compile(r"\d{6,}|%[-+ #0]*\*")  # a field of a width that is large, or known to nobody yet
_BRACES = re.compile(r"\d{6,}|:[^{}]*\{")
_JOINED, _SLICED = "~", "[:]"  # names no template can spell
_RANDOM = ("lipsum",), ("random",)
"""Globals and filters that give something else every time."""


class Sandbox(ImmutableSandboxedEnvironment):
    """White space rules as transformers has them, which templates are written for."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", _Generation],
            finalize=_written,
        )
        names, filters = _RANDOM
        for name in names:
            del self.globals[name]
        self.filters["tojson"] = _to_json
        self.filters = {
            name: _bounded(name, function) for name, function in self.filters.items() if name not in filters
        }
        self.filters[_JOINED], self.filters[_SLICED] = _joined, _sliced

    def concat(self, parts: Iterable[str]) -> str:
        """The text of `parts`."""
        return _joined(parts)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """What Jinja does out of our sight, filters do here."""
        tree: nodes.Template = _Seen().visit(super()._parse(source, name, filename))
        return tree

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """As it is, where the result cannot be long."""
        if isinstance(left, str | list | tuple) or isinstance(right, str | list | tuple):
            if operator == "%":
                _refuse_width(left, _PERCENT)
            _count(_size(left) + _size(right) if operator == "+" else _size(left) * _size(right))
        elif isinstance(left, int) and isinstance(right, int) and operator in ("*", "**"):
            bits = left.bit_length() * max(right, 0) if operator == "**" else left.bit_length() + right.bit_length()
            _refuse_above(bits, _MOST_BITS)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """As it is; a method of a text only where the result cannot be long."""
        method = getattr(__obj, "__wrapped__", __obj)  # what the sandbox puts round `format`
        text = getattr(method, "__self__", None)
        if isinstance(text, str):
            if method.__name__ == "join" and args:
                args = (_checked(args[0], len(text)), *args[1:])
            else:
                if method.__name__ in ("format", "format_map"):
                    _refuse_width(text, _BRACES)
                _refuse_call((text, *args, *kwargs.values()))
            return _counted(super().call(__context, __obj, *args, **kwargs))
        return super().call(__context, __obj, *args, **kwargs)


@contextmanager
def limited() -> Iterator[None]:
    """Within, this thread may compile and render templates, for CPU_SECONDS. Raises SecurityError at their end."""
    deadline = time.thread_time() + CPU_SECONDS

    def watch(frame: FrameType, event: str, value: object) -> Callable[..., Any] | None:
        if time.thread_time() > deadline:
            raise SecurityError(f"it has not ended after {CPU_SECONDS:g} s of processor time")
        return watch if frame.f_code.co_filename == _CODE else None  # line by line in the template, else every call

    _made.size = 0
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)


class _Generation(Extension):
    """`{% generation %}` marks what a model wrote, for those who train on it; the text is the same without."""

    tags = {"generation"}  # noqa: RUF012 - as jinja declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Made(threading.local):
    """What this thread's template has made so far."""

    size = 0


_made = _Made()


class _Seen(NodeTransformer):
    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        operands = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(operands, _JOINED, [], [], None, None, lineno=node.lineno)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        ends = [end or nodes.Const(None) for end in (node.arg.start, node.arg.stop, node.arg.step)]
        return nodes.Filter(node.node, _SLICED, ends, [], None, None, lineno=node.lineno)


def _written(value: Any) -> Any:
    """What stands between `{{ }}`, before it is made a text."""
    if isinstance(value, list | tuple | dict):
        _refuse_above(_size(value))
    return value


def _joined(parts: Iterable[Any]) -> str:
    return "".join(map(str, _checked(parts, 0)))


def _sliced(value: Any, start: Any, stop: Any, step: Any) -> Any:
    return _counted(value[start:stop:step])


def _checked(parts: Iterable[Any], between: int) -> list[Any]:
    """`parts`, which with `between` characters between them are not too long."""
    found: list[Any] = []
    for part in parts:
        _count(between + _length(part))
        found.append(part)
    return found


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that is refused where its result could be long; `wraps` keeps what Jinja hangs on functions."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if name == "format":
            _refuse_width(args[0], _PERCENT)
        _refuse_call((*args, *kwargs.values()))
        return _counted(function(*args, **kwargs))

    @wraps(function)
    def join(context: Any, parts: Iterable[Any], d: str = "", attribute: str | int | None = None) -> Any:
        if attribute is not None:
            parts = map(make_attrgetter(context.environment, attribute), parts)
        return function(context, _checked(parts, _length(d)), d)

    return join if name == "join" else call


def _refuse_call(values: Iterable[Any]) -> None:
    """What widths, counts and replacements make of a text is at most the product of their sizes."""
    _refuse_above(prod(max(1, _size(value)) for value in values))


def _counted(value: Any) -> Any:
    _count(len(value) if isinstance(value, str | list) else 0)
    return value


def _count(size: int) -> None:
    _made.size += size
    _refuse_above(_made.size)


def _refuse_width(text: object, field: re.Pattern[str]) -> None:
    if isinstance(text, str) and field.search(text):
        raise SecurityError("it formats a field that may be of any width")


def _refuse_above(size: int, most: int = LONGEST) -> None:
    if size > most:
        raise SecurityError("it makes too much text")


def _size(value: object) -> int:
    """Of a number its value, for it may be a count; of all else as `_length`."""
    return abs(value) if isinstance(value, int) else _length(value)


def _length(value: object) -> int:
    """Characters, in a container of all that is in it, however often; 1 for what is no text.

    A container may have another a billion times: the clock of `limited` sees every call.
    """
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return len(value) + sum(map(_length, value.values()))
    return 1 + sum(map(_length, value)) if isinstance(value, list | tuple) else 1


def _to_json(value: object, indent: int | None = None) -> str:
    """JSON as templates expect it: no escapes beyond JSON's own."""
    return json.dumps(value, ensure_ascii=False, indent=indent)
