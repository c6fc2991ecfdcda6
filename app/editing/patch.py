"""Hunks as a unified diff, in bytes that `git apply` and `patch` take.

Knows nothing of decisions or writing. Invariant: a patch of an `is_exact` document, parsed back by another parser and
applied to the source, gives the very bytes that joining the hunks gives; this is checked before anyone sees it.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from app.editing.diff import Hunk, join
from app.editing.document import Document
from app.errors import PatchCheckError

_NO_NEWLINE = b"\\ No newline at end of file\n"
_ESCAPES = {0x07: b"a", 0x08: b"b", 0x09: b"t", 0x0A: b"n", 0x0B: b"v", 0x0C: b"f", 0x0D: b"r", 0x22: b'"', 0x5C: b"\\"}


@dataclass(frozen=True)
class _Block:
    """A hunk in the lines that patch tools see."""

    old_start: int
    old_lines: int
    new_lines: int
    header: str
    lines: tuple[tuple[str, bytes], ...]


def patch_bytes(document: Document, hunks: Sequence[Hunk], name: str | None = None) -> bytes:
    """The unified diff of some hunks of the document; empty without any. `name` replaces the document's own.

    Raises PatchCheckError when the printed diff does not give the bytes it should; nothing of it may be used then.
    """
    hunks = sorted(hunks, key=lambda hunk: hunk.index)
    if not hunks:
        return b""
    exact = is_exact(document)
    if exact and document.newline == "cr":
        blocks = [_single_line_block(document, hunks)]
    else:
        blocks = [_block(hunk, exact) for hunk in hunks]
    header = _header(name if name is not None else patch_name(document))
    patch = header + _body(blocks, document.codec.name if exact else "utf-8")
    if exact and _applied(patch, document.data) != join(document, hunks):
        raise PatchCheckError("The diff does not give the bytes it should when it is applied; nothing was written.")
    return patch


def is_exact(document: Document) -> bool:
    """True when tools that work on bytes can apply the document's patches.

    False for encodings in which a line feed is not one byte (such as UTF-16): their patch is UTF-8 text, for reading.
    """
    return document.codec.line_ends_are_bytes and not any(b"\n" in line.raw[:-1] for line in document.source_lines)


def patch_name(document: Document) -> str:
    """The document's name in a diff: relative to the current folder where it lies in it, else to the folder both share
    (from where the diff then applies)."""
    name = os.path.normpath(document.name)
    if os.path.isabs(name):
        folder = os.getcwd()
        name = os.path.relpath(name, folder) if name.startswith(folder.rstrip("/") + "/") else name.lstrip("/")
    while name.startswith("../"):  # no patch program takes such a name
        name = name.removeprefix("../")
    return name


def _block(hunk: Hunk, exact: bool) -> _Block:
    lines = tuple(
        (line.kind, line.raw if exact else (line.text + ("\n" if line.ending else "")).encode("utf-8", "replace"))
        for line in hunk.lines
    )
    return _Block(hunk.old_start, hunk.old_lines, hunk.new_lines, hunk.header, lines)


def _single_line_block(document: Document, hunks: Sequence[Hunk]) -> _Block:
    """A file without line feeds is one line without an end to patch tools, whatever its carriage returns mean."""
    return _Block(1, 1, 1, "", (("-", document.data), ("+", join(document, hunks))))


def _header(name: str) -> bytes:
    parts = []
    for sign, side in ((b"---", "a/"), (b"+++", "b/")):
        quoted = _quoted(os.fsencode(side + name))
        # A tab ends a name that has spaces, as git does it.
        parts.append(sign + b" " + quoted + (b"\t" if b" " in quoted and not quoted.startswith(b'"') else b"") + b"\n")
    return b"".join(parts)


def _quoted(name: bytes) -> bytes:
    """git's C-style quoting, used only for names that need it."""
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in name):
        return name
    return b'"' + b"".join(_quoted_byte(byte) for byte in name) + b'"'


def _quoted_byte(byte: int) -> bytes:
    if byte in _ESCAPES:
        return b"\\" + _ESCAPES[byte]
    if 0x20 <= byte < 0x7F:
        return bytes([byte])
    return b"\\%03o" % byte


def _body(blocks: Sequence[_Block], encoding: str) -> bytes:
    out: list[bytes] = []
    moved = 0
    for block in blocks:
        out.append(_hunk_header(block, moved).encode(encoding, "replace") + b"\n")
        moved += block.new_lines - block.old_lines
        for kind, raw in block.lines:
            out.append(kind.encode("ascii") + raw)
            if not raw.endswith(b"\n"):
                out.append(b"\n" + _NO_NEWLINE)
    return b"".join(out)


def _hunk_header(block: _Block, moved: int) -> str:
    """`moved`: how many lines the hunks before this one have added."""
    first = (block.old_start - 1 if block.old_lines else block.old_start) + moved
    new_start = first + 1 if block.new_lines else first
    heading = "".join(char if char.isprintable() else " " for char in block.header).rstrip()
    old, new = _range(block.old_start, block.old_lines), _range(new_start, block.new_lines)
    return f"@@ -{old} +{new} @@" + (f" {heading}" if heading else "")


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"


def _applied(patch: bytes, source: bytes) -> bytes | None:
    """The patch, parsed back, applied to the source bytes; None where it does not fit them."""
    try:
        # Latin-1 stands for bytes: every byte is one character. StringIO, unlike str.splitlines, ends lines at LF only.
        parsed = PatchSet(StringIO(patch.decode("latin-1"), newline="\n"))
    except UnidiffParseError:
        return None
    if len(parsed) != 1:
        return None
    lines = source.split(b"\n")
    old = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    out: list[bytes] = []
    at = 0
    for hunk in parsed[0]:
        first = hunk.source_start - 1 if hunk.source_length else hunk.source_start
        out += old[at:first]
        before, after = sides([(line.line_type, line.value.encode("latin-1")) for line in hunk])
        if old[first : first + hunk.source_length] != before:
            return None
        out += after
        at = first + hunk.source_length
    return b"".join(out + old[at:])


def sides(lines: Sequence[tuple[str, bytes]]) -> tuple[list[bytes], list[bytes]]:
    """The old and the new lines of a parsed hunk, line ends included; a marker says which last line has none."""
    before: list[bytes] = []
    after: list[bytes] = []
    for index, (kind, value) in enumerate(lines):
        if kind == "\\":
            continue
        ends_file = index + 1 < len(lines) and lines[index + 1][0] == "\\"
        value = value.removesuffix(b"\n") if ends_file else value
        if kind != "+":
            before.append(value)
        if kind != "-":
            after.append(value)
    return before, after
