"""Edits that wait for review: one file each, with everything a review needs and nothing that can go out of date.

    a line of JSON: path, instruction, model, statistics, warnings, hashes
    a line of JSON: where the lines of the new version end, and which of them are the old one's
    the bytes before, the bytes after

The patch is made from the bytes when it is asked for. Knows nothing of models or terminals, and never touches the
user's files. Invariant: a proposal that can be listed is whole (it is written under another name and renamed), and both
its versions are checked by hash before anyone sees them.
"""

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.editing.alignment import Match
from app.editing.diff import Hunk, make_hunks
from app.editing.document import Document, open_bytes, open_document, reparse
from app.editing.encoding import SourceLine
from app.editing.rebase import rebase
from app.editing.result import Result
from app.errors import ConflictError, FileError, ProposalError, StateError
from app.paths import shown
from app.private_files import sweep_private, write_private

KEPT_SECONDS = 14 * 86400
KEPT_BYTES = 200_000_000
_NAME = re.compile(r"(?P<id>[0-9a-f]{12})\.proposal")


class Standing(StrEnum):
    """What has become of the file since the proposal was made."""

    CURRENT = "current"
    """It is as it was."""
    REBASED = "rebased"
    """It changed, and every hunk still fits."""
    STALE = "stale"
    """It changed where the hunks go, is unreadable or is gone."""
    DONE = "done"
    """It already is what is proposed."""


@dataclass(frozen=True)
class StoredProposal:
    """What is known of a proposal without opening its versions."""

    id: str
    """Twelve hexadecimal digits, six from the path and six from base and instruction: the same work is stored once, and
    the proposals of a file are found by name."""
    path: str
    """Absolute, links resolved."""
    instruction: str
    model: str
    """Id of the model that made it."""
    created: float
    """Seconds since 1970."""
    base_sha256: str
    base_size: int
    new_sha256: str
    """Of the file with every hunk applied."""
    new_size: int
    encoding: str
    """Python's name, without mark."""
    hunks: int
    warnings: tuple[Mapping[str, Any], ...] = ()
    """As the machine interface has them."""
    stats: Mapping[str, Any] | None = None
    """As the machine interface has them."""


@dataclass(frozen=True)
class OpenedProposal:
    """A proposal for review."""

    stored: StoredProposal
    standing: Standing
    document: Document
    """The file as it was when the proposal was made. `apply_hunks` carries hunks over to a newer file by itself."""
    hunks: tuple[Hunk, ...]


class ProposalStore:
    """The proposals in one folder. Errors of any call are ProposalErrors."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._clock = clock

    def put(
        self,
        result: Result,
        instruction: str,
        model: str,
        *,
        hunks: int,
        warnings: tuple[Mapping[str, Any], ...] = (),
        stats: Mapping[str, Any] | None = None,
    ) -> StoredProposal:
        """Store an edit; older proposals for the same file are dropped. Durable when this returns."""
        document = result.document
        path = str(document.target)
        stored = StoredProposal(
            id=_id(path, document.sha256, instruction),
            path=path,
            instruction=instruction,
            model=model,
            created=self._clock(),
            base_sha256=document.sha256,
            base_size=len(document.data),
            new_sha256=hashlib.sha256(result.data).hexdigest(),
            new_size=len(result.data),
            encoding=document.codec.name,
            hunks=hunks,
            warnings=warnings,
            stats=stats,
        )
        self._write(stored, result)
        self.drop_for(path, but=stored.id)
        return stored

    def entries(self) -> list[StoredProposal]:
        """Every proposal, newest first. One that cannot be read is left out: it can be of no use."""
        found = [self._header(self.folder / match.group()) for match in self._names()]
        return sorted((stored for stored in found if stored is not None), key=lambda stored: -stored.created)

    def count(self) -> int:
        """How many proposals wait."""
        return len(self._names())

    def find(self, wanted: str) -> StoredProposal:
        """The proposal whose id starts with `wanted`, or the newest for the file of that path."""
        found = self.entries()
        by_id = [stored for stored in found if wanted and stored.id.startswith(wanted)]
        if len(by_id) == 1:
            return by_id[0]
        path = os.path.realpath(wanted)
        by_path = [stored for stored in found if stored.path == path]
        if by_path:
            return by_path[0]
        if by_id:
            raise ProposalError(f"{shown(wanted)} begins the ids of {len(by_id)} proposals; give more of it.")
        raise ProposalError(f"There is no proposal {shown(wanted)}; `redraft review --list` shows what there is.")

    def load(self, stored: StoredProposal) -> OpenedProposal:
        """Open a proposal for review, and see what has become of its file."""
        layout, base, new = self._versions(stored)
        try:
            now = open_document(stored.path, stored.encoding)
        except FileError:
            document = open_bytes(base, stored.path, stored.encoding)
            return OpenedProposal(stored, Standing.STALE, document, _hunks(stored, document, layout, new))
        document = reparse(now, replace(now.snapshot, data=base))
        hunks = _hunks(stored, document, layout, new)
        return OpenedProposal(stored, _standing(stored, document, hunks, now), document, hunks)

    def standing(self, stored: StoredProposal) -> Standing:
        """What `load` would say of the file, for a list."""
        return self.load(stored).standing

    def drop(self, proposal_id: str) -> None:
        """Remove a proposal: it was applied, rejected or replaced. One that is gone already is no error."""
        with self._errors("removed"):
            (self.folder / f"{proposal_id}.proposal").unlink(missing_ok=True)

    def drop_for(self, path: str, *, but: str = "") -> None:
        """Remove every proposal for a file, except one."""
        for match in self._names():
            if match["id"] == but or not match["id"].startswith(_path_part(path)):
                continue
            stored = self._header(self.folder / match.group())
            if stored is not None and stored.path == path:
                self.drop(stored.id)

    def expire(self) -> int:
        """Remove what is older than 14 days, the oldest beyond 200 MB, and what a killed writer left; how many went."""
        now, kept, gone = self._clock(), 0, 0
        for stored in self.entries():
            kept += stored.base_size + stored.new_size
            if now - stored.created > KEPT_SECONDS or kept > KEPT_BYTES:
                self.drop(stored.id)
                gone += 1
        self._sweep(now)
        return gone

    def _write(self, stored: StoredProposal, result: Result) -> None:
        layout = {
            "lines": [(len(line.raw), len(line.ending)) for line in result.lines],
            "matches": [(match.old, match.new, match.length) for match in result.matches],
        }
        head = "".join(json.dumps(part) + "\n" for part in (asdict(stored), layout)).encode("ascii")
        try:
            write_private(self.folder / f"{stored.id}.proposal", head + result.document.data + result.data)
        except StateError as error:
            raise ProposalError(f"The proposal for {shown(stored.path)} cannot be stored: {error}") from error

    def _names(self) -> list[re.Match[str]]:
        with self._errors("read"):
            try:
                names = os.listdir(self.folder)
            except FileNotFoundError:  # nothing was ever proposed
                names = []
        return [match for match in map(_NAME.fullmatch, names) if match]

    def _header(self, path: Path) -> StoredProposal | None:
        try:
            if not path.is_file():  # a pipe in its place would hold us up
                return None
            with path.open("rb") as file:
                fields = json.loads(file.readline())
            return StoredProposal(**{**fields, "warnings": tuple(fields["warnings"])})
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def _versions(self, stored: StoredProposal) -> tuple[Any, bytes, bytes]:
        """(layout of the new version, the bytes before, the bytes after), checked."""
        with self._errors("read"), (self.folder / f"{stored.id}.proposal").open("rb") as file:
            file.readline()
            line, base, new = file.readline(), file.read(stored.base_size), file.read(stored.new_size)
        hashes = (hashlib.sha256(base).hexdigest(), hashlib.sha256(new).hexdigest())
        if hashes != (stored.base_sha256, stored.new_sha256):
            raise ProposalError(_damaged(stored))
        try:
            return json.loads(line), base, new
        except (ValueError, RecursionError) as error:
            raise ProposalError(_damaged(stored)) from error

    def _sweep(self, now: float) -> None:
        """Remove what killed writers left, and old files that cannot be read."""
        sweep_private(self.folder)
        with self._errors("removed"):
            for name in os.listdir(self.folder) if self.folder.is_dir() else ():
                path = self.folder / name
                unread = _NAME.fullmatch(name) and self._header(path) is None
                if unread and now - path.lstat().st_mtime > KEPT_SECONDS and not path.is_dir():
                    path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ProposalError(
                f"The proposals in {shown(self.folder)} cannot be {done}: {error.strerror or error}."
            ) from error


def _id(path: str, base_sha256: str, instruction: str) -> str:
    said = "\0".join((base_sha256, instruction))
    return _path_part(path) + hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _path_part(path: str) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:6]


def _hunks(stored: StoredProposal, document: Document, layout: Any, new: bytes) -> tuple[Hunk, ...]:
    """The hunks as they were when the proposal was made."""
    lines: list[SourceLine] = []
    at = 0
    try:
        for size, ending in layout["lines"]:
            raw = new[at : at + size]
            at += size
            text = document.codec.decode(raw if lines else raw[len(document.codec.bom) :])
            cut = len(text) - ending
            lines.append(SourceLine(text[:cut], text[cut:], raw))
        result = Result(document, tuple(lines), tuple(Match(*match) for match in layout["matches"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ProposalError(_damaged(stored)) from error
    if result.data != new:
        raise ProposalError(_damaged(stored))
    return make_hunks(result)


def _damaged(stored: StoredProposal) -> str:
    return f"The proposal {stored.id} is damaged, so it cannot be used."


def _standing(stored: StoredProposal, document: Document, hunks: tuple[Hunk, ...], now: Document) -> Standing:
    if now.sha256 == stored.base_sha256:
        return Standing.CURRENT
    if now.sha256 == stored.new_sha256:
        return Standing.DONE
    try:
        rebase(document, hunks, now)
    except ConflictError:
        return Standing.STALE
    return Standing.REBASED
