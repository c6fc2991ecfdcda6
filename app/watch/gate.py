"""Which state of a file is to be edited: one that is new, not written by us, and asks for something.

Reads files; knows nothing of queues or engines. Invariant: a state that was let through is not let through again while
it is the newest, and a file is never asked for what we wrote ourselves.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.editing.document import Document
from app.watch.job import Asked, asked_of, open_saved
from app.watch.ledger import Ledger


@dataclass(frozen=True)
class Look:
    """A file as it is now."""

    sha256: str
    new: bool
    """It is not the state that was looked at last."""
    asked: Asked | None
    """None: nothing is asked, or the state is ours or not new."""


class Gate:
    """Remembers the last state of every file that was saved since the start."""

    def __init__(
        self, ledger: Ledger, standing: Callable[[str], str | None], is_demanded: Callable[[str], bool]
    ) -> None:
        """`standing`: the instruction for a path that needs no trigger. `is_demanded`: the user has named this file for
        this very run, so that it is edited whoever wrote it."""
        self._ledger = ledger
        self._standing = standing
        self._is_demanded = is_demanded
        self._last: dict[str, str] = {}

    def look(self, path: str) -> Look:
        """Read a file; nothing is remembered. Raises FileError."""
        document = open_saved(path)
        new = self._last.get(path) != document.sha256
        return Look(document.sha256, new, self._asked(path, document) if new else None)

    def asked_of_state(self, path: str, sha256: str) -> Asked | None:
        """What a state that was let through asks for; None where the file is in another one now. Raises FileError."""
        document = open_saved(path)
        return asked_of(document, self._standing(path)) if document.sha256 == sha256 else None

    def remember(self, path: str, sha256: str) -> None:
        """This state was looked at."""
        self._last[path] = sha256

    def forget(self, path: str) -> None:
        """Whatever state the file is in next is new."""
        self._last.pop(path, None)

    def rename(self, old: str, new: str) -> None:
        """The file goes by another name."""
        if old in self._last:
            self._last[new] = self._last.pop(old)

    def _asked(self, path: str, document: Document) -> Asked | None:
        if not self._is_demanded(path) and self._ledger.is_ours(path, document.sha256):
            return None
        return asked_of(document, self._standing(path))
