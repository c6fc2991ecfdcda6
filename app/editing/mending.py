"""What a check found, tied to the hunks under review, and taken out of them with one key.

Knows nothing of keys or terminals. Invariant: mending only brings source lines back; it never adds a line that neither
the source nor the proposal has, and never decides to accept.
"""

from typing import TYPE_CHECKING

from app.editing.diff import Hunk
from app.editing.review import Review
from app.editing.rework import without_changes_at, without_churn, without_removals

if TYPE_CHECKING:  # what was found is all there is to know of the checks
    from app.editing.checks import CheckWarning

MENDABLE = {
    "lost_lines": "restore the lost lines",
    "elision": "restore the code that was left out",
    "deletions": "take back the deletions",
    "churn": "take back changes of white space alone",
}
"""Code of a warning -> what mending it does."""


def touched(review: Review, warning: "CheckWarning") -> tuple[int, ...]:
    """Indices of the hunks that a warning is about; none when its lines are in no hunk any more."""
    return tuple(hunk.index for hunk in review.hunks if _is_about(warning, hunk))


def held_hunks(review: Review, warnings: "tuple[CheckWarning, ...]") -> frozenset[int]:
    """Indices of the hunks that have to be decided one by one, because a blocking check is about them."""
    return frozenset(index for warning in warnings if warning.blocking for index in touched(review, warning))


def mend(review: Review, warning: "CheckWarning") -> Review:
    """The review without what the warning is about, as one step; the same where that cannot be mended.

    Lost lines come back beside what replaced them; for code that was left out, and for deletions, the whole change is
    taken back, the placeholder with it.

    Raises UnencodableError.
    """
    return review.reworked([_mended(review, hunk, warning) for hunk in review.hunks])


def _mended(review: Review, hunk: Hunk, warning: "CheckWarning") -> Hunk | None:
    if warning.code not in MENDABLE or not _is_about(warning, hunk):
        return hunk
    if warning.code == "churn":
        return without_churn(review.document, hunk)
    if warning.code == "lost_lines":
        return without_removals(review.document, hunk, set(warning.lines))
    return without_changes_at(review.document, hunk, set(warning.lines))


def _is_about(warning: "CheckWarning", hunk: Hunk) -> bool:
    if warning.in_source:
        return any(hunk.old_first < line <= hunk.old_end for line in warning.lines)
    return any(hunk.new_start <= line < hunk.new_start + hunk.new_lines for line in warning.lines)
