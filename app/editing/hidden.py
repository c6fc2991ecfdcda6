"""Characters that a change adds and that nobody sees, or that make text read in another order than it is.

Bidirectional controls can make code look like other code; zero-width ones hide in names. Knows nothing of how they are
shown. Invariant: a character that the replaced lines have as often is never reported.
"""

import unicodedata
from collections import Counter
from dataclasses import dataclass

from app.editing.diff import Hunk


@dataclass(frozen=True)
class HiddenCharacter:
    """One such character in an added line."""

    position: int
    """Of the line in `hunk.lines`."""
    column: int
    """0-based, in characters."""
    name: str
    """As Unicode calls it, with its number."""


_BLANKS = {"\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u2028", "\u2029", "\u3164", "\uffa0"}
"""Letters and marks that have no ink, and separators that editors break lines at."""


def is_hidden(char: str) -> bool:
    """True for format characters (bidirectional controls, zero-width ones, tags), controls, and fillers without ink."""
    return char != "\t" and (unicodedata.category(char) in ("Cf", "Cc") or char in _BLANKS)


def added_hidden(hunk: Hunk) -> tuple[HiddenCharacter, ...]:
    """Those in the hunk's added lines, beyond as many of a kind as its removed lines have."""
    known = Counter(char for line in hunk.lines if line.kind == "-" for char in line.text if is_hidden(char))
    found: list[HiddenCharacter] = []
    for position, line in enumerate(hunk.lines):
        if line.kind != "+" or (line.text.isascii() and line.text.isprintable()):
            continue
        for column, char in enumerate(line.text):
            if not is_hidden(char):
                continue
            if known[char]:
                known[char] -= 1
            else:
                found.append(HiddenCharacter(position, column, _name(char)))
    return tuple(found)


def _name(char: str) -> str:
    number = f"U+{ord(char):04X}"
    name = unicodedata.name(char, "")
    return f"{name} ({number})" if name else number
