"""Carry accepted hunks over to a file that changed meanwhile, or say where that cannot be done.

Knows nothing of writing. Invariant: a change is carried over only where its source lines and the line on each
side of them are still there, together and unchanged; all changes or none.
"""

from collections.abc import Hashable, Iterable, Sequence

from app.editing.alignment import Match, align
from app.editing.diff import ByteEdit, Change, Hunk
from app.editing.document import Document
from app.errors import ConflictError
from app.paths import shown

_TOP, _BOTTOM = "top of file", "bottom of file"
"""Stand for the lines before the first and after the last; strings, so that they equal no line of bytes."""


def rebase(document: Document, accepted: Iterable[Hunk], newer: Document) -> tuple[ByteEdit, ...]:
    """The accepted changes of `document` as byte ranges of `newer`, the same file in its present state.

    Raises ConflictError naming the lines of the first change that cannot be carried over.
    """
    old: list[Hashable] = [_TOP, *(line.raw for line in document.source_lines), _BOTTOM]
    new: list[Hashable] = [_TOP, *(line.raw for line in newer.source_lines), _BOTTOM]
    matches = align(old, new)
    starts = [0]
    for line in newer.source_lines:
        starts.append(starts[-1] + len(line.raw))
    edits: list[ByteEdit] = []
    for hunk in sorted(accepted, key=lambda hunk: hunk.index):
        for change in hunk.changes:
            offset = _offset(matches, change)
            if offset is None:
                raise ConflictError(
                    f"{shown(document.name)} was changed meanwhile around line {change.first + 1}, where the edit "
                    "would go; nothing was written. Run the edit again on the new file."
                )
            added = b"".join(line.raw for line in change.added)
            edits.append(ByteEdit(starts[change.first + offset], starts[change.end + offset], added))
    return tuple(edits)


def _offset(matches: Sequence[Match], change: Change) -> int | None:
    """How many lines further down the change's lines are now; None when they or their neighbours are not intact."""
    # Padded lists are one longer at the top: the line before the change is at `first`, the one after at `end` + 1.
    for match in matches:
        if match.old <= change.first and change.end + 1 < match.old + match.length:
            return match.new - match.old
    return None
