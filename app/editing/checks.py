"""Every check of a result against its source, gathered into one report.

Checks see lines and structure, never what words mean. Knows nothing of documents, hunks' decisions or exit codes: the
pipeline acts on `CheckReport.blocking`. Invariant: a result equal to its source raises no warning.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.editing.alignment import align
from app.editing.churn import churned_lines
from app.editing.elision import Elision, find_elisions
from app.editing.indent_drift import indent_drift
from app.editing.language import Language
from app.editing.lost_lines import lost_runs
from app.editing.named import asked_lines, code_words, named_symbols, symbols_of, words_of
from app.editing.placeholders import comment_lines, placeholder_lines
from app.editing.region import Region
from app.editing.symbols import Symbol
from app.editing.syntax import new_syntax_errors

LEAST_DELETIONS = 20
"""Lines that any edit may delete."""
DELETED_SHARE = 0.3
"""Share of the lines that any edit may delete."""

_NEAR = 3
"""Lines around a named place that are still near it."""
_MOST_NAMES = 5


@dataclass(frozen=True)
class CheckWarning:
    """What one check found."""

    code: str
    """`lost_lines`, `elision`, `deletions`, `syntax`, `churn` or `indent`."""
    message: str
    """One sentence."""
    lines: tuple[int, ...]
    """1-based, of the source if `in_source`, else of the result; ascending."""
    in_source: bool
    blocking: bool
    """True: the result is shown, and not applied whatever was asked."""


@dataclass(frozen=True)
class CheckReport:
    """What all checks found."""

    warnings: tuple[CheckWarning, ...]
    deleted: int
    """Lines deleted: per stretch max(0, old - new), summed."""
    most_deleted: int
    """Lines that may be deleted."""
    blast_radius: int | None
    """Source lines changed (added ones count as one) far from what the instruction names; None: it names nothing."""
    syntax_checked: bool
    """False: there is no parser for the language."""

    @property
    def blocking(self) -> bool:
        """True if any warning blocks."""
        return any(warning.blocking for warning in self.warnings)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know that is no warning: how far the change reaches, and what was not checked."""
        notes = []
        if self.blast_radius:
            lines = f"{self.blast_radius} line{'s' * (self.blast_radius != 1)}"
            notes.append(f"Blast radius: {lines} changed far from what the instruction names.")
        if not self.syntax_checked:
            notes.append("Syntax was not checked: there is no parser for this language here.")
        return tuple(notes)


def run_checks(
    source: Sequence[str],
    result: Sequence[str],
    instruction: str,
    language: Language,
    region: Region | None = None,
    max_deletions: int | None = None,
    strict: bool = False,
) -> CheckReport:
    """Check a result, or the accepted subset of one.

    Args:
        source: the file's decoded lines.
        result: the new lines, with the locked ones of a region edit.
        instruction: what was asked; symbols it names may lose lines.
        language: the file's.
        region: the lines that could change; deletions are measured against it.
        max_deletions: lines that may be deleted; None for the larger of 30 % and 20.
        strict: new syntax errors block.
    """
    symbols = symbols_of(source, language, instruction)
    named = named_symbols(symbols, instruction)
    deleted = count_deletions(source, result)
    size = len(source) if region is None else region.last - region.first + 1
    allowed = max_deletions if max_deletions is not None else max(int(size * DELETED_SHARE), LEAST_DELETIONS)
    errors = check_syntax(source, result, language, strict)
    warnings = [
        *_lost_and_elided(source, result, instruction, language, symbols, named),
        *_deletions(deleted, allowed, source, result),
        *(errors or ()),
        *_white_space(source, result),
    ]
    radius = _blast_radius(source, result, instruction, named)
    return CheckReport(tuple(warnings), deleted, allowed, radius, errors is not None)


def check_syntax(
    source: Sequence[str], result: Sequence[str], language: Language, strict: bool = False
) -> list[CheckWarning] | None:
    """Syntax errors that the result has and the source did not, as at most one warning; None: no parser."""
    problems = new_syntax_errors(source, result, language)
    if not problems:
        return None if problems is None else []
    first = problems[0]
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    message = f"The result has a syntax error the file did not have, in line {first.line}: {first.message}{more}."
    lines = tuple(sorted({problem.line for problem in problems}))
    return [CheckWarning("syntax", message, lines, in_source=False, blocking=strict)]


def count_deletions(source: Sequence[str], result: Sequence[str]) -> int:
    """Lines deleted: per changed stretch max(0, old lines - new lines), summed."""
    return sum(max(0, old.stop - old.start - (new.stop - new.start)) for old, new in _changes(source, result))


def _changes(source: Sequence[str], result: Sequence[str]) -> list[tuple[range, range]]:
    """Changed stretches as 0-based positions in both versions."""
    changes = []
    old_at = new_at = 0
    ends = [(match.old, match.new, match.length) for match in align(source, result)]
    for old_end, new_end, length in [*ends, (len(source), len(result), 0)]:
        if old_end > old_at or new_end > new_at:
            changes.append((range(old_at, old_end), range(new_at, new_end)))
        old_at, new_at = old_end + length, new_end + length
    return changes


def _lost_and_elided(
    source: Sequence[str],
    result: Sequence[str],
    instruction: str,
    language: Language,
    symbols: Sequence[Symbol],
    named: Sequence[Symbol],
) -> list[CheckWarning]:
    comments = comment_lines(source, language)
    placeholders = placeholder_lines(result, language)
    survivors = {symbol.name for symbol in symbols_of(result, language, instruction)}
    # The guard looks into a named symbol, too, as long as the result still has it: that is where models leave code out.
    dropped = asked_lines(symbols, named, survivors, gone_only=True)
    suspects = lost_runs(source, result, dropped, comments, placeholders)
    elisions = find_elisions(source, result, suspects, comments, placeholders, language)
    asked = asked_lines(symbols, named, survivors, gone_only=False)
    lost = [run for run in lost_runs(source, result, asked, comments, placeholders) if not run.rewritten]
    warnings = [_elision(elision, result) for elision in elisions]
    for run in lost:
        first, last = run.lines[0] + 1, run.lines[-1] + 1
        message = f"{len(run.lines)} lines of the file are gone and nothing replaces them (lines {first}-{last})."
        warnings.append(CheckWarning("lost_lines", message, _numbers(run.lines), in_source=True, blocking=False))
    return warnings


def _elision(elision: Elision, result: Sequence[str]) -> CheckWarning:
    first, last = elision.lost[0] + 1, elision.lost[-1] + 1
    if elision.placeholder is None:
        names = ", ".join(elision.names[:_MOST_NAMES])
        more = f" and {len(elision.names) - _MOST_NAMES} more" if len(elision.names) > _MOST_NAMES else ""
        message = f"Code was left out: {names}{more} (lines {first}-{last} of the file) is gone and still used."
    else:
        text = result[elision.placeholder].strip()
        message = (
            f"Code was left out: line {elision.placeholder + 1} of the result, {text!r}, stands in place of lines "
            f"{first}-{last} of the file."
        )
    return CheckWarning("elision", message, _numbers(elision.lost), in_source=True, blocking=True)


def _deletions(deleted: int, allowed: int, source: Sequence[str], result: Sequence[str]) -> list[CheckWarning]:
    if deleted <= allowed:
        return []
    lines = [at for old, new in _changes(source, result) if len(old) > len(new) for at in old]
    message = f"The result deletes {deleted} lines, and {allowed} are allowed; --max-deletions N sets the limit."
    return [CheckWarning("deletions", message, _numbers(lines), in_source=True, blocking=True)]


def _white_space(source: Sequence[str], result: Sequence[str]) -> list[CheckWarning]:
    churned = churned_lines(source, result)
    warnings = []
    if lines := sorted({churn.source for churn in churned}):
        message = f"{_count(lines, 'line differs', 'lines differ')} in white space only."
        warnings.append(CheckWarning("churn", message, _numbers(lines), in_source=True, blocking=False))
    for drift in indent_drift(source, result, {churn.result for churn in churned}):
        message = f"{_count(drift.lines, 'line is', 'lines are')} indented {drift.words}."
        warnings.append(CheckWarning("indent", message, _numbers(drift.lines), in_source=False, blocking=False))
    return warnings


def _count(lines: Sequence[int], one: str, several: str) -> str:
    return f"{len(lines)} {one if len(lines) == 1 else several}"


def _blast_radius(
    source: Sequence[str], result: Sequence[str], instruction: str, named: Sequence[Symbol]
) -> int | None:
    words = code_words(instruction)
    near = {at for symbol in named for at in range(symbol.first - 1, symbol.last)}
    near |= {at for at, line in enumerate(source) if not words.isdisjoint(words_of(line))}
    if not near:
        return None
    near = {at + step for at in near for step in range(-_NEAR, _NEAR + 1)}
    names = {symbol.base for symbol in named}
    far = 0
    for old, new in _changes(source, result):
        # Where a named name is gone, the line follows a rename, however far away.
        gone = names.difference(*(words_of(result[at]) for at in new))
        far += sum(at not in near and gone.isdisjoint(words_of(source[at])) for at in old)
        far += not old and old.start not in near
    return far


def _numbers(positions: Sequence[int]) -> tuple[int, ...]:
    return tuple(at + 1 for at in positions)
