"""Where saves come from: the watched roots, kept up to date by the system's events and by looking again.

Turns folder events into "this file was touched", "this one is gone", "this one has another name". Knows nothing of
hashes, instructions or queues. Invariant: after `rescan`, every file below a root that changed since it was last seen
has been reported, whatever events were lost.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from app.editing.document import resolve
from app.errors import FileMissingError, NotAFileError
from app.paths import shown
from app.watch.ignore import GITIGNORE, Ignore
from app.watch.inotify import FolderEvent, InotifySource, WatchLimitError, What
from app.watch.tree import Kind, Tree, root_missing

IDLE_RESCAN_S = 30.0
"""How often a tree with events is looked at all the same."""
POLL_S = 1.0
"""How often a tree without events is looked at."""
_PATIENCE = 40.0
"""A look at the tree is not repeated before this many times what it took: at most a fortieth of a processor."""

SourceMaker = Callable[[Callable[[], None]], InotifySource]
"""Makes what tells of events, from what it is to call when there are any."""


@dataclass(frozen=True)
class _Root:
    tree: Tree
    ignore: Ignore


@dataclass
class Touched:
    """What happened since the last call."""

    files: list[str] = field(default_factory=list)
    """Saved, created, or moved here; each may be named more than once."""
    gone: list[str] = field(default_factory=list)
    """Removed, moved away, or no longer a file that may be edited."""
    renamed: list[tuple[str, str]] = field(default_factory=list)
    """(old, new): the same file, unchanged, under another name."""
    lost: bool = False
    """Events were lost, or rules changed: look at everything again."""


class Roots:
    """All that is watched. Everything happens on one thread, the event loop's."""

    def __init__(
        self,
        paths: Sequence[str],
        *,
        poll: bool,
        wake: Callable[[], None],
        note: Callable[[str], None],
        source: SourceMaker = InotifySource,
    ) -> None:
        """`paths` as the user gave them. Raises FileMissingError and the like for one that is not there."""
        self._said: set[str] = set()
        self._note_user = note
        self._source: InotifySource | None = None
        folders, files = _sorted_out(paths)
        self.named = tuple(sorted(os.path.join(folder, name) for folder, names in files.items() for name in names))
        """Files that were given by name."""
        self._moved: dict[int, tuple[str, bytes]] = {}
        """Cookie of a rename to the old path and, for a file, what it looked like."""
        self._incomplete = False
        if not poll:
            try:
                self._source = source(wake)
            except WatchLimitError as error:
                self._degrade(error)
        self._roots = [self._root(folder, None) for folder in folders]
        self._roots += [self._root(folder, frozenset(names)) for folder, names in files.items()]

    # --- figures ------------------------------------------------------------------------------------------------------

    @property
    def paths(self) -> tuple[str, ...]:
        """What is watched: folders, and files that were named."""
        return (*(root.tree.root for root in self._roots if not root.tree.is_partial), *self.named)

    @property
    def folders(self) -> int:
        """Folders that are watched."""
        return sum(root.tree.folders for root in self._roots)

    @property
    def files(self) -> int:
        """Files that are watched."""
        return sum(root.tree.files for root in self._roots)

    @property
    def by_events(self) -> bool:
        """False where folders are looked at again and again instead."""
        return self._source is not None and not self._incomplete

    def rescan_interval(self, last_took_s: float) -> float:
        """Seconds between two looks at everything, when the last one took so long."""
        return max(IDLE_RESCAN_S if self.by_events else POLL_S, _PATIENCE * last_took_s)

    # --- what happened ------------------------------------------------------------------------------------------------

    async def start(self) -> AsyncIterator[list[str]]:
        """Watch everything and take it as it is; yields the files, folder by folder."""
        for root in self._roots:
            for _ in root.tree.walk(root.tree.root, baseline=True):
                await asyncio.sleep(0)
        for root in self._roots:
            for files in root.tree.all_files():
                yield files

    async def rescan(self) -> AsyncIterator[list[str]]:
        """Look at everything again; yields what changed, folder by folder. Raises FileMissingError for a lost root."""
        for root in list(self._roots):
            for files in self._walked(root, root.tree.root):
                yield files
                await asyncio.sleep(0)

    def take(self) -> Touched:
        """What events told since the last call. Raises FileMissingError when the last root is gone."""
        touched = Touched()
        if self._source is None:
            return touched
        unmatched = self._moved
        self._moved = {}
        for event in self._source.drain():
            self._handle(event, unmatched, touched)
        for old, _ in unmatched.values():  # moved out of what is watched
            self._forget(old)
        return touched

    def looks(self, path: str) -> tuple[Kind, bool]:
        """(what a path is now, it changed since it was last seen)."""
        folder, name = os.path.split(path)
        kind, changed = Kind.GONE, False
        for root in self._having(folder):
            seen = root.tree.see(folder, name)
            if seen.kind is Kind.FILE or kind is Kind.GONE:  # a file for one root may be nothing to another
                kind = seen.kind
            changed = changed or (seen.kind is Kind.FILE and seen.changed)
        return kind, changed

    def relative(self, path: str) -> str:
        """A file's path as rules see it: relative to its root."""
        for root in self._roots:
            if root.tree.has_folder(os.path.dirname(path)):
                return os.path.relpath(path, root.tree.root)
        return path

    def doubt(self, path: str) -> None:
        """Have the next rescan report this file again."""
        for root in self._roots:
            root.tree.doubt(path)

    def close(self) -> None:
        """Stop listening."""
        if self._source is not None:
            self._source.close()
            self._source = None

    # --- inside -------------------------------------------------------------------------------------------------------

    def _root(self, folder: str, only: frozenset[str] | None) -> _Root:
        ignore = Ignore(folder, self._say_once)
        tree = Tree(folder, ignore, only=only, enter=self._enter, leave=self._leave, note=self._say_once)
        return _Root(tree, ignore)

    def _handle(self, event: FolderEvent, unmatched: dict[int, tuple[str, bytes]], touched: Touched) -> None:
        if event.what is What.OVERFLOW:
            touched.lost = True
        elif event.what is What.FOLDER_GONE:
            self._folder_gone(event.folder, touched)
        elif event.name:
            kinds = [self._in_folder(root, event, unmatched, touched) for root in self._having(event.folder)]
            if kinds and Kind.FILE not in kinds and not event.is_folder:
                touched.gone.append(os.path.join(event.folder, event.name))

    def _in_folder(
        self, root: _Root, event: FolderEvent, unmatched: dict[int, tuple[str, bytes]], touched: Touched
    ) -> Kind:
        """What the name is to this root now."""
        tree, path = root.tree, os.path.join(event.folder, event.name)
        if event.name == GITIGNORE and event.what is not What.ATTRIBUTES:
            root.ignore.enter(event.folder)
            tree.rules_changed(event.folder)
            touched.lost = True
        if event.what is What.MOVED_AWAY:
            content = tree.content(event.folder, event.name)
            if content or event.cookie not in self._moved:  # of several roots, one may not know the file
                self._moved[event.cookie] = (path, content)
            return Kind.FOLDER if event.is_folder else tree.see(event.folder, event.name).kind
        known = bool(tree.content(event.folder, event.name))
        seen = tree.see(event.folder, event.name)
        origin = self._moved.get(event.cookie) or unmatched.get(event.cookie) if event.cookie else None
        if seen.kind is Kind.FOLDER and seen.changed:
            if origin is not None:
                self._moved.pop(event.cookie, None)
                unmatched.pop(event.cookie, None)
                tree.move(origin[0], path)
            for files in self._walked(root, path):
                touched.files += files
        elif seen.kind is Kind.FILE:
            if origin is not None and not known and origin[1] == tree.content(event.folder, event.name):
                touched.renamed.append((origin[0], path))
            elif event.what is What.CHANGED or seen.changed:
                touched.files.append(path)
        return seen.kind

    def _folder_gone(self, folder: str, touched: Touched) -> None:
        for root in self._having(folder):
            root.tree.forget(folder)
            if os.path.isdir(folder) and not os.path.islink(folder):  # another one stands in its place already
                for files in self._walked(root, folder):
                    touched.files += files
            elif folder == root.tree.root:
                self._root_gone(root, root_missing(folder))

    def _walked(self, root: _Root, top: str) -> Iterator[list[str]]:
        try:
            yield from root.tree.walk(top)
        except FileMissingError as error:
            self._root_gone(root, error)

    def _root_gone(self, root: _Root, error: FileMissingError) -> None:
        """One root less; without any, there is nothing to do."""
        root.tree.forget(root.tree.root)
        if root in self._roots:
            self._roots.remove(root)
        if not self._roots:
            raise error
        self._say_once(str(error))

    def _having(self, folder: str) -> list[_Root]:
        return [root for root in self._roots if root.tree.has_folder(folder)]

    def _forget(self, folder: str) -> None:
        for root in self._having(folder):
            root.tree.forget(folder)

    def _enter(self, folder: str) -> None:
        if self._source is None:
            return
        try:
            self._source.add(folder)
        except WatchLimitError as error:
            self._degrade(error)

    def _leave(self, folder: str) -> None:
        if self._source is not None:
            self._source.remove(folder)

    def _degrade(self, error: WatchLimitError) -> None:
        self._incomplete = True
        self._say_once(f"{error} What has no events is looked at again and again instead, which costs more.")

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._note_user(sentence)


def _sorted_out(paths: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """(folders, files by their folder), links resolved, each once."""
    folders: list[str] = []
    files: dict[str, list[str]] = {}
    if "" in paths:  # an unset variable in a script; the system would take it for the current folder
        raise FileMissingError("A file or folder to watch has an empty name.")
    for path in dict.fromkeys(str(resolve(path)) for path in paths):
        if os.path.isdir(path):
            folders.append(path)
        elif not os.path.isfile(path):
            raise NotAFileError(f"{shown(path)} is neither a file nor a folder.")
        else:
            files.setdefault(os.path.dirname(path), []).append(os.path.basename(path))
    return folders, files
