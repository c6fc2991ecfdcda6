"""The files below one root as they were last seen: which of them have changed, which are new, which are gone.

Asks the file system, one folder at a time; knows nothing of events, hashes or instructions. Invariant: links are never
followed, nothing below an ignored folder is looked at, and every folder is watched before it is listed, so that nothing
that happens while it is listed is lost.
"""

import os
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from app.errors import FileMissingError
from app.paths import shown
from app.watch.ignore import MOST_BYTES, Ignore

_FOLDER = b"/"
_UNKNOWN = b""
_WORD = (1 << 64) - 1
_SIZE = struct.Struct("<Q")
"""The first word of a signature."""
_CONTENT = 24
"""Bytes of a signature that tell of content: size, time of the last write, identity. The last 8 are ctime."""


class Kind(Enum):
    """What a name stands for."""

    FILE = "file"
    """One that may be edited."""
    FOLDER = "folder"
    """Not ignored."""
    OTHER = "other"
    """Ignored, a link, a device, empty, or too large."""
    GONE = "gone"


@dataclass(frozen=True)
class Seen:
    """A name as it is now, against how it was."""

    kind: Kind
    changed: bool
    """For a file: size, time of the last write or identity differ from what was seen before."""


class Tree:
    """One root. Paths are absolute and without links."""

    def __init__(
        self,
        root: str,
        ignore: Ignore,
        *,
        only: frozenset[str] | None = None,
        enter: Callable[[str], None],
        leave: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        """`only`: names in the root that are watched, ignored or not; None watches everything below. `enter` is called
        before a folder is listed for the first time, `leave` when it is gone, `note` once for one we may not read."""
        self.root = root
        self._ignore = ignore
        self._only = only
        self._enter = enter
        self._leave = leave
        self._note = note
        # A signature is packed: a tree of 50,000 files takes 5 MB as bytes, and four times that as tuples.
        self._folders: dict[str, dict[str, bytes | None]] = {}
        self._closed: set[str] = set()

    @property
    def folders(self) -> int:
        """Folders that are watched."""
        return len(self._folders)

    @property
    def files(self) -> int:
        """Files that are watched."""
        kept = (None, _FOLDER)
        return sum(sum(value not in kept for value in names.values()) for names in self._folders.values())

    @property
    def is_partial(self) -> bool:
        """True when only some names of the root are watched."""
        return self._only is not None

    def all_files(self) -> Iterator[list[str]]:
        """Every file that may be edited, folder by folder; what was named comes in any size, for a word about it."""
        for folder, names in self._folders.items():
            yield [
                os.path.join(folder, name)
                for name, value in names.items()
                if value
                and value != _FOLDER
                and (self._only is not None or _may_be_edited(_SIZE.unpack_from(value)[0]))
            ]

    def content(self, folder: str, name: str) -> bytes:
        """What a file's size, time of last write and identity were when it was last seen; empty for anything else."""
        known = self._folders.get(folder, {}).get(name) or _UNKNOWN
        return known[:_CONTENT] if known != _FOLDER else _UNKNOWN

    def has_folder(self, folder: str) -> bool:
        """True for a folder that is watched."""
        return folder in self._folders

    def walk(self, top: str, *, baseline: bool = False) -> Iterator[list[str]]:
        """Look at a folder and all below, folder by folder; yields the files that changed or are new in each.

        `baseline`: take what is there as it is. Raises FileMissingError when the root itself is gone.
        """
        pending = [top]
        while pending:
            changed, below = self._look(pending.pop(), baseline)
            pending += below
            yield changed

    def see(self, folder: str, name: str) -> Seen:
        """Look at one name of a watched folder and remember it."""
        names = self._folders.get(folder, {})
        before = names.get(name, _UNKNOWN)
        path = os.path.join(folder, name)
        try:
            found = os.lstat(path)
        except OSError:
            self._drop(folder, name)
            return Seen(Kind.GONE, True)
        is_folder = stat.S_ISDIR(found.st_mode)
        if before == _FOLDER and not is_folder:
            self._drop(folder, name)
        if not self._wanted(folder, name, found.st_mode):
            names[name] = None
            return Seen(Kind.OTHER, False)
        if is_folder:
            names[name] = _FOLDER
            return Seen(Kind.FOLDER, before != _FOLDER)
        signature = names[name] = _signature(found)
        kind = Kind.FILE if _may_be_edited(found.st_size) else Kind.OTHER
        return Seen(kind, (before or _UNKNOWN)[:_CONTENT] != signature[:_CONTENT])

    def doubt(self, path: str) -> None:
        """Have the next walk report this file, whatever it looks like."""
        folder, name = os.path.split(path)
        if name in self._folders.get(folder, {}):
            self._folders[folder][name] = _UNKNOWN

    def move(self, old: str, new: str) -> None:
        """A watched folder was renamed: what is known of the files below goes with it, the watches do not."""
        for folder in self._below(old):
            names = self._folders.pop(folder)
            self._leave(folder)
            self._moved(folder, new + folder[len(old) :], names)
        self._forget_name(old)

    def forget(self, folder: str) -> None:
        """A watched folder is gone, with all below."""
        for place in self._below(folder):
            del self._folders[place]
            self._leave(place)
        self._forget_name(folder)

    def rules_changed(self, folder: str) -> None:
        """The folder's .gitignore was saved: what was ignored below is to be looked at again."""
        for place in self._below(folder):
            names = self._folders[place]
            for name in [name for name, value in names.items() if value is None]:
                del names[name]

    def _moved(self, folder: str, new: str, names: dict[str, bytes | None]) -> None:
        self._enter(new)
        self._ignore.enter(new)
        self._folders[new] = names

    def _below(self, folder: str) -> list[str]:
        inside = folder.rstrip("/") + "/"
        return [place for place in self._folders if place == folder or place.startswith(inside)]

    def _forget_name(self, folder: str) -> None:
        parent, name = os.path.split(folder)
        self._folders.get(parent, {}).pop(name, None)

    def _drop(self, folder: str, name: str) -> None:
        if self._folders.get(folder, {}).pop(name, None) == _FOLDER:
            self.forget(os.path.join(folder, name))

    def _wanted(self, folder: str, name: str, mode: int) -> bool:
        is_folder = stat.S_ISDIR(mode)
        if not is_folder and not stat.S_ISREG(mode):
            return False
        if self._only is not None:
            return name in self._only and not is_folder
        return not self._ignore.ignores(folder, name, is_folder)

    def _look(self, folder: str, baseline: bool) -> tuple[list[str], list[str]]:
        """(files that changed, folders to look at next)."""
        if folder not in self._folders:
            self._enter(folder)
            self._ignore.enter(folder)
            self._folders[folder] = {}
        names = self._folders[folder]
        changed: list[str] = []
        below: list[str] = []
        present: set[str] = set()
        for entry in self._entries(folder):
            present.add(entry.name)
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:  # gone since it was listed
                present.discard(entry.name)
                continue
            self._compare(folder, entry.name, found, names, changed, below)
        for name in names.keys() - present:
            self._drop(folder, name)
        return ([] if baseline else changed), below

    def _compare(
        self,
        folder: str,
        name: str,
        found: os.stat_result,
        names: dict[str, bytes | None],
        changed: list[str],
        below: list[str],
    ) -> None:
        is_folder = stat.S_ISDIR(found.st_mode)
        before = names.get(name, _UNKNOWN)
        if before is None and not is_folder:  # ignored before, and rules do not change unnoticed
            return
        if before in (None, _UNKNOWN) and not self._wanted(folder, name, found.st_mode):
            names[name] = None
            return
        if is_folder:
            names[name] = _FOLDER
            below.append(os.path.join(folder, name))
            return
        if before == _FOLDER:
            self._drop(folder, name)
        signature = names[name] = _signature(found)
        if before != signature and _may_be_edited(found.st_size):
            changed.append(os.path.join(folder, name))

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except FileNotFoundError as error:
            self._gone(folder, error)
        except NotADirectoryError as error:
            self._gone(folder, error)
        except OSError as error:
            if folder not in self._closed:
                self._closed.add(folder)
                self._note(f"{shown(folder)} cannot be read ({error.strerror}), so nothing in it is watched.")
        else:
            self._closed.discard(folder)
            return found
        return []

    def _gone(self, folder: str, error: OSError) -> None:
        if folder == self.root:
            raise FileMissingError(
                f"{shown(folder)}, which is watched, was removed or is no longer mounted."
            ) from error
        self.forget(folder)


def root_missing(folder: str) -> FileMissingError:
    """What is said when a watched root is gone."""
    return FileMissingError(f"{shown(folder)}, which is watched, was removed or is no longer mounted.")


def _may_be_edited(size: int) -> bool:
    return 0 < size <= MOST_BYTES


def _signature(found: os.stat_result) -> bytes:
    identity = found.st_dev << 48 ^ found.st_ino
    parts = (found.st_size, found.st_mtime_ns, identity, found.st_ctime_ns)
    return struct.pack("<4Q", *(part & _WORD for part in parts))  # a clock may be set to any century
