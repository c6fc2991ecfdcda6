"""Is the file still what was read? By its bytes, not by its times.

Knows nothing of hunks or terminals. Invariant: nothing is raised; a file that is gone or cannot be read any more is a
sentence.
"""

from dataclasses import dataclass

from app.editing.document import Document, open_document
from app.errors import AppError
from app.paths import shown


@dataclass(frozen=True)
class Newer:
    """The file is something else now."""

    document: Document | None
    """Its present state; None when it is gone or is no text any more."""
    sentence: str


def look_again(document: Document) -> Newer | None:
    """What the file is now; None while its bytes are what `document` has, or where there is no file to look at."""
    if document.target is None:
        return None
    try:
        now = open_document(document.name, document.codec.name)
    except AppError as error:
        return Newer(None, str(error))
    if now.target == document.target and now.data == document.data:
        return None
    return Newer(now, f"{shown(document.target.name)} has changed on disk.")
