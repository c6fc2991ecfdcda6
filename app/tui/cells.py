"""Text of a file or a reply as terminal cells: tabs as spaces, what a terminal would obey or hide spelled out.

Knows nothing of styles or widgets. Invariant: the shown text has printable characters only, and `starts` leads from a
character of the file to its first cell's character in the shown text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from app.terminal_text import visible

TAB = 4
"""Cells between tab stops."""


@dataclass(frozen=True)
class Shown:
    """One line as it is shown."""

    text: str
    """Printable characters only."""
    starts: Sequence[int]
    """For each character of the line, and for its end, where it starts in `text`."""


def shown_line(line: str) -> Shown:
    """A line without its end, as it is shown."""
    if line.isascii() and line.isprintable():
        return Shown(line, range(len(line) + 1))
    parts: list[str] = []
    starts: list[int] = []
    at = cells = 0
    for char in line:
        starts.append(at)
        part = " " * (TAB - cells % TAB) if char == "\t" else visible(char)
        parts.append(part)
        at += len(part)
        cells += len(part) if part.isascii() else cell_len(part)
    starts.append(at)
    return Shown("".join(parts), starts)
