"""Bytes <-> characters <-> lines: the one module that converts between them.

Knows nothing of files or models. Invariant: a `TextCodec` is handed out only for bytes that it turns into text and back
without a change, as a whole and line by line; so unchanged lines may be carried over as bytes.
"""

import codecs
from dataclasses import dataclass

from app.errors import FileBinaryError, FileUndecodableError, UsageError

_BOMS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
_NEEDS_BOM = {"utf-16": ("utf-16-le", "utf-16-be"), "utf-32": ("utf-32-le", "utf-32-be")}
"""Names that leave the byte order to the mark."""


@dataclass(frozen=True)
class TextCodec:
    """How the bytes of one file stand for text."""

    name: str
    """Python's name of the encoding, without mark: utf-8, utf-16-le, cp932, ..."""
    bom: bytes = b""
    """The byte order mark that opens the file; empty without one."""

    @property
    def label(self) -> str:
        """The encoding as a person says it."""
        return f"{self.name} with BOM" if self.bom else self.name

    @property
    def line_ends_are_bytes(self) -> bool:
        """True when a line feed is the one byte 0x0A, so that tools working on bytes see the same lines."""
        return self.encode("\n") == b"\n"

    def encode(self, text: str) -> bytes:
        """`text` without a mark. Raises UnicodeEncodeError for a character the encoding lacks."""
        return text.encode(self.name)

    def decode(self, data: bytes) -> str:
        """`data` without its mark as text. Raises UnicodeError."""
        return data.decode(self.name)


@dataclass(frozen=True)
class SourceLine:
    """One line of a file."""

    text: str
    """Decoded, without its line end and without the byte order mark."""
    ending: str
    """LF, CRLF or CR; empty for a last line without one."""
    raw: bytes
    """Its bytes in the file, line end (and, on the first line, the mark) included."""


def detect(data: bytes, encoding: str | None, name: str) -> TextCodec:
    """The codec of a file's bytes: by `encoding` when given, else UTF-8, or UTF-16 with a mark.

    `name` stands for the file in sentences. Raises FileBinaryError (NUL bytes that are no UTF-16), FileUndecodableError
    (the sentence says where), UsageError (unknown encoding).
    """
    codec = _named_codec(data, encoding, name) if encoding is not None else _guessed_codec(data, name)
    body = data[len(codec.bom) :]
    try:
        text = codec.decode(body)
    except UnicodeDecodeError as error:
        at = len(codec.bom) + error.start
        line = data[:at].count(b"\n") + 1
        raise FileUndecodableError(
            f"{name} is not {codec.label} text: byte {at + 1} (line {line}) cannot be decoded; "
            "name its encoding with --encoding."
        ) from error
    except UnicodeError as error:  # codecs that give no position
        raise FileUndecodableError(
            f"{name} is not {codec.label} text ({error}); name its encoding with --encoding."
        ) from error
    if "\0" in text:
        raise FileBinaryError(f"{name} is binary: it has a NUL character on line {_line_of(text, text.index(chr(0)))}.")
    if not _survives(codec, text, body):
        raise FileUndecodableError(
            f"{name} does not survive decoding and encoding as {codec.label}, so it cannot be edited without changing "
            "other bytes; name another encoding with --encoding."
        )
    return codec


def split_lines(data: bytes, codec: TextCodec) -> tuple[SourceLine, ...]:
    """The lines of a file whose codec `detect` has found. Joining every `raw` gives `data` back.

    Only LF and CRLF end lines, and a lone CR where the file has no LF; form feeds, U+2028 and the like are data.
    """
    text = codec.decode(data[len(codec.bom) :])
    lines: list[SourceLine] = []
    for line, ending in cut_lines(text):
        raw = codec.encode(line + ending)
        lines.append(SourceLine(line, ending, raw if lines else codec.bom + raw))
    return tuple(lines)


def cut_lines(text: str) -> list[tuple[str, str]]:
    """(line, line end) pairs that join to `text`; the last line end may be empty, an empty last line is no line."""
    end = "\n" if "\n" in text else "\r"
    parts = text.split(end)
    pairs: list[tuple[str, str]] = []
    for part in parts[:-1]:
        if end == "\n" and part.endswith("\r"):
            pairs.append((part[:-1], "\r\n"))
        else:
            pairs.append((part, end))
    if parts[-1]:
        pairs.append((parts[-1], ""))
    return pairs


def _survives(codec: TextCodec, text: str, body: bytes) -> bool:
    """True when the text encodes to the same bytes, line by line too (codecs with shift states may not)."""
    try:
        return b"".join(codec.encode(line + ending) for line, ending in cut_lines(text)) == body
    except UnicodeError:
        return False


def _guessed_codec(data: bytes, name: str) -> TextCodec:
    for guess in ("utf-16-le", "utf-16-be"):
        if data.startswith(_BOMS[guess]):
            return TextCodec(guess, _BOMS[guess])
    if b"\0" in data:
        at = data.index(b"\0")
        raise FileBinaryError(f"{name} is binary: byte {at + 1} is NUL.")
    return TextCodec("utf-8", codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b"")


def _named_codec(data: bytes, encoding: str, name: str) -> TextCodec:
    try:
        found = codecs.lookup(encoding)
        "".encode(encoding)  # refuses what is no text encoding (base64, rot13)
    except (LookupError, UnicodeError, ValueError) as error:
        raise UsageError(f"--encoding {encoding!r} is no text encoding that Python knows.") from error
    plain = "utf-8" if found.name == "utf-8-sig" else found.name
    for candidate in _NEEDS_BOM.get(plain, ()):
        if data.startswith(_BOMS[candidate]):
            return TextCodec(candidate, _BOMS[candidate])
    if plain in _NEEDS_BOM:
        raise FileUndecodableError(
            f"{name} has no byte order mark; say --encoding {plain}-le or --encoding {plain}-be."
        )
    bom = _BOMS.get(plain, b"")
    return TextCodec(plain, bom if bom and data.startswith(bom) else b"")


def _line_of(text: str, index: int) -> int:
    return text.count("\n", 0, index) + 1
