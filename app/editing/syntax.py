"""Syntax check: errors that a result has and its source did not.

Python is compiled (never run) and, where the source itself does not compile here or may be of a later Python than the
one we run on, parsed by tree-sitter like the rest.
Knows nothing of the other checks. Invariant: an error the source has is never reported, so a file in a dialect our
parser does not know raises no alarm.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from app.editing.grammar import parse
from app.editing.language import Language

_MOST_ERRORS = 200
"""Enough to compare two versions by; a binary read as code would have one on every line."""
_OF_A_LATER_PYTHON = (
    "invalid syntax",
    "expected '('",
    "f-string",
    "unterminated string literal",
    "unexpected character after line continuation character",
)
"""How `compile` begins to speak of what its Python is too old for: type statements, generics, quotes in f-strings."""


@dataclass(frozen=True)
class SyntaxProblem:
    """One error."""

    line: int
    """1-based."""
    message: str
    text: str
    """The line it is on, without indentation: what it is recognised by in another version."""


def syntax_errors(lines: Sequence[str], language: Language) -> list[SyntaxProblem] | None:
    """Errors in `lines` by the grammar of `language`, or None where there is none here."""
    if language.grammar is None:
        return None
    if language.grammar == "python":
        return _python_errors(lines)
    return _tree_errors(lines, language.grammar)


def new_syntax_errors(source: Sequence[str], result: Sequence[str], language: Language) -> list[SyntaxProblem] | None:
    """Errors of `result` that `source` does not have, or None where the language cannot be checked."""
    before, after = syntax_errors(source, language), syntax_errors(result, language)
    if before is None or after is None:
        return None
    if before and language.grammar == "python":
        # `compile` stops at its first error; with one in the source it says nothing about the rest.
        before, after = _tree_errors(source, "python"), _tree_errors(result, "python")
        if before is None or after is None:
            return None
    known = Counter(problem.text for problem in before)
    fresh = []
    for problem in after:
        if known[problem.text]:
            known[problem.text] -= 1
        else:
            fresh.append(problem)
    # A mistake upstream moves where the parser gives up; with no more errors than before there is no new one.
    return fresh if len(after) > len(before) else []


def _python_errors(lines: Sequence[str]) -> list[SyntaxProblem]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile("\n".join([*lines, ""]), "<result>", "exec", dont_inherit=True)
        except SyntaxError as error:
            line = min(max(error.lineno or 1, 1), max(len(lines), 1))
            found = SyntaxProblem(line, error.msg, lines[line - 1].strip() if lines else "")
            parsed = _tree_errors(lines, "python") if error.msg.startswith(_OF_A_LATER_PYTHON) else None
            return [found] if parsed is None or line in {problem.line for problem in parsed} else parsed
        except (ValueError, RecursionError, MemoryError) as error:
            return [SyntaxProblem(1, str(error) or type(error).__name__, "")]
    return []


def _tree_errors(lines: Sequence[str], grammar: str) -> list[SyntaxProblem] | None:
    tree = parse(grammar, "\n".join([*lines, ""]))
    if tree is None:
        return None
    problems: list[SyntaxProblem] = []
    stack = [tree.root_node]
    while stack and len(problems) < _MOST_ERRORS:
        node = stack.pop()
        if not node.has_error:
            continue
        if node.is_error or node.is_missing:
            row = min(node.start_point[0], max(len(lines) - 1, 0))
            message = f"missing {node.type}" if node.is_missing else "not understood from here"
            problems.append(SyntaxProblem(row + 1, message, lines[row].strip() if lines else ""))
        else:
            stack.extend(reversed(node.children))
    return problems
