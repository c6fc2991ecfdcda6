"""Regions: options, locked lines, end anchors, and the promise that nothing outside changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.language import detect_language
from app.editing.region import (
    Anchor,
    Region,
    end_anchor,
    is_blank,
    locked_prefix,
    region_of_lines,
    region_of_symbol,
    splice,
)
from app.editing.symbols import Symbol, find_symbols
from app.errors import ExitCode, RegionError

PYTHON = """\
class A:
    def run(self):
        return 1

class B:
    def run(self):
        return 2

    def stop(self):
        return 3
""".split("\n")[:-1]


@pytest.mark.parametrize(("option", "expected"), [("1:1", Region(1, 1)), (" 2 : 10 ", Region(2, 10))])
def test_lines(option: str, expected: Region) -> None:
    assert region_of_lines(option, 10) == expected


@pytest.mark.parametrize("option", ["", "3", "a:b", "0:2", "5:4", "1:11", "-1:3", "1:2:3", "1,2", "9" * 30 + ":1"])
def test_lines_that_make_no_sense_are_refused(option: str) -> None:
    with pytest.raises(RegionError) as caught:
        region_of_lines(option, 10)
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(("name", "expected"), [("B.run", Region(6, 7)), ("stop", Region(9, 10)), ("A", Region(1, 3))])
def test_symbol(name: str, expected: Region) -> None:
    assert region_of_symbol(name, PYTHON, detect_language("a.py")) == expected


def test_an_ambiguous_symbol_lists_its_candidates() -> None:
    with pytest.raises(RegionError, match=r"ambiguous: A\.run \(lines 2:3\), B\.run \(lines 6:7\)"):
        region_of_symbol("run", PYTHON, detect_language("a.py"))


def test_an_unknown_symbol_lists_what_is_there() -> None:
    with pytest.raises(RegionError, match=r"unknown; the file has B\.stop \(lines 9:10\)\."):
        region_of_symbol("B.stopp", PYTHON, detect_language("a.py"))
    with pytest.raises(RegionError, match="no definitions"):
        region_of_symbol("x", ["y = 1"], detect_language("a.py"))


def test_a_long_list_of_candidates_is_cut() -> None:
    lines = [f"def f{number}(): pass" for number in range(40)]
    with pytest.raises(RegionError, match="and 28 more"):
        region_of_symbol("nothing", lines, detect_language("a.py"))


def test_a_language_without_definitions_is_refused_by_name() -> None:
    with pytest.raises(RegionError, match="does not know definitions in c files; use --lines"):
        region_of_symbol("main", ["int main() {}"], detect_language("a.c"))


def test_locked_lines_start_at_the_enclosing_symbol() -> None:
    symbols = find_symbols(PYTHON, detect_language("a.py")) or ()
    assert locked_prefix(Region(7, 7), PYTHON, symbols) == ("    def run(self):",)
    # The region is the method itself: what encloses it is the class.
    assert locked_prefix(Region(9, 10), PYTHON, symbols) == tuple(PYTHON[4:8])
    # Nothing encloses a class at the top level but the file.
    assert locked_prefix(Region(5, 10), PYTHON, symbols) == tuple(PYTHON[:4])
    assert locked_prefix(Region(1, 3), PYTHON, symbols) == ()


def test_locked_lines_are_at_most_twenty() -> None:
    lines = [f"line {number}" for number in range(1, 101)]
    assert locked_prefix(Region(50, 60), lines, [Symbol("f", 1, 100)]) == tuple(lines[29:49])
    assert locked_prefix(Region(50, 60), lines, [Symbol("f", 45, 100)]) == tuple(lines[44:49])


@pytest.mark.parametrize(
    ("lines", "region", "expected"),
    [
        (["a", "b", "c"], Region(1, 1), Anchor(("b",), 0)),
        (["a", "", "", "b"], Region(1, 1), Anchor(("b",), 2)),
        (["a", "", "", "b"], Region(1, 2), Anchor(("b",), 1)),
        (["}", "a", "", "}", "", "x"], Region(2, 2), Anchor(("}", "x"), 1)),
        (["}", "x", "a", "}", "x"], Region(3, 3), Anchor((), 0)),
        (["a", "b"], Region(1, 2), Anchor((), 0)),
        (["a", "", ""], Region(1, 1), Anchor((), 0)),
        (["b", "b", "b"], Region(1, 1), Anchor((), 0)),
        (["x", "b", "b", "c"], Region(1, 1), Anchor(("b", "b"), 0)),
    ],
)
def test_end_anchor(lines: list[str], region: Region, expected: Anchor) -> None:
    assert end_anchor(region, lines) == expected


def slow_anchor(region: Region, lines: list[str]) -> Anchor:
    """The rule word for word: try every length, look at every place."""
    solid = [(at, line) for at, line in enumerate(lines, 1) if not is_blank(line)]
    start = sum(at <= region.last for at, _ in solid)
    texts = [line for _, line in solid]
    for length in range(1, len(texts) - start + 1):
        run = texts[start : start + length]
        places = [at for at in range(len(texts) - length + 1) if texts[at : at + length] == run]
        if places == [start]:
            return Anchor(tuple(run), solid[start][0] - region.last - 1)
    return Anchor((), 0)


LINES = st.lists(st.sampled_from(["", " ", "}", "  }", "a", "b"]), min_size=1, max_size=14)


@st.composite
def lines_and_region(draw: st.DrawFn) -> tuple[list[str], Region]:
    lines = draw(LINES)
    first = draw(st.integers(1, len(lines)))
    return lines, Region(first, draw(st.integers(first, len(lines))))


@settings(derandomize=True, deadline=None)
@given(lines_and_region())
def test_the_fast_anchor_is_the_slow_one(drawn: tuple[list[str], Region]) -> None:
    lines, region = drawn
    assert end_anchor(region, lines) == slow_anchor(region, lines)


@settings(derandomize=True, deadline=None)
@given(lines_and_region(), LINES)
def test_splice_keeps_what_is_outside(drawn: tuple[list[str], Region], reply: list[str]) -> None:
    lines, region = drawn
    result = splice(region, lines, reply)
    before, after = lines[: region.first - 1], lines[region.last :]
    assert result[: len(before)] == before
    assert result[len(result) - len(after) :] == after
    assert result[len(before) : len(result) - len(after)] == reply
