"""Names that lost lines defined: missed where they dangle, let be wherever something may define them."""

import pytest

from app.editing.language import detect_language
from app.editing.names import dangling_names

JS = ["function clamp(x) {", "  return x;", "}", ""]


def dangling(filename: str, source: list[str], result: list[str]) -> list[str]:
    gone = {at for at, line in enumerate(source) if line not in result}
    return dangling_names(source, result, gone, detect_language(filename))


@pytest.mark.parametrize(
    ("filename", "lost", "kept", "names"),
    [
        ("a.py", ["def f():", "    return 1"], ["print(f())"], ["f"]),
        ("a.py", ["import os", "from re import sub as s"], ["s(os.name)"], ["os", "s"]),
        ("a.py", ["LIMIT = 3", "LOW, HIGH = 1, 2"], ["print(LIMIT, HIGH)"], ["LIMIT", "HIGH"]),
        ("a.ts", ["export const limit: number = 3;"], ["show(limit);"], ["limit"]),
        ("a.js", JS, ["show(clamp(3));"], ["clamp"]),
        ("a.js", ["import { a, b as c } from 'm';"], ["a(c);"], ["a", "c"]),
        ("a.go", ["func clamp(x int) int {", "\treturn x", "}"], ["func main() {", "\tprintln(clamp(3))"], ["clamp"]),
        ("a.go", ['import (', '\t"net/http"', ")"], ["func main() { http.Get(u) }"], ["http"]),
        ("a.rs", ["fn clamp(x: i32) -> i32 {", "    x", "}"], ["fn main() { clamp(3); }"], ["clamp"]),
        ("a.rs", ["use std::fmt::Display;"], ["fn show(x: impl Display) {}"], []),
        ("A.java", ["  int clamp(int x) {", "    return x;", "  }"], ["class A {", "  { clamp(3); }", "}"], ["clamp"]),
        ("a.c", ["static int clamp(int x)", "{ return x; }"], ["int main(void) { return clamp(3); }"], ["clamp"]),
        ("a.rb", ["def clamp(x)", "  x", "end"], ["puts clamp(3)"], ["clamp"]),
        ("a.php", ["function clamp($x) {", "  return $x;"], ["echo clamp(3);"], ["clamp"]),
        ("a.lua", ["local function clamp(x)", "  return x"], ["print(clamp(3))"], ["clamp"]),
        ("a.sh", ["build() {", "  make", "}"], ["build"], ["build"]),
    ],
)  # fmt: skip
def test_a_dangling_name_is_missed(filename: str, lost: list[str], kept: list[str], names: list[str]) -> None:
    assert dangling(filename, [*lost, *kept], kept) == names


@pytest.mark.parametrize(
    ("filename", "lost", "result"),
    [
        ("a.py", ["def f():", "    return 1"], ["def g(f):", "    return f()"]),
        ("a.py", ["def f():", "    return 1"], ["from m import *", "f()"]),
        ("a.py", ["def f():", "    return 1"], ["other.f()"]),
        ("a.py", ["def print(x):", "    return 1"], ["print(1)"]),
        ("a.py", ["def f():", "    return 1"], ["g()", "# f is gone", "'f'"]),
        ("a.js", JS, ["const clamp = (x) => x;", "show(clamp(3));"]),
        ("a.js", JS, ["import clamp from './clamp.js';", "show(clamp(3));"]),
        ("a.js", JS, ["each((clamp) => clamp(3));"]),
        ("a.js", JS, ["function use(clamp) { return clamp(3); }"]),
        ("a.js", JS, ["Math.clamp(3);"]),
        ("a.js", JS, ["// clamp(3)", "show('clamp');"]),
        ("a.js", JS, ["show(clamped(3));"]),
        ("a.c", ["static int clamp(int x)", "{ return x; }"], ["int clamp(int);", "int main(void) { clamp(3); }"]),
        ("a.md", ["def clamp(x)", "  x"], ["clamp(3)"]),
    ],
)
def test_in_doubt_a_name_is_defined(filename: str, lost: list[str], result: list[str]) -> None:
    assert dangling(filename, lost, result) == []


def test_a_method_is_missed_only_through_its_own_object() -> None:
    source = ["class A:", "    def f(self):", "        return 1", "    def g(self):", "        return self.f()"]
    assert dangling("a.py", source, ["class A:", source[3], source[4]]) == ["f"]
    assert dangling("a.py", source, ["class A:", source[3], "        return pool.f()"]) == []
