"""A model's text (LF newlines) against the document it was made from -> the new file, line by line in bytes.

Knows nothing of hunks or of how the text was produced. Invariant: a line that the text did not change is the very
bytes of the source; the final newline and the byte order mark are as in the source; everything else in the new file
decodes to exactly what the text says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import is_

from app.editing.alignment import Match, align, tidy
from app.editing.document import Document
from app.editing.encoding import SourceLine
from app.errors import ReplyEmptyError, UnencodableError
from app.paths import shown


@dataclass(frozen=True)
class Result:
    """The whole new file, as if every change were accepted."""

    document: Document
    lines: tuple[SourceLine, ...]
    """The new file's lines; `raw` has line ends, and the mark on the first."""
    matches: tuple[Match, ...]
    """Runs of lines whose bytes are the same in both, in order."""

    @cached_property
    def data(self) -> bytes:
        """The new file's bytes."""
        return b"".join(line.raw for line in self.lines)


def result_lines(document: Document, text: str) -> list[str]:
    """The lines of a reply: LF ends them, and a CR before it belongs to it unless lines of the source end in a CR.

    A mark at the start and blank lines that would only stand for a final newline the source lacks are dropped.
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    lines = [result_line(document, line, first=not index) for index, line in enumerate(lines)]
    if not document.final_newline:
        while lines and not lines[-1]:
            lines.pop()
    return lines


def result_line(document: Document, line: str, *, first: bool) -> str:
    """One line of a reply as the file has it; `first`: it opens the file."""
    if not document.has_returns_as_data:
        line = line.removesuffix("\r")
    return line.removeprefix("\ufeff") if first and not document.lines[0].startswith("\ufeff") else line


def make_result(
    document: Document, text: str, locked: tuple[int, int] = (0, 0), pins: Sequence[tuple[int, int]] = ()
) -> Result:
    """Align the text with the source and give every line its bytes.

    `locked`: how many lines at the file's start and at its end stand outside what was edited. The text has them
    unchanged, and each is paired with itself, never with an equal line inside. `pins`: ascending (old, new) positions
    between lines over which no line is paired with one on the other side.

    Raises ReplyEmptyError for a text without lines, UnencodableError (line and character named) where the
    file's encoding lacks a character.
    """
    lines = result_lines(document, text)
    if not lines:
        raise ReplyEmptyError(f"The reply is empty, which would leave nothing of {shown(document.name)}.")
    return matched_result(document, lines, _aligned(document.lines, lines, *locked, pins))


def matched_result(document: Document, lines: Sequence[str], matches: Sequence[Match]) -> Result:
    """The result of at least one line when it is known which lines are the source's. Raises UnencodableError."""
    sources: list[SourceLine | None] = [None] * len(lines)
    for match in matches:
        sources[match.new : match.new + match.length] = document.source_lines[match.old : match.old + match.length]
    endings = _endings(document, sources)
    codec = document.codec
    made: list[SourceLine] = []
    marked = document.source_lines[0]
    for index, (line, source, ending) in enumerate(zip(lines, sources, endings, strict=True)):
        mark = codec.bom if index == 0 else b""
        if source is not None and 0 < index and source is not marked and (source.text, source.ending) == (line, ending):
            made.append(source)
        elif source is not None and source.ending == ending:
            # Only the first source line carries a mark, and only the first line of the new file may.
            body = source.raw.removeprefix(codec.bom) if source is marked else source.raw
            made.append(SourceLine(line, ending, mark + body))
        else:
            made.append(SourceLine(line, ending, mark + _encoded(document, line, ending, index + 1)))
    result = Result(document, tuple(made), tuple(_same_bytes(matches, document.source_lines, made)))
    _require_faithful(result)
    return result


def _aligned(
    old: Sequence[str], new: Sequence[str], head: int, tail: int, pins: Sequence[tuple[int, int]]
) -> list[Match]:
    matches = [Match(0, 0, head)]
    old_at, new_at = head, head
    for old_end, new_end in [*pins, (len(old) - tail, len(new) - tail)]:
        old_part, new_part = old[old_at:old_end], new[new_at:new_end]
        part = tidy(align(old_part, new_part), old_part, new_part)
        matches += [Match(old_at + match.old, new_at + match.new, match.length) for match in part]
        old_at, new_at = old_end, new_end
    matches.append(Match(old_at, new_at, tail))
    return [match for match in matches if match.length]


def _endings(document: Document, sources: Sequence[SourceLine | None]) -> list[str]:
    """The line end of every new line: its own where it is unchanged, else of the line before, else of the one after."""
    after = document.source_lines[0].ending or "\n"
    for source in reversed(sources):
        if source is not None and source.ending:
            after = source.ending
    before = ""
    endings: list[str] = []
    for source in sources:
        own = source.ending if source is not None else ""
        before = own or before or after
        endings.append(before)
    if not document.final_newline:
        endings[-1] = ""
    return endings


def _encoded(document: Document, line: str, ending: str, number: int) -> bytes:
    codec = document.codec
    if "\0" in line:
        raise UnencodableError(f"Line {number} of the result has a NUL character, which would make the file binary.")
    try:
        raw = codec.encode(line + ending)
        if codec.decode(raw) == line + ending:
            return raw
        lacking = next((char for char in line if not _survives(document, char)), line[:1])
    except UnicodeEncodeError as error:
        lacking = error.object[error.start]
    except UnicodeError:
        lacking = next((char for char in line if not _survives(document, char)), line[:1])
    raise UnencodableError(
        f"Line {number} of the result has the character {shown(lacking)!r} (U+{ord(lacking):04X}), which {codec.name}, "
        f"the encoding of {shown(document.name)}, does not have."
    )


def _survives(document: Document, char: str) -> bool:
    try:
        return document.codec.decode(document.codec.encode(char)) == char
    except UnicodeError:
        return False


def _same_bytes(matches: Sequence[Match], old: Sequence[SourceLine], new: Sequence[SourceLine]) -> list[Match]:
    """The matches without lines whose bytes differ after all (a mark or the final newline moved)."""
    runs: list[Match] = []
    for match in matches:
        ends = match.old + match.length, match.new + match.length
        if match.length and all(map(is_, old[match.old : ends[0]], new[match.new : ends[1]])):
            runs.append(match)
            continue
        joined = False
        for step in range(match.length):
            same = old[match.old + step].raw == new[match.new + step].raw
            if same and joined:
                runs[-1] = Match(runs[-1].old, runs[-1].new, runs[-1].length + 1)
            elif same:
                runs.append(Match(match.old + step, match.new + step, 1))
            joined = same
    return runs


def _require_faithful(result: Result) -> None:
    """Our own promise, checked: the new bytes decode to the lines we meant."""
    codec = result.document.codec
    try:
        said = codec.decode(result.data[len(codec.bom) :])
    except UnicodeError:
        said = None
    if said != "".join(line.text + line.ending for line in result.lines):
        raise UnencodableError(
            f"The result cannot be written in {codec.name}, the encoding of {shown(result.document.name)}, "
            "without changing other characters."
        )
