"""The guard against elided code, in both directions: every elided output is refused, no honest edit is."""

import pytest

from app.editing.checks import CheckReport, run_checks
from app.editing.language import detect_language
from tests.support.elision_corpus import (
    GO,
    JAVASCRIPT,
    MARKDOWN,
    PYTHON,
    SOURCES,
)

# file, first and last line left out, what stands there instead
ELIDED = [
    ("order.py", 12, 17, "        # ... existing code ..."),
    ("order.py", 12, 17, "        # rest of the method unchanged"),
    ("order.py", 12, 17, "        # [unchanged]"),
    ("order.py", 12, 17, "        ..."),
    ("order.py", 12, 17, "        …"),
    ("order.py", 12, 17, "        ...  # same as before"),
    ("order.py", 12, 17, "        pass  # existing implementation"),
    ("order.py", 12, 17, "        # \uff08略\uff09"),
    ("order.py", 12, 17, "        # der Rest bleibt gleich"),
    ("order.py", 12, 17, "        # остальной код без изменений"),
    ("order.py", 12, 17, "        # 既存のコードは省略"),
    ("order.py", 12, 17, "        // ... existing code ..."),
    ("order.py", 12, 17, "        [rest of the method unchanged]"),
    ("order.py", 12, 17, "        <existing code here>"),
    ("order.py", 12, 17, "        ... existing code ..."),
    ("order.py", 12, 17, "        [...]"),
    ("order.py", 12, 17, "        total = 0  # ... and so on\n        return total"),
    ("order.py", 11, 17, "    def net(self, currency):\n        # ... as before ..."),
    ("order.py", 11, 17, "    def net(self): ..."),
    ("order.py", 11, 22, "    # other methods stay as they are"),
    ("order.py", 25, 29, "# ... rest of file ..."),
    ("order.py", 26, 28, "    # head, body and foot as before"),
    ("order.py", 1, 22, "# imports and class Order unchanged\n"),
    ("load.js", 4, 10, "  // ... existing code ..."),
    ("load.js", 4, 10, "  // unchanged"),
    ("load.js", 4, 10, "  /* ... */"),
    ("load.js", 4, 10, "  /*\n   * same as before\n   */"),
    ("load.js", 4, 10, "  ..."),
    ("load.js", 3, 11, "export function load(path) { /* unchanged */ }"),
    ("load.js", 3, 11, "export function load(path) { ... }"),
    ("load.js", 5, 10, "  # ... existing code ..."),
    ("List.tsx", 6, 12, "      {/* ... rest of the JSX ... */}"),
    ("List.tsx", 6, 12, "      {/* same children */}"),
    ("List.tsx", 6, 12, "      ..."),
    ("List.tsx", 6, 12, "      <!-- unchanged -->"),
    ("stack.go", 12, 17, "\t// ... (rest of the function)"),
    ("stack.go", 12, 17, "\t// implementation unchanged"),
    ("stack.go", 7, 18, "// Push and Pop stay as they are"),
    ("ring.rs", 14, 18, "        // ... existing implementation"),
    ("ring.rs", 14, 18, "        /* idem */"),
    ("ring.rs", 13, 19, "    pub fn sum(&self) -> u32 { /* ... */ }"),
    ("ring.rs", 7, 19, "    // ..."),
    ("clamp.c", 5, 9, "    /* ... */"),
    ("clamp.c", 5, 9, "    // body unchanged"),
    ("clamp.c", 5, 9, "    ..."),
    ("clamp.c", 3, 10, "/* clamp() as above */"),
    ("card.css", 7, 10, "  /* other styles remain the same */"),
    ("card.css", 7, 10, "  // other styles"),
    ("card.css", 7, 10, "  ..."),
    ("shop.html", 5, 8, "      <!-- other items -->"),
    ("shop.html", 5, 8, "      <li>...</li>"),
    ("shop.html", 5, 8, "      ..."),
    ("person.sql", 2, 5, "  -- other columns"),
    ("person.sql", 2, 5, "  ..."),
    ("person.sql", 2, 5, "  /* columns unchanged */"),
    ("build.yaml", 7, 10, "      # ... remaining steps"),
    ("build.yaml", 7, 10, "      - ..."),
    ("shop.json", 3, 6, '  "...": "...",'),
    ("shop.json", 3, 6, "  ..."),
    ("shop.json", 3, 6, "  // other settings"),
    ("shop.json", 3, 6, "  # other settings"),
    ("build.sh", 4, 7, "  # same commands"),
    ("build.sh", 4, 7, "  ..."),
    ("area.lua", 4, 8, "  -- unchanged"),
    ("area.lua", 4, 8, "  --[[ body ]]"),
    ("Shape.hs", 4, 7, "-- area as before"),
    ("Shape.hs", 4, 7, "{- ... -}"),
    ("guide.md", 5, 8, "..."),
    ("guide.md", 5, 8, "[The rest of the guide stays the same]"),
    ("guide.md", 5, 8, "*(remaining steps unchanged)*"),
    ("guide.md", 5, 8, "<!-- rest of the text -->"),
    ("guide.md", 5, 8, "... the other steps ..."),
    ("paper.tex", 2, 5, "% text unchanged"),
    ("main.vb", 2, 5, "  ' same as before"),
    ("main.vb", 2, 5, "  REM unchanged"),
    ("sum.ml", 2, 6, "  (* unchanged *)"),
    ("area.lisp", 2, 5, "  ;; checks unchanged"),
    ("server.ini", 2, 5, "; other keys"),
    ("server.ini", 2, 5, "..."),
    ("notes.unknown", 5, 9, "    # unchanged"),
    ("notes.unknown", 5, 9, "    // unchanged"),
    ("notes.unknown", 5, 9, "    -- unchanged"),
]


def check(name: str, source: str, result: str, instruction: str) -> CheckReport:
    language = detect_language(name, source.split("\n")[0])
    return run_checks(
        source.removesuffix("\n").split("\n"), result.removesuffix("\n").split("\n"), instruction, language
    )


def cut(source: str, first: int, last: int, instead: str) -> str:
    lines = source.split("\n")
    return "\n".join([*lines[: first - 1], *instead.split("\n"), *lines[last:]])


def codes(report: CheckReport) -> set[str]:
    return {warning.code for warning in report.warnings}


def test_the_corpus_is_large_enough() -> None:
    assert len(ELIDED) >= 60


@pytest.mark.parametrize("instruction", ["Tidy up.", "Add a comment to net, load, List, Pop, sum and area."])
@pytest.mark.parametrize(("name", "first", "last", "instead"), ELIDED)
def test_an_elided_output_is_refused(name: str, first: int, last: int, instead: str, instruction: str) -> None:
    source = SOURCES[name]
    report = check(name, source, cut(source, first, last, instead), instruction)
    elisions = [warning for warning in report.warnings if warning.code == "elision"]
    assert elisions and report.blocking
    assert set(elisions[0].lines) <= set(range(first, last + 1))


def test_elided_after_lines_that_were_rewritten() -> None:
    """A rename on the lines before the placeholder does not hide what the placeholder stands for."""
    before = [f"    self.first_{number} = source.read({number})" for number in range(8)]
    after = [f"    self.other_{number} = source.read({number})" for number in range(8)]
    left_out = [f"    check(self, 'key {number}', limit={number})" for number in range(8)]
    source = "\n".join(["def fill(self, source):", *before, *left_out, "    return self", ""])
    result = "\n".join(["def fill(self, source):", *after, "    # ... checks ...", "    return self", ""])
    assert "elision" in codes(check("a.py", source, result, "Rename first to other."))


def test_elided_with_new_code_after_the_function() -> None:
    source = SOURCES["stack.go"]
    added = ["}", "", "func (s *Stack) Clear() {", "\ts.items = nil", "\tlog.Print(s)", "\ts.count()", "\ts.check()"]
    result = cut(source, 12, 17, "\n".join(["\t// unchanged", *added]))
    assert "elision" in codes(check("stack.go", source, result, "Add Clear."))


# --- names that are gone and still used -------------------------------------------------------------------------------


def test_a_function_left_out_without_a_word_and_still_called() -> None:
    source = SOURCES["clamp.c"]
    report = check("clamp.c", source, cut(source, 3, 10, ""), "Print 8 instead of 7.")
    assert report.blocking
    message = next(warning.message for warning in report.warnings if warning.code == "elision")
    assert "clamp" in message


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [("order.py", 11, 17), ("load.js", 3, 11), ("build.sh", 3, 8), ("sum.ml", 1, 6), ("ring.rs", 13, 19)],
)
def test_only_names_that_the_rest_uses_are_missed(name: str, first: int, last: int) -> None:
    uses = {"order.py": True, "load.js": False, "build.sh": True, "sum.ml": True, "ring.rs": False}
    source = SOURCES[name]
    report = check(name, source, cut(source, first, last, ""), "Tidy up.")
    assert ("elision" in codes(report)) == uses[name]
    assert "lost_lines" in codes(report)


def test_imports_left_out_and_still_used() -> None:
    source = "import os\nimport re\nimport sys\n\nprint(os.name, re.I, sys.path)\n"
    report = check("a.py", source, "print(os.name, re.I, sys.path)\n", "Tidy up.")
    assert report.blocking
    assert "os, re, sys" in next(warning.message for warning in report.warnings if warning.code == "elision")


def test_a_name_defined_elsewhere_in_the_result_is_not_missed() -> None:
    source = "def parse(text):\n    text = text.strip()\n    return text.split()\n\nprint(parse(' a b '))\n"
    result = "from tools import parse\n\nprint(parse(' a b '))\n"
    assert "elision" not in codes(check("a.py", source, result, "Take it from tools."))


# --- honest edits -----------------------------------------------------------------------------------------------------

STUB = """\
from typing import Protocol

class Reader(Protocol):
    def read(self, size: int) -> bytes:
        ...
    def seek(self, at: int) -> int:
        ...
    def close(self) -> None:
        ...
    # ... more of the interface ...
    def flush(self) -> None:
        ...
"""


def edited(source: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


NET_BODY = PYTHON[PYTHON.index("        total = 0") : PYTHON.index("    def gross")]
NEW_NET_BODY = """\
        # one pass
        if any(line.price < 0 for line in self.lines):
            raise ValueError
        return sum(line.price * line.count for line in self.lines)

"""
REPORT = PYTHON[PYTHON.index("def report") :]
POP = GO[GO.index("func (s *Stack) Pop") :]
TWO_ROWS = "  const rows = text.split('\\n');\n  const cells = rows.map"
ONE_ROW = "  // lines of cells\n  const cells = text.split('\\n').map"
NOTES = "# one\n# two\n# three\n# four\n"
TELL = "    def tell(self) -> int:\n        ...\n"

HONEST = {
    "comment beside code": ("order.py", PYTHON, "x", [("        total = 0\n", "        # cents\n        total = 0\n")]),
    "comment above a function": ("stack.go", GO, "x", [("func (s *Stack) Pop", "// Pop takes.\nfunc (s *Stack) Pop")]),
    "body replaced": ("order.py", PYTHON, "simplify", [(NET_BODY, NEW_NET_BODY)]),
    "function removed by name": ("order.py", PYTHON, "Remove report.", [(REPORT, "")]),
    "method removed, a note left": ("stack.go", GO, "Remove the method `Pop`.", [(POP, "// Pop is gone.\n")]),
    "stub gains a method": ("a.pyi", STUB, "x", [("    def close", TELL + "    def close")]),
    "stub loses a method": ("a.pyi", STUB, "x", [("    def seek(self, at: int) -> int:\n        ...\n", "")]),
    "placeholder already there": ("a.pyi", STUB, "x", [("size: int)", "size: int = -1)")]),
    "function moved": ("order.py", PYTHON, "up", [(REPORT, ""), ("class Order", REPORT + "\n\nclass Order")]),
    "two lines and a comment": ("load.js", JAVASCRIPT, "inline rows", [(TWO_ROWS, ONE_ROW)]),
    "spread and rest": ("load.js", JAVASCRIPT, "copy", [("  return cells;", "  return [...cells];")]),
    "prose shortened": ("guide.md", MARKDOWN, "x", [("Look at the diff.\nPress the key.\n", "Look and press.\n")]),
    "comment translated": ("a.py", NOTES + "run()\n", "x", [(NOTES, "# eins\n# zwei\n# drei\n# vier\n")]),
}


@pytest.mark.parametrize(("name", "source", "instruction", "changes"), HONEST.values(), ids=HONEST.keys())
def test_an_honest_edit_is_not_flagged(
    name: str, source: str, instruction: str, changes: list[tuple[str, str]]
) -> None:
    report = check(name, source, edited(source, *changes), instruction)
    assert not report.blocking
    assert "elision" not in codes(report)


@pytest.mark.parametrize(("name", "first", "last", "instead"), ELIDED)
def test_a_placeholder_already_in_the_source_is_never_flagged(name: str, first: int, last: int, instead: str) -> None:
    """What was elided before may stay so; a deletion next to it is a matter of lost lines."""
    elided = cut(SOURCES[name], first, last, instead)
    grown = cut(SOURCES[name], first, last, instead + "\none\ntwo\nthree\nfour")
    assert "elision" not in codes(check(name, elided, elided, "x"))
    assert "elision" not in codes(check(name, grown, elided, "x"))
