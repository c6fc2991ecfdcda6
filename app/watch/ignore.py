"""Which files and folders a watch leaves alone: its own list, then .gitignore files with git's own meaning.

Knows names and patterns; reads nothing but .gitignore files. Invariant: nothing below an ignored folder is looked at,
whatever patterns say of it, and no .gitignore can bring back what the own list leaves out.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.base import GitIgnorePatternError

from app.paths import shown

GITIGNORE = ".gitignore"

MOST_BYTES = 1 << 20
"""Larger files are not looked at: no edit of one fits a model's context."""

OWN_PATTERNS = (
    # version control
    *(".git", ".hg", ".svn", ".jj", ".bzr", "CVS", "_darcs"),
    # environments and caches
    *("node_modules/", ".venv/", "venv/", ".env/", "site-packages/", "__pycache__/", ".tox/", ".nox/", ".direnv/"),
    *(".mypy_cache/", ".ruff_cache/", ".pytest_cache/", ".hypothesis/", ".cache/", ".gradle/", ".terraform/"),
    *(".eggs/", "*.egg-info/", ".ipynb_checkpoints/", ".idea/", ".vs/"),
    # backups, and what editors and other tools write beside a file while they save it
    *("*~", "*.bak", "*.orig", "*.rej", "*.tmp", "*.temp", "*.part", "*.swp", "*.swo", "*.swx", ".*.sw[a-p]", "4913"),
    *(r"\#*#", ".#*", "*.un~", "*.kate-swp", ".~lock.*#", "*___jb_tmp___", "*___jb_old___", ".goutputstream-*"),
    *(".redraft-*.tmp", ".DS_Store"),
    # generated, and never worth an edit
    *("*.min.js", "*.min.css", "*.map", "*.lock", "package-lock.json", "*.pyc", "*.o", "*.a", "*.so"),
)


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
        self._own = GitIgnoreSpec.from_lines(OWN_PATTERNS)
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
        path = os.path.join(folder, name)
        slash = "/" if is_folder else ""
        if self._own.check_file(name + slash).include:
            return True
        for rules in self._chain(folder):
            said = rules.spec.check_file(os.path.relpath(path, rules.folder) + slash).include
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
            with open(path, encoding="utf-8", errors="surrogateescape") as stream:
                lines = stream.read().splitlines()
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
