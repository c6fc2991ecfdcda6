"""The journal of applied edits: one file an entry, the state in its name, so that a change of state is one rename.

Knows nothing of hunks, and does not touch the user's files. Invariant: an entry that is pending or later holds, on disk
and checked by hash, every byte that was there before and after; entries are ordered by id, and the id never goes down.

An entry is a line of JSON, the bytes before, the bytes after, and a line of JSON with the temporary file's identity.
"""

import dataclasses
import fcntl
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.editing.filesystem import Filesystem, Snapshot
from app.errors import JournalError
from app.paths import private_dir, shown

KEPT_SECONDS = 30 * 86400
KEPT_BYTES = 500_000_000
_LOCK_PATIENCE_S = 10.0
"""How long another redraft may take over one apply before we say so."""
_NAME = re.compile(r"(?P<id>\d{8,}-[0-9a-f]{8})\.(?P<state>[a-z]+)(?:-(?P<order>\d+))?")


class State(StrEnum):
    """How far an entry has come."""

    NEW = "new"
    """Being written: the user's file has not been touched."""
    PENDING = "pending"
    """On disk in full; the exchange may have happened or not."""
    APPLIED = "applied"
    UNDONE = "undone"
    CONFLICT = "conflict"
    """Could not be settled: both files were left and named."""
    DAMAGED = "damaged"
    """Cannot be read; listed, never used."""


class Kind(StrEnum):
    """What an entry does to the file."""

    EDIT = "edit"
    UNDO = "undo"
    REDO = "redo"


@dataclass(frozen=True)
class Entry:
    """One replacement of a file's bytes."""

    id: str
    """Ascends with time."""
    state: State
    order: int = 0
    """For undone entries: higher is undone later. 0 otherwise."""
    kind: Kind = Kind.EDIT
    of: str | None = None
    """For an undo or redo under way: the id of the edit it takes back or applies again."""
    path: str = ""
    """The file itself, links resolved, absolute. Empty for a damaged entry."""
    temporary: str = ""
    """Name of the temporary in the file's folder."""
    created: float = 0.0
    """Seconds since 1970."""
    note: str = ""
    """What the edit was asked to do."""
    mode: int = 0
    """Mode, owner and group of the file before."""
    uid: int = 0
    gid: int = 0
    before_sha256: str = ""
    before_size: int = 0
    after_sha256: str = ""
    after_size: int = 0
    device: int = 0
    """With `inode`, the identity of the temporary; 0 while the entry is new."""
    inode: int = 0
    body: int = 0
    """Offset of the bytes before in the entry's file."""

    @property
    def target(self) -> Path:
        """`path` as a path."""
        return Path(self.path)


_AT_THE_END = {"device", "inode"}
_IN_THE_NAME = {"id", "state", "order"}
_IN_HEADER = tuple(
    field.name
    for field in dataclasses.fields(Entry)
    if field.name not in _AT_THE_END and field.name not in _IN_THE_NAME and field.name != "body"
)


class Journal:
    """The entries in one folder. Everything but reading needs the lock."""

    def __init__(self, folder: Path, fs: Filesystem | None = None, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._fs = fs or Filesystem()
        self._clock = clock

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the journal against other processes. Raises JournalError when another one keeps it for long."""
        private_dir(self.folder)
        with self._errors("opened"):
            fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + _LOCK_PATIENCE_S
            while not self._try_lock(fd):
                if time.monotonic() > deadline:
                    raise JournalError("Another redraft is writing a file and does not finish; try again.")
                time.sleep(0.02)
            yield
        finally:
            os.close(fd)

    def entries(self, *states: State) -> list[Entry]:
        """Every entry, oldest first. With `states`, only those whose names have one of them, and no other is read;
        among them are damaged ones."""
        names = [match for match in self._names() if not states or match["state"] in states]
        return sorted((self._read(match) for match in names), key=lambda entry: _number(entry.id))

    def written(self, known: Mapping[str, Entry]) -> dict[str, Entry]:
        """Every entry by the name of its file; what still holds of `known`, an earlier answer, is not read again.

        An entry that changes its state while the folder is read is in the answer, in either state.
        """
        while True:
            names = {match.group(): match for match in self._names()}
            found = {name: known[name] if name in known else self._read(match) for name, match in names.items()}
            if all(entry.state is not State.DAMAGED or (self.folder / name).exists() for name, entry in found.items()):
                return found

    def begin(
        self, target: Path, temporary: str, before: Snapshot, after: bytes, kind: Kind, of: str | None, note: str
    ) -> Entry:
        """Write a new entry; not yet durable."""
        numbers = [_number(match["id"]) for match in self._names()]
        entry = Entry(
            id=f"{max(numbers, default=0) + 1:08d}-{secrets.token_hex(4)}",
            state=State.NEW,
            kind=kind,
            of=of,
            path=str(target),
            temporary=temporary,
            created=self._clock(),
            note=note,
            mode=before.mode,
            uid=before.uid,
            gid=before.gid,
            before_sha256=before.sha256,
            before_size=len(before.data),
            after_sha256=hashlib.sha256(after).hexdigest(),
            after_size=len(after),
        )
        header = json.dumps({name: getattr(entry, name) for name in _IN_HEADER}).encode("ascii") + b"\n"
        with self._errors("written"), self._fs.folder(self.folder) as folder:
            fd = self._fs.create(folder, _file_name(entry))
            try:
                self._fs.write(fd, header + before.data + after)
            except BaseException:
                self._fs.unlink(folder, _file_name(entry))
                raise
            finally:
                os.close(fd)
        return dataclasses.replace(entry, body=len(header))

    def seal(self, entry: Entry, device: int, inode: int) -> Entry:
        """Add the identity of the temporary and make the entry pending and durable."""
        sealed = dataclasses.replace(entry, state=State.PENDING, device=device, inode=inode)
        trailer = json.dumps({"device": device, "inode": inode}).encode("ascii") + b"\n"
        with self._errors("written"), self._fs.folder(self.folder) as folder:
            fd = os.open(_file_name(entry), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, dir_fd=folder)
            try:
                self._fs.write(fd, trailer)
                self._fs.fsync(fd)
            finally:
                os.close(fd)
            self._fs.rename(folder, _file_name(entry), _file_name(sealed))
            self._fs.fsync(folder)
        return sealed

    def mark(self, entry: Entry, state: State) -> Entry:
        """Put an entry into another state, durably."""
        order = 0
        if state is State.UNDONE:
            order = 1 + max((int(match["order"] or 0) for match in self._names()), default=0)
        marked = dataclasses.replace(entry, state=state, order=order)
        with self._errors("written"), self._fs.folder(self.folder) as folder:
            self._fs.rename(folder, _file_name(entry), _file_name(marked))
            self._fs.fsync(folder)
        return marked

    def drop(self, entry: Entry) -> None:
        """Remove an entry."""
        with self._errors("written"), self._fs.folder(self.folder) as folder:
            self._fs.unlink(folder, _file_name(entry))

    def contents(self, entry: Entry) -> tuple[bytes, bytes]:
        """(bytes before, bytes after), checked by hash. Raises JournalError for a damaged entry."""
        with self._errors("read"):
            data = (self.folder / _file_name(entry)).read_bytes()
        middle = entry.body + entry.before_size
        before, after = data[entry.body : middle], data[middle : middle + entry.after_size]
        for part, digest in ((before, entry.before_sha256), (after, entry.after_sha256)):
            if hashlib.sha256(part).hexdigest() != digest:
                raise JournalError(f"The journal entry {entry.id} is damaged, so it cannot be used.")
        return before, after

    def finish(self, entry: Entry) -> Entry:
        """The exchange of a pending entry has happened: an edit is applied and clears what could be redone for its
        file; an undo or redo changes the state of the edit it is about, and is gone. Returns the edit's entry."""
        if entry.kind is Kind.EDIT:
            for other in self.entries(State.UNDONE):
                if other.state is State.UNDONE and other.path == entry.path:
                    self.drop(other)
            return self.mark(entry, State.APPLIED)
        wanted = State.UNDONE if entry.kind is Kind.UNDO else State.APPLIED
        edit = next((self._read(match) for match in self._names() if match["id"] == entry.of), None)
        if edit is not None and edit.state is not wanted:
            edit = self.mark(edit, wanted)
        self.drop(entry)
        return edit or entry

    def prune(self) -> None:
        """Remove what is older than 30 days, then the oldest beyond 500 MB; never what is still to be settled."""
        names = sorted(self._names(), key=lambda match: _number(match["id"]))
        with self._errors("read"):
            sizes = {
                match.group(): (self.folder / match.group()).stat().st_size
                for match in names
                if match["state"] not in (State.NEW, State.PENDING)
            }
        total = sum(sizes.values())
        for match in names:
            entry = self._read(match)
            if entry.state in (State.NEW, State.PENDING):
                continue
            age = self._clock() - entry.created
            if age > KEPT_SECONDS or total > KEPT_BYTES:
                self.drop(entry)
                total -= sizes.get(match.group(), 0)
            elif age >= 0 and entry.state is not State.DAMAGED:
                return  # all that follow are younger: reading them at every edit would take long

    def _try_lock(self, fd: int) -> bool:
        with self._errors("locked"):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def _names(self) -> list[re.Match[str]]:
        with self._errors("read"):
            try:
                found = [_NAME.fullmatch(name) for name in os.listdir(self.folder)]
            except FileNotFoundError:  # nothing was ever applied
                return []
        return [match for match in found if match]

    def _read(self, match: re.Match[str]) -> Entry:
        path = self.folder / match.group()
        order = int(match["order"] or 0)
        try:
            state = State(match["state"])
            if not path.is_file():  # a pipe or a device in its place would hold us up
                raise ValueError("not a regular file")
            with path.open("rb") as file:
                header = file.readline()
                fields: dict[str, Any] = json.loads(header)
                entry = Entry(id=match["id"], state=state, order=order, body=len(header), **fields)
                if state is State.NEW:
                    return dataclasses.replace(entry, kind=Kind(entry.kind))
                file.seek(entry.body + entry.before_size + entry.after_size)
                identity = json.loads(file.readline())
                return dataclasses.replace(
                    entry, kind=Kind(entry.kind), device=identity["device"], inode=identity["inode"]
                )
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            # Shown by `history` as damaged; one bad entry must not take the others away.
            return Entry(match["id"], State.DAMAGED, order, temporary=match.group(), created=self._clock())

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise JournalError(f"The journal in {shown(self.folder)} cannot be {done}: {error.strerror}.") from error


def _number(entry_id: str) -> int:
    return int(entry_id.split("-")[0])


def _file_name(entry: Entry) -> str:
    if entry.state is State.DAMAGED:
        return entry.temporary
    return f"{entry.id}.{entry.state}" + (f"-{entry.order}" if entry.order else "")
