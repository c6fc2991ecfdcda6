"""Carry accepted hunks over to a file that changed meanwhile, or say where that cannot be done.

Knows nothing of writing. Invariant: a change is carried over only where its source lines and the line on each
side of them are still there, together and unchanged; all changes or none.
"""

from collections.abc import Hashable, Iterable, Sequence

from app.editing.alignment import Match, align
from app.editing.diff import ByteEdit, Change, Hunk, hunk_of, number
from app.editing.document import Document
from app.errors import ConflictError
from app.paths import shown

_TOP, _BOTTOM = "top of file", "bottom of file"
"""Stand for the lines before the first and after the last; strings, so that they equal no line of bytes."""


def rebase(document: Document, accepted: Iterable[Hunk], newer: Document) -> tuple[ByteEdit, ...]:
    """The accepted changes of `document` as byte ranges of `newer`, the same file in its present state.

    Raises ConflictError naming the lines of the first change that cannot be carried over.
    """
    matches = _kept(document, newer)
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


def moved_hunks(document: Document, hunks: Iterable[Hunk], newer: Document) -> tuple[Hunk | None, ...]:
    """Each hunk of `document`, in order, as a hunk of `newer`; None for one that does not fit any more."""
    matches = _kept(document, newer)
    given = list(hunks)
    fitting = [(at, changes) for at, hunk in enumerate(given) if (changes := _moved(matches, hunk.changes))]
    limits = [changes[0].first for _, changes in fitting[1:]] + [len(newer.source_lines)]
    made: list[Hunk] = []
    for (at, changes), limit in zip(fitting, limits, strict=False):
        # As much around it as it had, but never into a neighbour: lines between them may be gone.
        before = given[at].changes[0].first - given[at].old_first
        after = given[at].old_end - given[at].changes[-1].end
        first = max(made[-1].old_end if made else 0, changes[0].first - before)
        made.append(hunk_of(newer, changes, first, min(limit, changes[-1].end + after)))
    found = dict(zip((at for at, _ in fitting), number(made), strict=True))
    return tuple(found.get(at) for at in range(len(given)))


def _moved(matches: Sequence[Match], changes: Sequence[Change]) -> list[Change]:
    """The changes where they go now; empty when one of them fits no more."""
    offsets = [_offset(matches, change) for change in changes]
    return [
        Change(change.first + offset, change.end + offset, change.added)
        for change, offset in zip(changes, offsets, strict=True)
        if offset is not None and None not in offsets
    ]


def _kept(document: Document, newer: Document) -> list[Match]:
    """The lines that both have, with the top and the bottom of the file as lines of their own."""
    old: list[Hashable] = [_TOP, *(line.raw for line in document.source_lines), _BOTTOM]
    new: list[Hashable] = [_TOP, *(line.raw for line in newer.source_lines), _BOTTOM]
    return align(old, new)


def _offset(matches: Sequence[Match], change: Change) -> int | None:
    """How many lines further down the change's lines are now; None when they or their neighbours are not intact."""
    # Padded lists are one longer at the top: the line before the change is at `first`, the one after at `end` + 1.
    for match in matches:
        if match.old <= change.first and change.end + 1 < match.old + match.length:
            return match.new - match.old
    return None
