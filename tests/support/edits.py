"""Small edits of real files, for tests of what is written to disk."""

from collections.abc import Callable
from pathlib import Path

from app.editing.diff import Hunk, make_hunks
from app.editing.document import Document, open_document
from app.editing.journal import Journal, State
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


def states(journal: Journal) -> list[State]:
    """Of every entry, oldest first."""
    return [entry.state for entry in journal.entries()]


def write_in_place(path: Path, data: bytes) -> Callable[[], None]:
    """As careless programs save: the same file gets other bytes."""

    def save() -> None:
        path.write_bytes(data)

    return save


def save_by_rename(path: Path, data: bytes) -> Callable[[], None]:
    """As editors save: a new file takes the name."""

    def save() -> None:
        new = path.with_name("editor's own")
        new.write_bytes(data)
        new.rename(path)

    return save
