"""What a reader should know beside a diff, as rows: warnings and what mends them, blast radius, hidden characters.

Knows how it is worded, not how it is shown. Invariant: every warning of a report is in exactly one row, in the report's
order.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.editing.hidden import added_hidden
from app.editing.mending import MENDABLE
from app.editing.review import Review
from app.editing.rows import HUNK, NOTE, Row

if TYPE_CHECKING:  # what was found is all there is to know of the checks
    from app.editing.checks import CheckReport

MEND_KEY = "m"


def notes_of(report: "CheckReport") -> list[str]:
    """The report's sentences."""
    notes = [
        warning.message
        + (f" {MEND_KEY}: {MENDABLE[warning.code]}." if warning.code in MENDABLE else "")
        + (" Blocking: decide the hunk by hand." if warning.blocking else "")
        for warning in report.warnings
    ]
    return [*notes, *report.notes]


def note_rows(report: "CheckReport | None") -> list[Row]:
    """The report's sentences as rows; none without a report."""
    return [] if report is None else [Row(NOTE, note) for note in notes_of(report)]


def with_hidden(rows: Sequence[Row], review: Review) -> list[Row]:
    """The rows, and under the heading of a hunk one for each hidden character that it adds."""
    marked: list[Row] = []
    for row in rows:
        marked.append(row)
        if row.kind == HUNK:
            hunk = review.item(row.hunk).hunk
            for found in added_hidden(hunk):
                line = hunk.lines[found.position].new_line
                marked.append(Row(NOTE, f"Line {line}, column {found.column + 1} adds {found.name}.", row.hunk))
    return marked
