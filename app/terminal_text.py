"""Text as it may be shown on a terminal: escape sequences and invisible characters are spelled out, never sent.

Knows nothing of layout. Invariant: what is returned has no control character but tab and, in `diff_lines`, no line end;
and each character takes the same cells in every terminal, whatever stands beside it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

import click

from app.editing.diff import Hunk

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_RANGES = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0), range(0x1F3FB, 0x1F400))
_SHIFTING = frozenset(chr(point) for points in _RANGES for point in points)
"""Variation selectors and skin tones: some terminals make the character before them wider or narrower, some do not, and
what follows in the line would stand elsewhere than it was laid out."""


def without_colour(environment: Mapping[str, str]) -> bool:
    """The user wants no colours anywhere: NO_COLOR is set, and not empty (no-color.org)."""
    return bool(environment.get("NO_COLOR"))


def takes_colour(stream: TextIO) -> bool:
    """A terminal that knows colours, and a user who wants them."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not without_colour(os.environ)


def visible(text: str) -> str:
    """`text` with every character that a terminal would obey or hide, or that has no width of its own, as an escape."""
    return "".join(
        char if is_shown(char) else char.encode("unicode_escape", "surrogatepass").decode("ascii") for char in text
    )


def is_shown(char: str) -> bool:
    """True for a character that may be sent to a terminal as it is."""
    return char == "\t" or (char.isprintable() and char not in _SHIFTING)


def visible_lines(text: str) -> str:
    """As `visible`, line by line: line feeds stay."""
    return "\n".join(map(visible, text.split("\n")))


def diff_lines(hunks: Iterable[Hunk], colour: bool) -> Iterator[str]:
    """A diff for reading, line by line: hunk headers, then the lines with their signs."""
    for hunk in hunks:
        header = f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@ {visible(hunk.header)}"
        yield _styled(header.rstrip(), "@", colour)
        for line in hunk.lines:
            end = "" if line.ending else "  (no newline at end of file)"
            yield _styled(line.kind + visible(line.text) + end, line.kind, colour)


def _styled(text: str, kind: str, colour: bool) -> str:
    return click.style(text, fg=_COLOURS[kind]) if colour and kind in _COLOURS else text
