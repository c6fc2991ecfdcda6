"""Indentation that is not the file's: told where lines are new or changed, and nowhere in files that mix."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.checks import run_checks
from app.editing.indent_drift import indent_drift
from app.editing.language import detect_language

MAKEFILE = "CC = gcc\nSRC = a.c \\\n      b.c\n\nall: $(SRC)\n\t$(CC) -o all $(SRC)\n\nclean:\n\trm -f all\n"
GO = "package p\n\nfunc F(a int) int {\n\tif a > 1 {\n\t\treturn 1\n\t}\n\treturn 0\n}\n"
TABBED = "def f(a):\n\tif a:\n\t\treturn 1\n\treturn 2\n"
SPACED = TABBED.replace("\t", "    ")
NARROW = TABBED.replace("\t", "  ")
SPACES, TABS = "with spaces, and the file uses tabs", "with tabs, and the file uses spaces"


@pytest.mark.parametrize(
    ("name", "source", "result", "line", "words"),
    [
        ("Makefile", MAKEFILE, MAKEFILE.replace("\trm -f all", "    rm -rf all"), 9, SPACES),
        ("Makefile", MAKEFILE, MAKEFILE + "test: all\n        ./all\n", 11, SPACES),
        ("a.go", GO, GO.replace("\t\treturn 1", "        return 2"), 5, SPACES),
        ("a.go", GO, GO + "\nfunc G() int {\n    return 3\n}\n", 11, SPACES),
        ("a.py", TABBED, TABBED + "\n\ndef g(a):\n    return 3\n", 8, SPACES),
        ("a.py", SPACED, SPACED + "\n\ndef g(a):\n\treturn 3\n", 8, TABS),
        ("a.py", NARROW, SPACED.replace("1", "3"), 2, "by 4 spaces, and the file uses 2"),
        ("a.py", SPACED, SPACED + "\n\ndef g(a):\n  return 3\n", 8, "by 2 spaces, and the file uses 4"),
        ("a.js", "f() {\n  g();\n}\n", "f() {\n  g();\n}\nh() {\n    g();\n}\n", 5, "by 4 spaces, and the file uses 2"),
    ],
)
def test_indentation_that_is_not_the_files_is_a_warning(
    name: str, source: str, result: str, line: int, words: str
) -> None:
    report = run_checks(source.split("\n"), result.split("\n"), "x", detect_language(name))
    (warning,) = (warning for warning in report.warnings if warning.code == "indent")
    assert warning.lines[0] == line and words in warning.message
    assert not warning.in_source and not warning.blocking


@pytest.mark.parametrize(
    ("source", "result"),
    [
        (MAKEFILE, MAKEFILE.replace("      b.c", "      b.c \\\n      c.c").replace("-f", "-rf")),
        (GO, GO.replace("func", "/*\n * F counts.\n */\nfunc").replace("return 0", "return a")),
        (SPACED, SPACED.replace("    return 2", "    return g(\n      2)")),  # what brackets hold is the writer's
        (TABBED + "if a:\n    b()\n", TABBED + "if a:\n    c()\n\td()\n"),
        (SPACED + NARROW, SPACED + NARROW + "def g(a):\n   return 3\n"),
        ("a\nb\n", "a\n\tb\n    c\n"),
        (SPACED, "if x:\n    " + SPACED.replace("\n", "\n    ").rstrip() + "\n    y()\n"),
        (SPACED, SPACED + "\t\n"),
    ],
)
def test_no_alarm(source: str, result: str) -> None:
    assert indent_drift(source.split("\n"), result.split("\n")) == []


def test_what_churn_tells_is_not_told_twice() -> None:
    warnings = run_checks(GO.split("\n"), GO.replace("\t", "    ").split("\n"), "x", detect_language("a.go")).warnings
    assert [warning.code for warning in warnings] == ["churn"]


LINES = st.lists(st.sampled_from(["", "x", "\tx", "    x", "  x:", "    \t", "x {", " \\", "\t\tx:"]), max_size=12)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(source=LINES, result=LINES)
def test_lines_told_are_fresh_ones_and_nothing_is_said_of_the_file_itself(source: list[str], result: list[str]) -> None:
    assert indent_drift(source, source) == []
    for drift in indent_drift(source, result):
        assert drift.lines and list(drift.lines) == sorted(set(drift.lines))
        assert all(result[at].strip() and result[at][0] in " \t" for at in drift.lines)
    passed_over = set(range(len(result)))
    assert indent_drift(source, result, passed_over) == []
