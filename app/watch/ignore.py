"""Which files and folders a watch leaves alone: its own list, then .gitignore files with git's own meaning.

Knows names and patterns; reads nothing but .gitignore files. Invariant: nothing below an ignored folder is looked at,
whatever patterns say of it, and no .gitignore can bring back what the own list leaves out.
"""

import errno
import fnmatch
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.base import GitIgnorePatternError

from app.paths import shown

GITIGNORE = ".gitignore"

MOST_BYTES = 1 << 20
"""Larger files are not looked at: no edit of one fits a model's context."""

OWN_FOLDERS = (
    # environments and caches
    *("node_modules", ".venv", "venv", ".env", "site-packages", "__pycache__", ".tox", ".nox", ".direnv"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".cache", ".gradle", ".terraform"),
    *(".eggs", "*.egg-info", ".ipynb_checkpoints", ".idea", ".vs"),
)
"""Names of folders that are never entered."""

OWN_NAMES = (
    # version control
    *(".git", ".hg", ".svn", ".jj", ".bzr", "CVS", "_darcs"),
    # backups, and what editors and other tools write beside a file while they save it
    *("*~", "*.bak", "*.orig", "*.rej", "*.tmp", "*.temp", "*.part", "*.swp", "*.swo", "*.swx", ".*.sw[a-p]", "4913"),
    *("#*#", ".#*", "*.un~", "*.kate-swp", ".~lock.*#", "*___jb_tmp___", "*___jb_old___", ".goutputstream-*"),
    *(".redraft-*.tmp", ".DS_Store"),
    # generated, and never worth an edit
    *("*.min.js", "*.min.css", "*.map", "*.lock", "package-lock.json", "*.pyc", "*.o", "*.a", "*.so"),
)
"""Names of files and folders that are never looked at."""


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all: a tree of 50,000 files asks it for every name."""
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns))


@dataclass(frozen=True)
class _Rules:
    folder: str
    """Absolute path that the patterns are relative to."""
    spec: GitIgnoreSpec


class Ignore:
    """The rules of one root. A .gitignore counts once its folder was entered, one of a folder above at once."""

    def __init__(self, root: str, note: Callable[[str], None]) -> None:
        """`root`: absolute path. `note` hears of patterns and files that could not be read."""
        self._root = root
        self._note = note
        self._above = self._of_repository()
        self._inside: dict[str, _Rules] = {}

    def enter(self, folder: str) -> None:
        """Read the folder's own .gitignore, again if it was read before."""
        rules = self._read(folder, os.path.join(folder, GITIGNORE))
        if rules is None:
            self._inside.pop(folder, None)
        else:
            self._inside[folder] = rules

    def ignores(self, folder: str, name: str, is_folder: bool) -> bool:
        """True for an entry of a folder that was entered and is itself not ignored."""
        if _any_of(OWN_NAMES).match(name) or (is_folder and _any_of(OWN_FOLDERS).match(name)):
            return True
        path = os.path.join(folder, name) + ("/" if is_folder else "")
        for rules in self._chain(folder):
            said = rules.spec.check_file(path[len(rules.folder.rstrip("/")) + 1 :]).include
            if said is not None:
                return said
        return False

    def _chain(self, folder: str) -> list[_Rules]:
        """The .gitignore files that count in a folder, the nearest first."""
        chain: list[_Rules] = []
        if self._inside:
            place = folder
            while True:
                rules = self._inside.get(place)
                if rules is not None:
                    chain.append(rules)
                if place == self._root or len(place) <= len(self._root):
                    break
                place = os.path.dirname(place)
        return [*chain, *self._above]

    def _of_repository(self) -> list[_Rules]:
        """Rules from above the root, up to the top of its repository; none where it is in no repository."""
        found: list[_Rules | None] = []
        place = Path(self._root)
        while not (place / ".git").exists():
            if place == place.parent:
                return []
            place = place.parent
            found.append(self._read(str(place), str(place / GITIGNORE)))
        found.append(self._read(str(place), str(place / ".git" / "info" / "exclude")))
        return [rules for rules in found if rules is not None]

    def _read(self, folder: str, path: str) -> _Rules | None:
        try:
            lines = _text_of(path).splitlines()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._note(f"{shown(path)} cannot be read ({error.strerror}); nothing is ignored for its sake.")
            return None
        try:
            return _Rules(folder, GitIgnoreSpec.from_lines(lines))
        except GitIgnorePatternError:
            return _Rules(folder, GitIgnoreSpec.from_lines(self._understood(path, lines)))

    def _understood(self, path: str, lines: list[str]) -> list[str]:
        good: list[str] = []
        for number, line in enumerate(lines, 1):
            try:
                GitIgnoreSpec.from_lines([line])
            except GitIgnorePatternError:
                self._note(f"{shown(path)}, line {number}: not a pattern that git would take; it is left out.")
            else:
                good.append(line)
        return good


def _text_of(path: str) -> str:
    """A file of patterns. Raises OSError, also for what could hold us up: a pipe, a device, a link in the tree (git
    follows none either), and more than anyone writes."""
    link = os.O_NOFOLLOW if os.path.basename(path) == GITIGNORE else 0
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | link), "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if found.st_size > MOST_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return stream.read(MOST_BYTES).decode("utf-8", "surrogateescape")
