"""Hunks as a unified diff that `git apply` and `patch` take, byte for byte.

Knows nothing of terminals or files. Invariant: where the file's lines end in LF or CRLF bytes, the lines of the patch
are the very bytes of the file; elsewhere (UTF-16, lone CR) no patch program could apply one, and it is text to read.
"""

import io
import os
from collections.abc import Sequence

from unidiff.patch import PatchSet
from unidiff.errors import UnidiffParseError

from app.editing.diff import DiffLine, Hunk
from app.editing.document import Document
from app.errors import UnencodableError
from app.paths import shown

_NO_NEWLINE = b"\\ No newline at end of file\n"
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def patch_bytes(document: Document, hunks: Sequence[Hunk]) -> bytes:
    """The unified diff of these hunks, headers with `a/` and `b/` included; empty without hunks."""
    if not hunks:
        return b""
    name = _relative(document.name)
    pieces = [b"--- ", _quoted("a/" + name), b"\n+++ ", _quoted("b/" + name), b"\n"]
    exact = document.codec.line_ends_are_bytes and document.newline != "cr"
    shift = 0  # the new file holds these hunks only, so their new starts count only each other
    for hunk in sorted(hunks, key=lambda hunk: hunk.index):
        # As unified diffs count: with no lines on one side, the line before stands for the place.
        new_start = hunk.old_start + shift + (not hunk.old_lines) - (not hunk.new_lines)
        shift += hunk.new_lines - hunk.old_lines
        header = f"@@ -{hunk.old_start},{hunk.old_lines} +{new_start},{hunk.new_lines} @@ {shown(hunk.header)}"
        pieces += [header.rstrip().encode(), b"\n"]
        for line in hunk.lines:
            pieces += _line(line, exact)
    patch = b"".join(pieces)
    if exact:
        _require_readable(patch, hunks, document)
    return patch


def _line(line: DiffLine, exact: bool) -> list[bytes]:
    body = line.raw if exact else line.text.encode("utf-8", "surrogateescape") + (b"\n" if line.ending else b"")
    return [line.kind.encode(), body] if body.endswith(b"\n") else [line.kind.encode(), body, b"\n", _NO_NEWLINE]


def _relative(name: str) -> str:
    """The path as a patch is applied from the current folder; outside of it, without its leading slashes."""
    if not os.path.isabs(name):
        return os.path.normpath(name)
    inside = os.path.relpath(name)
    return name.lstrip("/") if inside.startswith("..") else inside


def _quoted(name: str) -> bytes:
    """A name as git writes it: in C quotes where it has odd characters, with a tab after it where it has a space."""
    raw = os.fsencode(name)
    if all(byte >= 0x20 and byte not in b'"\\\x7f' for byte in raw):
        return raw + (b"\t" if b" " in raw else b"")
    return b'"' + b"".join(_escaped(byte) for byte in raw) + b'"'


def _escaped(byte: int) -> bytes:
    char = chr(byte)
    if char in _ESCAPES:
        return _ESCAPES[char].encode()
    return char.encode("latin-1") if 0x20 <= byte < 0x7F else f"\\{byte:03o}".encode()


def _require_readable(patch: bytes, hunks: Sequence[Hunk], document: Document) -> None:
    """Our own promise, checked: another parser finds the same hunks in it."""
    try:
        # latin-1 keeps bytes apart; only LF may end a line of a patch.
        files = PatchSet(io.StringIO(patch.decode("latin-1"), newline="\n"))
        found = [(hunk.source_start, hunk.source_length, hunk.target_length) for file in files for hunk in file]
    except UnidiffParseError as error:
        raise UnencodableError(f"The diff of {shown(document.name)} cannot be written as a patch: {error}.") from error
    if found != [(hunk.old_start, hunk.old_lines, hunk.new_lines) for hunk in sorted(hunks, key=lambda h: h.index)]:
        raise UnencodableError(f"The diff of {shown(document.name)} cannot be written as a patch.")
