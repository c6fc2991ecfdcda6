"""Old and new file -> hunks a person can decide one by one.

Knows nothing of models, terminals or writing. Invariant: joining all hunks gives the new bytes exactly, joining none
gives the old ones, and for any subset the bytes outside the accepted hunks are the source's.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    old, new = result.document.source_lines, result.lines
    gaps: list[tuple[int, int, int, int]] = []
    old_at = new_at = 0
    for old_next, new_next, length in [*((m.old, m.new, m.length) for m in result.matches), (len(old), len(new), 0)]:
        if (old_at, new_at) != (old_next, new_next):
            gaps.append((old_at, old_next, new_at, new_next))
        old_at, new_at = old_next + length, new_next + length
    groups: list[list[tuple[int, int, int, int]]] = []
    for gap in gaps:
        if groups and gap[0] - groups[-1][-1][1] <= 2 * context:
            groups[-1].append(gap)
        else:
            groups.append([gap])
    return tuple(_hunk(number, group, old, new, context) for number, group in enumerate(groups, 1))


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


def _hunk(
    number: int,
    gaps: Sequence[tuple[int, int, int, int]],
    old: Sequence[SourceLine],
    new: Sequence[SourceLine],
    context: int,
) -> Hunk:
    lead = min(context, gaps[0][0])
    old_first, new_first = gaps[0][0] - lead, gaps[0][2] - lead
    tail = min(context, len(old) - gaps[-1][1])
    old_end, new_end = gaps[-1][1] + tail, gaps[-1][3] + tail
    lines: list[DiffLine] = []
    old_at, new_at = old_first, new_first
    for gap in [*gaps, (old_end, old_end, new_end, new_end)]:
        for step in range(gap[0] - old_at):
            line = old[old_at + step]
            lines.append(DiffLine(" ", line.text, line.ending, line.raw, old_at + step + 1, new_at + step + 1))
        for at in range(gap[0], gap[1]):
            lines.append(DiffLine("-", old[at].text, old[at].ending, old[at].raw, at + 1, None))
        for at in range(gap[2], gap[3]):
            lines.append(DiffLine("+", new[at].text, new[at].ending, new[at].raw, None, at + 1))
        old_at, new_at = gap[1], gap[3]
    old_lines, new_lines = old_end - old_first, new_end - new_first
    return Hunk(
        index=number,
        header=_heading(old, old_first),
        old_start=old_first + 1 if old_lines else old_first,
        old_lines=old_lines,
        new_start=new_first + 1 if new_lines else new_first,
        new_lines=new_lines,
        lines=tuple(lines),
        changes=tuple(Change(gap[0], gap[1], tuple(new[gap[2] : gap[3]])) for gap in gaps),
    )


def _heading(old: Sequence[SourceLine], first: int) -> str:
    """The nearest line above `first` that starts with a letter, `_` or `$`."""
    for at in range(first - 1, -1, -1):
        if _HEADING.match(old[at].text):
            return old[at].text[:_MOST_HEADING].rstrip()
    return ""
