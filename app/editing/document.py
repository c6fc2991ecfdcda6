"""A file as it was read, once: its bytes are the truth, its lines are a view.

Knows nothing of models, diffs or writing. Invariant: `b"".join(line.raw for line in document.source_lines)` is
`document.data`, byte for byte, whatever the newlines, marks and encodings.
"""

import errno
import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from app.editing.encoding import SourceLine, TextCodec, detect, split_lines
from app.editing.filesystem import NotRegularError, Snapshot, read_snapshot
from app.errors import (
    FileEmptyError,
    FileHardLinkedError,
    FileMissingError,
    FileTooLongError,
    FileUnreadableError,
    FileUnwritableError,
    NotAFileError,
)
from app.paths import shown

MOST_BYTES = 16 << 20
"""No context window holds more; refusing early keeps a mistaken path from filling memory."""


@dataclass(frozen=True)
class Document:
    """One opened file, or text from a pipe."""

    name: str
    """The path as the user gave it, or the name of what came through a pipe; print it through `paths.shown`."""
    target: Path | None
    """The file itself, links resolved; None for text from a pipe, which can never be applied."""
    snapshot: Snapshot
    """Bytes, mode, owner, link count, identity, extended attributes. Zeros but for the bytes for text from a pipe."""
    codec: TextCodec
    source_lines: tuple[SourceLine, ...]
    """At least one."""

    @property
    def data(self) -> bytes:
        """The bytes as read."""
        return self.snapshot.data

    @property
    def sha256(self) -> str:
        """Hex digest of the bytes as read."""
        return self.snapshot.sha256

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Decoded lines without their ends."""
        return tuple(line.text for line in self.source_lines)

    @property
    def final_newline(self) -> bool:
        """True when the last line has a line end."""
        return bool(self.source_lines[-1].ending)

    @cached_property
    def has_returns_as_data(self) -> bool:
        """True when a line ends in a carriage return that is no part of its line end."""
        return any(line.endswith("\r") for line in self.lines)

    @cached_property
    def text(self) -> str:
        """What the model sees: the lines joined with LF, and a final LF where the file has a final newline."""
        return "\n".join(self.lines) + ("\n" if self.final_newline else "")

    @cached_property
    def newline(self) -> str:
        """lf, crlf, cr, mixed, or none (one line without an end)."""
        found = {line.ending for line in self.source_lines} - {""}
        if len(found) > 1:
            return "mixed"
        return {"\n": "lf", "\r\n": "crlf", "\r": "cr", "": "none"}[found.pop() if found else ""]


def open_document(path: str | os.PathLike[str], encoding: str | None = None) -> Document:
    """Read a file once. Links are followed; the name is taken literally (no patterns).

    Raises, each with its own sentence: FileMissingError, NotAFileError, FileUnreadableError, FileEmptyError,
    FileBinaryError, FileUndecodableError, FileTooLongError (exit 3); UsageError for an unknown `encoding` (exit 2).
    """
    name = os.fspath(path)
    if not name:
        raise FileMissingError("The file name is empty.")
    target = resolve(name)
    said = shown(name)
    try:
        # O_NONBLOCK: opening a pipe must not wait for its writer.
        fd = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise FileMissingError(f"{said} does not exist.") from error
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise NotAFileError(f"{said} is not a regular file.") from error
        raise FileUnreadableError(f"{said} cannot be read: {error.strerror}.") from error
    try:
        kind = os.fstat(fd).st_mode
        if stat.S_ISDIR(kind):
            raise NotAFileError(f"{said} is a folder; name a file in it.")
        snapshot = read_snapshot(fd, MOST_BYTES)
    except NotRegularError as error:
        raise NotAFileError(f"{said} is not a regular file.") from error
    except OSError as error:
        raise FileUnreadableError(f"{said} cannot be read: {error.strerror}.") from error
    finally:
        os.close(fd)
    return _document(name, target, snapshot, encoding)


def open_bytes(data: bytes, name: str, encoding: str | None = None) -> Document:
    """Text that came through a pipe (filter mode); `name` stands for it in sentences and names its language.

    Raises FileEmptyError, FileBinaryError, FileUndecodableError, FileTooLongError, UsageError.
    """
    return _document(name, None, Snapshot(data, 0, 0, 0, 1, 0, 0), encoding)


def reparse(document: Document, snapshot: Snapshot) -> Document:
    """The same file in a newer state, read in the encoding of `document`. Raises as `open_document` does."""
    return _document(document.name, document.target, snapshot, document.codec.name)


def require_replaceable(document: Document, *, break_links: bool = False) -> None:
    """Refuse, before a model runs, a file that could not be replaced afterwards.

    Raises FileUnwritableError (the file, its folder, or text from a pipe), FileHardLinkedError unless `break_links`.
    """
    said = shown(document.name)
    target = document.target
    if target is None:
        raise FileUnwritableError(f"{said} came through a pipe, so there is no file to write.")
    if document.snapshot.nlink > 1 and not break_links:
        raise FileHardLinkedError(
            f"{said} has {document.snapshot.nlink} names (hard links); replacing it would part it from the others. "
            "Edit a copy, or take the diff (--patch) and apply it by hand."
        )
    if not os.access(target, os.W_OK):
        raise FileUnwritableError(f"{said} is not writable for you.")
    folder = target.parent
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise FileUnwritableError(f"The folder {shown(folder)} is not writable, so {said} cannot be replaced safely.")
    if _sticky_for_us(folder, document.snapshot):
        raise FileUnwritableError(
            f"{said} belongs to another user in a folder with the sticky bit, so it cannot be replaced safely."
        )


def resolve(name: str) -> Path:
    """The file a path leads to, links followed. Raises FileMissingError, NotAFileError or FileUnreadableError."""
    said = shown(name)
    try:
        return Path(os.path.realpath(name, strict=True))
    except FileNotFoundError as error:
        if os.path.islink(name):
            raise FileMissingError(f"{said} is a link to {shown(os.readlink(name))}, which does not exist.") from error
        raise FileMissingError(f"{said} does not exist.") from error
    except NotADirectoryError as error:
        raise FileMissingError(f"{said} does not exist: a part of the path is not a folder.") from error
    except PermissionError as error:
        raise FileUnreadableError(f"{said} cannot be read: a folder on the way to it is closed to you.") from error
    except OSError as error:
        raise NotAFileError(f"{said} leads to no file: {error.strerror}.") from error
    except ValueError as error:
        raise FileMissingError(f"{said} is not a possible file name.") from error


def _document(name: str, target: Path | None, snapshot: Snapshot, encoding: str | None) -> Document:
    said = shown(name)
    data = snapshot.data
    if not data:
        raise FileEmptyError(f"{said} is empty; there is nothing to edit.")
    if len(data) > MOST_BYTES:
        raise FileTooLongError(f"{said} has more than {MOST_BYTES >> 20} MiB, far beyond any model's context.")
    codec = detect(data, encoding, said)
    lines = split_lines(data, codec)
    if not lines:
        raise FileEmptyError(f"{said} has nothing but a byte order mark; there is nothing to edit.")
    return Document(name, target, snapshot, codec, lines)


def _sticky_for_us(folder: Path, snapshot: Snapshot) -> bool:
    """True when the folder lets only owners replace files, and we own neither the file nor the folder."""
    found = folder.stat()
    return bool(found.st_mode & stat.S_ISVTX) and os.geteuid() not in (0, snapshot.uid, found.st_uid)
