"""A patch of anybody's -> hunks of the files it names, to be reviewed like our own.

Paths come from a stranger: they are looked up inside one folder and never outside of it. Knows nothing of decisions or
writing. Invariant: a hunk is given only where every line it expects stands in the file, byte for byte, at the place it
names or, failing that, at the one other place there is; anything else is a conflict in words.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path, PurePosixPath

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from app.editing.alignment import align
from app.editing.diff import Change, Hunk, hunk_of, number
from app.editing.document import Document, open_document
from app.editing.encoding import SourceLine, split_lines
from app.editing.patch import is_exact, sides
from app.errors import AppError, UsageError
from app.paths import shown

_ESCAPED = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')
_LETTERS = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))
_RANGES = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NOWHERE = "/dev/null"

_Line = tuple[str, bytes]
"""Kind and value of a hunk's line, as unidiff has them."""


@dataclass(frozen=True)
class PatchedText:
    """What a patch would do to one file."""

    name: str
    """As the patch has it; print it through `paths.shown`."""
    document: Document | None
    """None where the file cannot be edited; `conflicts` says why."""
    hunks: tuple[Hunk, ...]
    conflicts: tuple[str, ...]
    """A sentence for each hunk that does not fit, or one for the whole file."""


def read_patch(data: bytes, root: Path) -> tuple[PatchedText, ...]:
    """The files of a unified diff, found under `root`, and what of it fits them.

    Raises UsageError for bytes that are no patch, and for a patch with a path that leaves `root`.
    """
    try:
        # Latin-1 stands for bytes: every byte is one character. StringIO, unlike str.splitlines, ends lines at LF only.
        plain = _plain_headers(data)
        files = PatchSet(StringIO(plain.decode("latin-1"), newline="\n"))
    except UnidiffParseError as error:
        raise UsageError(f"This is no patch that can be read: {_one_line(str(error))}.") from error
    if not files:
        raise UsageError("There is no change to any file in this patch.")
    # Before any file is opened: a patch that reaches outside is not to be trusted in its other parts either.
    names = [_name(file) for file in files]
    places = [_inside(root, name) for name in names]
    if len(set(places)) < len(places):
        raise UsageError("The patch names a file twice.")
    converted = plain != data
    return tuple(_patched(file, name, place, converted) for file, name, place in zip(files, names, places, strict=True))


def _plain_headers(data: bytes) -> bytes:
    """The patch without the carriage returns that end lines of its headers; lines of content stay as they are."""
    if b"\r" not in data:
        return data
    lines = []
    left = [0, 0]  # lines of the hunk that are still to come: old, new
    for line in data.split(b"\n"):
        if left == [0, 0]:
            line = line.removesuffix(b"\r")
            found = _RANGES.match(line)
            left = [0, 0] if found is None else [int(found[1] or 1), int(found[2] or 1)]
        elif line[:1] != b"\\":
            left = [max(0, left[0] - (line[:1] != b"+")), max(0, left[1] - (line[:1] != b"-"))]
        lines.append(line)
    return b"\n".join(lines)


def _one_line(text: str) -> str:
    return shown(text.partition("\n")[0][:200]).rstrip(".")


def _name(file: PatchedFile) -> str:
    source, target = _unquoted(file.source_file), _unquoted(file.target_file)
    if source.startswith("a/") and (target.startswith("b/") or target == _NOWHERE):
        source = source[2:]
    if target.startswith("b/") and (_unquoted(file.source_file).startswith("a/") or source == _NOWHERE):
        target = target[2:]
    return source if target == _NOWHERE else target


def _unquoted(name: str) -> str:
    """The name in a header, without git's C-style quoting."""
    raw = name.encode("latin-1")
    if len(raw) >= 2 and raw.startswith(b'"') and raw.endswith(b'"'):
        raw = _ESCAPED.sub(lambda match: bytes([_unescaped(match[1])]), raw[1:-1])
    return os.fsdecode(raw)


def _unescaped(sign: bytes) -> int:
    return int(sign, 8) & 0xFF if len(sign) == 3 else _LETTERS[sign[0]]


def _inside(root: Path, name: str) -> Path:
    """The file of that name under `root`, links followed. Raises UsageError where it would lie outside."""
    if not name:
        raise UsageError("The patch names a file without a name; nothing was read.")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise UsageError(f"The patch names {shown(name)}, which may lie outside of this folder; nothing was read.")
    top = Path(os.path.realpath(root))
    place = Path(os.path.realpath(top / path))
    if not place.is_relative_to(top):
        raise UsageError(f"{shown(name)} leads outside of this folder through a link; nothing was read.")
    return place


def _patched(file: PatchedFile, name: str, place: Path, converted: bool) -> PatchedText:
    """`converted`: the patch's headers had other line ends than a patch has; lines of content may have them as well."""

    def refused(sentence: str) -> PatchedText:
        return PatchedText(name, None, (), (sentence,))

    said = shown(name)
    if file.is_added_file or file.is_removed_file:
        return refused(f"{said} would be {'made' if file.is_added_file else 'removed'}; only changes can be reviewed.")
    if file.is_rename:
        return refused(f"{said} would be renamed; only changes can be reviewed.")
    if file.is_binary_file or not file:
        return refused(f"{said} has no lines that change in this patch.")
    try:
        document = open_document(place)
    except AppError as error:
        return refused(str(error))
    if not is_exact(document):
        return refused(f"{said} is {document.codec.label}, in which a patch has no lines of its own.")
    hunks: list[Hunk] = []
    conflicts: list[str] = []
    if any(line.startswith("new mode ") for line in file.patch_info or ()):
        conflicts.append(f"{said} would get another mode; only changes of lines can be reviewed.")
    for count, part in enumerate(file, 1):
        start = part.source_start - 1 if part.source_length else part.source_start
        floor = hunks[-1].old_end if hunks else 0
        lines = [(line.line_type, line.value.encode("latin-1")) for line in part]
        tries = [_fitted(document, start, *sides(form), floor) for form in _forms(document, lines, converted)]
        hunk = next((found for found in tries if not isinstance(found, str)), tries[0])
        if isinstance(hunk, str):
            conflicts.append(f"Hunk {count} of {said} does not fit: {hunk}.")
        elif hunk is not None:
            hunks.append(hunk)
    return PatchedText(name, document, number(hunks), tuple(conflicts))


def _forms(document: Document, lines: Sequence[_Line], converted: bool) -> Sequence[Sequence[_Line]]:
    """The hunk's lines as they may be meant: a carriage return at their ends is the file's own, or the patch's."""
    if not converted or not all(value.removesuffix(b"\n").endswith(b"\r") for kind, value in lines if kind != "\\"):
        return (lines,)
    bare = [(kind, value.removesuffix(b"\n").removesuffix(b"\r") + value[-1:].strip(b"\r")) for kind, value in lines]
    if b"\r" not in document.data:
        return (bare,)
    # A last line without an end has got one of the patch's, too.
    ends = [*(kind == "\\" for kind, _ in lines[1:]), False]
    unended = [other if is_end else line for line, other, is_end in zip(lines, bare, ends, strict=True)]
    return (lines, unended, bare)


def _fitted(
    document: Document, start: int, before: Sequence[bytes], after: Sequence[bytes], floor: int
) -> Hunk | str | None:
    """The hunk where it fits, not above line `floor`; None where it changes nothing; else why it does not fit."""
    # Where carriage returns end the document's lines, a patch sees one line: compare what a patch sees.
    if document.newline == "cr":
        if (start, list(before)) != (0, [document.data]):
            return "the file is not what it was made from"
        old = document.source_lines
        new = split_lines(b"".join(after), document.codec) if any(after) else ()
        return _changed(document, 0, old, new)
    lines = [line.raw for line in document.source_lines]
    size = len(before)
    if start < floor or lines[start : start + size] != list(before) or start > len(lines):
        places = [at for at in range(floor, len(lines) - size + 1) if lines[at : at + size] == list(before)]
        if not size or not places:
            return f"line {start + 1} and those around it are not what it expects"
        if len(places) > 1:
            return f"it is not at line {start + 1}, and fits in {len(places)} places"
        start = places[0]
    try:
        new = tuple(_line(document, raw, first=not start and not at) for at, raw in enumerate(after))
    except UnicodeError:
        return f"it adds bytes that are no {document.codec.label} text"
    if any(not line.ending for line in new[:-1]) or (new and not new[-1].ending and start + size < len(lines)):
        return "it would join two lines"
    if len(after) == 0 and size == len(lines):
        return "it would leave nothing of the file"
    return _changed(document, start, document.source_lines[start : start + size], new)


def _line(document: Document, raw: bytes, *, first: bool) -> SourceLine:
    body = raw.removeprefix(document.codec.bom) if first else raw
    text = document.codec.decode(body)
    for ending in ("\r\n", "\n"):
        if text.endswith(ending):
            return SourceLine(text.removesuffix(ending), ending, raw)
    return SourceLine(text, "", raw)


def _changed(document: Document, start: int, old: Sequence[SourceLine], new: Sequence[SourceLine]) -> Hunk | None:
    """The hunk over `old` that makes `new` of it; lines whose bytes are the same stay."""
    changes: list[Change] = []
    old_at = new_at = 0
    matches = [(m.old, m.new, m.length) for m in align([line.raw for line in old], [line.raw for line in new])]
    for old_next, new_next, length in [*matches, (len(old), len(new), 0)]:
        if (old_at, new_at) != (old_next, new_next):
            changes.append(Change(start + old_at, start + old_next, tuple(new[new_at:new_next])))
        old_at, new_at = old_next + length, new_next + length
    return hunk_of(document, changes, start, start + len(old)) if changes else None
