"""The files under a folder and which of them a few typed letters mean.

Knows nothing of screens or of what is in the files. Invariant: links to folders are never followed, what git or common
sense ignores is not walked into, and one call never lists more than it was asked for.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

MOST_FILES = 50_000
"""A picker over more would be of no use; the list says that it was cut."""


class IgnoreRules(Protocol):
    """Which entries of a folder are left out; `app.watch.ignore` has those of git and common sense."""

    def enter(self, folder: str) -> None:
        """The folder is about to be listed; its own rules count from now on."""

    def ignores(self, folder: str, name: str, is_folder: bool) -> bool:
        """True for an entry that is left out."""


def files_under(root: str, rules: IgnoreRules, most: int = MOST_FILES) -> Iterator[str]:
    """Paths of files relative to `root` (absolute), nearer ones first. A folder that cannot be read has none."""
    folders, count = [root], 0
    while folders:
        below: list[str] = []
        for folder in folders:
            rules.enter(folder)
            for entry in _entries(folder):
                is_folder = entry.is_dir(follow_symlinks=False)
                if rules.ignores(folder, entry.name, is_folder):
                    continue
                if is_folder:
                    below.append(entry.path)
                elif _is_file(entry):
                    yield os.path.relpath(entry.path, root)
                    count += 1
                    if count == most:
                        return
        folders = below


def best_matches(query: str, paths: Iterable[str], recent: Sequence[str] = (), most: int = 200) -> list[str]:
    """The paths that have the letters of every word of `query` in order, best first; recent ones lead among equals.

    Without a query: recent ones, then the others in their order. Case counts only where the query has capitals.
    """
    rank = {path: number for number, path in enumerate(recent)}
    words = query.split()
    ordered = dict.fromkeys([*recent, *paths])
    if not words:
        return list(ordered)[:most]
    scored: list[tuple[int, int, int, str]] = []
    for path in ordered:
        score = _score(words, path)
        if score is not None:
            scored.append((score, rank.get(path, len(rank)), len(path), path))
    return [path for *_, path in sorted(scored)[:most]]


def _score(words: Sequence[str], path: str) -> int | None:
    """Lower is better; None where a word's letters are not in the path in this order."""
    total = 0
    low = path.lower()
    for word in words:
        text = path if word != word.lower() else low
        score = _word_score(word, text)
        if score is None:
            return None
        total += score
    return total


def _word_score(word: str, text: str) -> int | None:
    """0: the name is the word; then the name's start, inside the name, inside the path, scattered letters."""
    start = text.rfind("/") + 1
    if text.startswith(word, start):
        return 0 if len(text) - start == len(word) else 1
    if text.find(word, start) >= 0:
        return 2
    if word in text:
        return 3
    spread = _spread(word, text, start)
    if spread is not None:
        return 4 + spread
    spread = _spread(word, text, 0)
    return None if spread is None else 100 + spread


def _spread(word: str, text: str, start: int) -> int | None:
    """How many letters lie between those of `word`, each taken as early as it comes; None where one is missing."""
    first = at = text.find(word[0], start)
    for letter in word:
        at = text.find(letter, at)
        if at < 0:
            return None
        at += 1
    return at - first - len(word)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []  # closed to us, or gone since it was listed: nothing in it can be opened anyway


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()  # a link to a file may be edited; it is resolved when it is opened
    except OSError:
        return False
