"""The part of a file an edit may change: from `--lines` or `--symbol` to line numbers, and the parts around it.

Works on decoded lines without line ends; knows nothing of tokens, prompts or documents. Invariant: `splice` leaves
every line outside the region as it is.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.editing.language import Language
from app.editing.symbols import Symbol, find_symbols
from app.errors import RegionError

LOCKED_LINES = 20
"""Most lines before a region that open the reply."""

_RANGE = re.compile(r"\s*(\d{1,9})\s*:\s*(\d{1,9})\s*")
_MOST_CANDIDATES = 12


@dataclass(frozen=True)
class Region:
    """Lines that may change."""

    first: int
    """1-based first line."""
    last: int
    """1-based last line, at least `first`."""


@dataclass(frozen=True)
class Anchor:
    """What follows a region, as far as it takes to be unmistakable."""

    lines: tuple[str, ...]
    """Non-blank lines; empty when no run of them is unique."""
    blank_lines: int
    """Blank lines of the file between the region and the anchor's first line; 0 without an anchor."""


def is_blank(line: str) -> bool:
    """True for a line of white space only."""
    return not line.strip()


def region_of_lines(option: str, line_count: int) -> Region:
    """The region `A:B`, 1-based and inclusive.

    Raises:
        RegionError: not of that form, backwards, or beyond the file's `line_count` lines.
    """
    match = _RANGE.fullmatch(option)
    if match is None:
        raise RegionError(f"--lines takes A:B, two line numbers counted from 1, and got {option!r}.")
    first, last = int(match[1]), int(match[2])
    if not 1 <= first <= last:
        raise RegionError(f"--lines {first}:{last} is no range: it needs 1 <= A <= B.")
    if last > line_count:
        raise RegionError(
            f"--lines {first}:{last} is out of range: the file has {line_count} line{'s' * (line_count != 1)}."
        )
    return Region(first, last)


def region_of_symbol(name: str, lines: Sequence[str], language: Language) -> Region:
    """The lines of the one definition called `name`; the last parts of a dotted name are enough.

    Raises:
        RegionError: no definitions known for the language, no such name, or several.
    """
    symbols = find_symbols(lines, language)
    if symbols is None:
        raise RegionError(f"--symbol does not know definitions in {language.name} files; use --lines A:B.")
    exact = [symbol for symbol in symbols if symbol.name == name]
    found = exact or [symbol for symbol in symbols if symbol.name.endswith(f".{name}")]
    if len(found) == 1:
        return Region(found[0].first, found[0].last)
    if found:
        raise RegionError(f"--symbol {name} is ambiguous: {_listed(found)}. Use a longer name or --lines A:B.")
    if not symbols:
        raise RegionError(f"--symbol {name} is unknown: the file has no definitions; use --lines A:B.")
    names = list(dict.fromkeys(symbol.name for symbol in symbols))
    close = difflib.get_close_matches(name, names, n=_MOST_CANDIDATES, cutoff=0.6)
    shown = [symbol for symbol in symbols if symbol.name in close] or list(symbols)
    raise RegionError(f"--symbol {name} is unknown; the file has {_listed(shown)}.")


def _listed(symbols: Sequence[Symbol]) -> str:
    shown = [f"{symbol.name} (lines {symbol.first}:{symbol.last})" for symbol in symbols[:_MOST_CANDIDATES]]
    more = len(symbols) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def locked_prefix(region: Region, lines: Sequence[str], symbols: Sequence[Symbol]) -> tuple[str, ...]:
    """The lines that open the reply: from the start of the region's enclosing symbol, at most the last 20.

    The enclosing symbol is the innermost one that starts before the region and holds all of it; without one it is the
    file, so that a definition at the top level is opened by what precedes it, too.
    """
    starts = [symbol.first for symbol in symbols if symbol.first < region.first and region.last <= symbol.last]
    start = max([*starts, 1, region.first - LOCKED_LINES]) if starts else max(1, region.first - LOCKED_LINES)
    return tuple(lines[start - 1 : region.first - 1])


def end_anchor(region: Region, lines: Sequence[str]) -> Anchor:
    """The shortest run of non-blank lines that follow the region, from the first, that occurs nowhere else in the file.

    Blank lines do not count: runs are compared over the file's non-blank lines.
    """
    after = next((at for at in range(region.last, len(lines)) if not is_blank(lines[at])), None)
    if after is None:
        return Anchor((), 0)
    solid = [line for line in lines if not is_blank(line)]
    start = sum(not is_blank(line) for line in lines[: region.last])
    rivals = [at for at, line in enumerate(solid) if line == solid[start] and at != start]
    length = 1
    while rivals:
        if start + length == len(solid):
            return Anchor((), 0)
        following = solid[start + length]
        rivals = [at for at in rivals if at + length < len(solid) and solid[at + length] == following]
        length += 1
    return Anchor(tuple(solid[start : start + length]), after - region.last)


def splice(region: Region, lines: Sequence[str], replacement: Sequence[str]) -> list[str]:
    """The whole file with the region's lines replaced."""
    return [*lines[: region.first - 1], *replacement, *lines[region.last :]]
