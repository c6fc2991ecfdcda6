"""Choose a file: recent ones first, then those below the current folder that neither git nor common sense ignores.

Knows paths, opens nothing. Invariant: the screen answers while thousands of files are still being listed.
"""

import os
import threading
from collections.abc import Sequence

from app.file_search import MOST_FILES, best_matches, files_under
from app.recall import load_recall
from app.tui.screens.choice import Choice, ChoiceScreen
from app.watch.ignore import Ignore

_EVERY = 500
"""Files found between two looks of the list."""


class FilePicker(ChoiceScreen[str]):
    """Answers with a path, relative to the current folder where it lies below it."""

    def __init__(self) -> None:
        super().__init__("Open a file", self._matching, slow=True)
        self._root = os.getcwd()
        self._found: list[str] = []
        self._left = threading.Event()
        self._recent: tuple[str, ...] = ()

    def on_mount(self) -> None:
        super().on_mount()
        self.note("Looking for files...")
        self.run_worker(self._list, thread=True, group="files", exit_on_error=False)

    def on_unmount(self) -> None:
        self._left.set()

    def _list(self) -> None:
        self._recent = tuple(_near(path, self._root) for path in load_recall().files if os.path.isfile(path))
        notes: list[str] = []
        for path in files_under(self._root, Ignore(self._root, notes.append)):
            if self._left.is_set():
                return
            self._found.append(path)
            if len(self._found) % _EVERY == 0:
                self.app.call_from_thread(self._so_far, "Looking for files...")
        count = len(self._found)
        more = ", the rest is left out" if count == MOST_FILES else ""
        files = "1 file" if count == 1 else f"{count} files"
        self.app.call_from_thread(self._so_far, " ".join([f"{files}{more}.", *notes[:1]]))

    def _so_far(self, sentence: str) -> None:
        if self.is_attached:  # else the user has chosen meanwhile
            self.note(sentence)
            self.list_again()

    def _matching(self, query: str) -> Sequence[Choice[str]]:
        rows = [
            Choice(path, path, "recent" if path in self._recent else "")
            for path in best_matches(query, list(self._found), self._recent)
        ]
        typed = os.path.expanduser(query.strip())
        if typed and all(row.value != typed for row in rows) and os.path.isfile(os.path.join(self._root, typed)):
            rows.insert(0, Choice(typed, typed, "as typed"))
        return rows


def _near(path: str, root: str) -> str:
    return os.path.relpath(path, root) if path.startswith(root.rstrip("/") + "/") else path
