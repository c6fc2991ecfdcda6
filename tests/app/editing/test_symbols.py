"""Definitions and their lines, in every language that has them."""

import pytest

from app.editing.language import detect_language
from app.editing.symbols import find_symbols

PYTHON = """\
import functools

@functools.cache
def top(a):
    def inner():
        return a
    return inner

class A:
    @property
    def x(self):
        return 1

    async def y(self):
        return 2
"""
GO = """\
package p

type (
	A struct{ n int }
	B interface{ M() }
)

// Add adds.
func (a *A) Add(n int) { a.n += n }

func Map[T any](xs []T) []T {
	var out []T
	return out
}

var limit = 3
"""
RUST = """\
#[derive(Debug)]
pub struct P<T> { x: T }

impl<T> P<T> {
    #[inline]
    pub fn get(&self) -> &T { &self.x }
}

mod deep {
    pub fn dig() {}
}
"""
JAVASCRIPT = """\
export const add = (a, b) => {
  const sum = a + b;
  return sum;
};
export default class Box {
  size() { return 1; }
  #hidden = () => 2;
}
const table = {
  open: function () { return 1; },
  limit: 3,
};
Box.prototype.close = function () {};
"""
JAVA = """\
class Outer {
    int n;
    Outer() { n = 1; }
    @Override
    public String toString() { return "o"; }
    enum Kind { A, B }
}
"""
BASH = "f() {\n  echo hi\n}\nfunction g {\n  f\n}\n"


@pytest.mark.parametrize(
    ("filename", "text", "expected"),
    [
        ("a.py", PYTHON, [("top", 3, 7), ("top.inner", 5, 6), ("A", 9, 15), ("A.x", 10, 12), ("A.y", 14, 15)]),
        ("a.go", GO, [("A", 4, 4), ("B", 5, 5), ("A.Add", 9, 9), ("Map", 11, 14), ("limit", 16, 16)]),
        ("a.rs", RUST, [("P", 1, 2), ("P", 4, 7), ("P.get", 5, 6), ("deep", 9, 11), ("deep.dig", 10, 10)]),
        (
            "a.js",
            JAVASCRIPT,
            [
                ("add", 1, 4),
                ("Box", 5, 8),
                ("Box.size", 6, 6),
                ("Box.#hidden", 7, 7),
                ("table", 9, 12),
                ("table.open", 10, 10),
                ("Box.close", 13, 13),
            ],
        ),
        ("A.java", JAVA, [("Outer", 1, 7), ("Outer.Outer", 3, 3), ("Outer.toString", 4, 5), ("Outer.Kind", 6, 6)]),
        ("a.sh", BASH, [("f", 1, 3), ("g", 4, 6)]),
    ],
)
def test_symbols(filename: str, text: str, expected: list[tuple[str, int, int]]) -> None:
    symbols = find_symbols(text.removesuffix("\n").split("\n"), detect_language(filename))
    assert symbols is not None
    assert [(symbol.name, symbol.first, symbol.last) for symbol in symbols] == expected


def test_python_that_does_not_parse_still_has_symbols() -> None:
    symbols = find_symbols(["def f(:", "    pass", "", "def g():", "    return 1"], detect_language("a.py"))
    assert symbols is not None
    assert [(symbol.name, symbol.first, symbol.last) for symbol in symbols if symbol.name == "g"] == [("g", 4, 5)]


def test_python_two_still_has_symbols() -> None:
    symbols = find_symbols(["def f():", "    print 'x'"], detect_language("a.py"))
    assert symbols is not None
    assert [symbol.name for symbol in symbols] == ["f"]


def test_a_language_without_a_parser_has_none() -> None:
    assert find_symbols(["int main() {}"], detect_language("a.c")) is None
