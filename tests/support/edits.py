"""Small edits of real files, for tests of what is written to disk."""

from pathlib import Path

from app.editing.diff import Hunk, make_hunks
from app.editing.document import Document, open_document
from app.editing.result import make_result

OLD = "".join(f"line {number}\n" for number in range(40)).encode()
NEW = OLD.replace(b"line 3\n", b"three\nand more\n").replace(b"line 30\n", b"thirty\n")


def edit_of(path: Path, new: bytes = NEW) -> tuple[Document, tuple[Hunk, ...]]:
    """Open `path` and make the hunks that turn its text into `new` (UTF-8, LF)."""
    document = open_document(path)
    return document, make_hunks(make_result(document, new.decode()))


def others(folder: Path) -> list[str]:
    """What lies in the folder beside the journal."""
    return sorted(entry.name for entry in folder.iterdir() if entry.name != "journal")
