"""Old and new file -> hunks a person can decide one by one.

Knows nothing of models, terminals or writing. Invariant: joining all hunks gives the new bytes exactly, joining none
gives the old ones, and for any subset the bytes outside the accepted hunks are the source's.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.editing.document import Document
from app.editing.encoding import SourceLine
from app.editing.result import Result

CONTEXT = 3
"""Unchanged lines shown around a change, as diff and git do."""
_HEADING = re.compile(r"[A-Za-z_$]")
"""A line that may head a function or class: git's rule for languages it has no pattern for."""
_MOST_HEADING = 80


@dataclass(frozen=True)
class DiffLine:
    """One line of a hunk."""

    kind: Literal[" ", "-", "+"]
    text: str
    """Decoded, without line end and mark."""
    ending: str
    """LF, CRLF, CR, or empty for a last line without one."""
    raw: bytes
    """Its bytes, line end (and, on a first line, the mark) included."""
    old_line: int | None
    """1-based line of the source; None for an added line."""
    new_line: int | None
    """1-based line of the new file; None for a removed line."""


@dataclass(frozen=True)
class Change:
    """The smallest piece of a hunk: source lines [first, end) (0-based) are replaced by `added`."""

    first: int
    end: int
    added: tuple[SourceLine, ...]


@dataclass(frozen=True)
class Hunk:
    """Changes that stand close together, with the lines around them."""

    index: int
    """1-based number within the diff."""
    header: str
    """The line above that heads the function or class, at most 80 characters; empty when there is none."""
    old_start: int
    """1-based; with no old lines, the line before (0 at the top), as unified diffs count."""
    old_lines: int
    new_start: int
    """As `old_start`, in the file with every hunk accepted."""
    new_lines: int
    lines: tuple[DiffLine, ...]
    changes: tuple[Change, ...]
    """At least one, in order."""

    @property
    def old_first(self) -> int:
        """0-based source line that the hunk begins at."""
        return self.old_start - 1 if self.old_lines else self.old_start

    @property
    def old_end(self) -> int:
        """0-based source line after the hunk."""
        return self.old_first + self.old_lines

    def spoken_lines(self) -> list[str]:
        """The lines as the machine interface has them: kind, text, and the line end as it is in the file."""
        return [line.kind + line.text + line.ending for line in self.lines]


@dataclass(frozen=True)
class ByteEdit:
    """Bytes [start, end) of one version are replaced by `new`."""

    start: int
    end: int
    new: bytes


def make_hunks(result: Result, context: int = CONTEXT) -> tuple[Hunk, ...]:
    """The hunks between a document and its result, in order; empty when the bytes are the same."""
    return group_changes(result.document, changes_of(result), context)


def changes_of(result: Result) -> list[Change]:
    """What differs between a document and its result, in order."""
    old, new = result.document.source_lines, result.lines
    changes: list[Change] = []
    old_at = new_at = 0
    for old_next, new_next, length in [*((m.old, m.new, m.length) for m in result.matches), (len(old), len(new), 0)]:
        if (old_at, new_at) != (old_next, new_next):
            changes.append(Change(old_at, old_next, tuple(new[new_at:new_next])))
        old_at, new_at = old_next + length, new_next + length
    return changes


def group_changes(document: Document, changes: Iterable[Change], context: int = CONTEXT) -> tuple[Hunk, ...]:
    """Hunks of ordered changes: those that stand close together share one, those that touch become one change."""
    groups: list[list[Change]] = []
    for change in changes:
        last = groups[-1][-1] if groups else None
        if last is None or change.first - last.end > 2 * context:
            groups.append([change])
        elif last.end == change.first:
            groups[-1][-1] = Change(last.first, change.end, last.added + change.added)
        else:
            groups[-1].append(change)
    return number(hunk_of(document, group, group[0].first - context, group[-1].end + context) for group in groups)


def hunk_of(document: Document, changes: Sequence[Change], first: int | None = None, end: int | None = None) -> Hunk:
    """One hunk of at least one ordered change, numbered as if it stood alone.

    It shows source lines [first, end) (0-based, as far as they exist), by default those near its changes.
    """
    first = max(0, changes[0].first - CONTEXT if first is None else first)
    end = min(len(document.source_lines), changes[-1].end + CONTEXT if end is None else end)
    old = document.source_lines
    lines: list[DiffLine] = []
    old_at, new_at = first, first
    for change in [*changes, Change(end, end, ())]:
        for line in old[old_at : change.first]:
            old_at, new_at = old_at + 1, new_at + 1
            lines.append(DiffLine(" ", line.text, line.ending, line.raw, old_at, new_at))
        for line in old[change.first : change.end]:
            old_at += 1
            lines.append(DiffLine("-", line.text, line.ending, line.raw, old_at, None))
        for line in change.added:
            new_at += 1
            lines.append(DiffLine("+", line.text, line.ending, line.raw, None, new_at))
    old_lines, new_lines = end - first, new_at - first
    return Hunk(
        index=1,
        header=_heading(old, first),
        old_start=first + 1 if old_lines else first,
        old_lines=old_lines,
        new_start=first + 1 if new_lines else first,
        new_lines=new_lines,
        lines=tuple(lines),
        changes=tuple(changes),
    )


def number(hunks: Iterable[Hunk]) -> tuple[Hunk, ...]:
    """The hunks with indices in this order, and line numbers of the file with every one of them accepted."""
    numbered: list[Hunk] = []
    moved = 0
    for index, hunk in enumerate(hunks, 1):
        new_start = hunk.old_first + moved + (1 if hunk.new_lines else 0)
        numbered.append(_moved(hunk, index, new_start - hunk.new_start, new_start))
        moved += hunk.new_lines - hunk.old_lines
    return tuple(numbered)


def _moved(hunk: Hunk, index: int, by: int, new_start: int) -> Hunk:
    if index == hunk.index and not by:
        return hunk
    lines = tuple(line if line.new_line is None else replace(line, new_line=line.new_line + by) for line in hunk.lines)
    return replace(hunk, index=index, new_start=new_start, lines=lines)


def join(document: Document, accepted: Iterable[Hunk]) -> bytes:
    """The file with these hunks of its diff applied, the others left as in the source."""
    return apply_edits(document.data, byte_edits(document, accepted))


def byte_edits(document: Document, accepted: Iterable[Hunk]) -> tuple[ByteEdit, ...]:
    """The accepted changes as byte ranges of the source, in order."""
    starts = [0]
    for line in document.source_lines:
        starts.append(starts[-1] + len(line.raw))
    return tuple(
        ByteEdit(starts[change.first], starts[change.end], b"".join(line.raw for line in change.added))
        for hunk in sorted(accepted, key=lambda hunk: hunk.index)
        for change in hunk.changes
    )


def apply_edits(data: bytes, edits: Sequence[ByteEdit]) -> bytes:
    """`data` with ordered, non-overlapping edits made."""
    pieces: list[bytes] = []
    at = 0
    for edit in edits:
        pieces += (data[at : edit.start], edit.new)
        at = edit.end
    return b"".join([*pieces, data[at:]])


def outside_identical(before: bytes, after: bytes, edits: Sequence[ByteEdit]) -> bool:
    """True when `after` differs from `before` in nothing but the edits: every byte outside them is the same."""
    at_before = at_after = 0
    for edit in edits:
        kept = edit.start - at_before
        if kept < 0 or before[at_before : edit.start] != after[at_after : at_after + kept]:
            return False
        at_after += kept
        if after[at_after : at_after + len(edit.new)] != edit.new:
            return False
        at_before, at_after = edit.end, at_after + len(edit.new)
    return before[at_before:] == after[at_after:]


def _heading(old: Sequence[SourceLine], first: int) -> str:
    """The nearest line above `first` that starts with a letter, `_` or `$`."""
    for at in range(first - 1, -1, -1):
        if _HEADING.match(old[at].text):
            return old[at].text[:_MOST_HEADING].rstrip()
    return ""
