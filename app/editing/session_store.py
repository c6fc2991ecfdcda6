"""Reviews that were left undecided: kept on disk while someone works, so that quit, crash and kill lose nothing.

One private file a session, rewritten whole at every step; its owner holds a lock that the system drops with the
process, so a session is offered again only when nobody has it open. Knows nothing of screens, and not what is in the
state of a review. Invariant: what `left_sessions` gives is byte for byte what was saved last; a file that is damaged is
named and left where it is, never half believed.
"""

import base64
import fcntl
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.errors import StateError
from app.json_events import plain_data
from app.paths import private_dir, sessions_dir, shown
from app.private_files import write_private

VERSION = 1
KEPT_SECONDS = 30 * 86400
_BYTES = ("base", "asked_of", "proposed")
"""Fields of a turn that are bytes."""
_NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}")


@dataclass(frozen=True)
class SavedTurn:
    """One instruction and what came of it."""

    instruction: str
    lines: str | None
    """`A:B` of a region, 1-based and inclusive; None for the whole file."""
    based_on: int
    """Number of the turn whose result the base is; 0 for the file itself."""
    base: bytes
    """What the turn's decisions are about."""
    asked_of: bytes | None
    """What the model was shown; differs from `base` where the file changed meanwhile. None without a proposal."""
    proposed: bytes | None
    """The whole new file that the model made of it; None for a turn without a proposal."""
    failure: str | None
    """Why there is no proposal, in a sentence."""
    facts: Mapping[str, Any]
    """JSON data: decisions, figures, the engine, as `editing.resume` wrote them down."""


@dataclass(frozen=True)
class SavedSession:
    """What is needed to go on with a file where it was left."""

    path: str
    """The file itself, links resolved, absolute."""
    name: str
    """As the user named it, absolute: the next start may be in another folder."""
    encoding: str
    """Python's name of it, without mark."""
    source: bytes
    """The file as it was read."""
    turns: tuple[SavedTurn, ...]
    """Oldest first."""
    base: int
    """Number of the turn that the next instruction works on; 0 is the file itself."""
    saved: float = 0.0
    """Seconds since 1970; set by saving."""


@dataclass(frozen=True)
class LeftSession:
    """A session that nobody has open."""

    id: str
    session: SavedSession


@dataclass(frozen=True)
class LeftSessions:
    """What is offered at a start."""

    sessions: tuple[LeftSession, ...]
    """Newest first."""
    notes: tuple[str, ...]
    """A sentence for every file that could not be used."""


@dataclass
class SessionKeeper:
    """Keeps one session on disk; the lock is taken at the first save and held until `close`."""

    id: str = ""
    """Empty before the first save, unless a left session is taken over."""
    folder: Path = field(default_factory=sessions_dir)
    clock: Callable[[], float] = time.time
    _lock: int | None = None

    def take_over(self) -> bool:
        """Lock the left session `id`; False when another redraft has taken it meanwhile."""
        if self._lock is None:
            self._lock = _try_lock(private_dir(self.folder), self.id)
        return self._lock is not None

    def save(self, session: SavedSession) -> None:
        """Replace what is on disk. Raises StateError or SettingsError when it cannot be kept."""
        if not self.id:
            self.id = f"{hashlib.sha256(os.fsencode(session.path)).hexdigest()[:16]}-{secrets.token_hex(4)}"
        if not self.take_over():
            raise StateError(f"Another redraft has the session of {shown(session.name)} open; this one is not kept.")
        write_private(_file(self.folder, self.id), _written(session, self.clock()))

    def forget(self) -> None:
        """Remove what is on disk: everything is decided. The next save begins a new session."""
        if self.id and self.take_over():
            try:
                _remove(self.folder, self.id)
            except OSError as error:
                raise StateError(f"The session {self.id} cannot be removed: {error.strerror}.") from error
            finally:
                self.close()
        self.id = ""

    def close(self) -> None:
        """Let go of the lock; what is on disk stays and is offered at the next start."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def left_sessions(folder: Path | None = None, clock: Callable[[], float] = time.time) -> LeftSessions:
    """Every session that nobody has open. Those older than 30 days are removed, and said to be."""
    folder = sessions_dir() if folder is None else folder
    found: list[LeftSession] = []
    notes: list[str] = []
    try:
        names = sorted(path.stem for path in folder.iterdir() if path.suffix == ".json" and _NAME.fullmatch(path.stem))
    except FileNotFoundError:
        return LeftSessions((), ())
    except OSError as error:
        return LeftSessions((), (f"The sessions in {shown(folder)} cannot be read: {error.strerror}.",))
    for name in names:
        lock = _try_lock(folder, name)
        if lock is None:
            continue
        try:
            session = _read(_file(folder, name).read_bytes())
            if session.saved < clock() - KEPT_SECONDS:
                _remove(folder, name)
                notes.append(f"A session on {shown(session.name)} was older than 30 days and has been removed.")
            else:
                found.append(LeftSession(name, session))
        except FileNotFoundError:
            continue  # its owner has just decided everything
        except OSError as error:
            notes.append(f"The session {shown(_file(folder, name))} cannot be read: {error.strerror}.")
        except _DamagedError as error:
            notes.append(f"The session {shown(_file(folder, name))} is damaged and was left as it is ({error}).")
        finally:
            os.close(lock)
    return LeftSessions(tuple(sorted(found, key=lambda left: -left.session.saved)), tuple(notes))


class _DamagedError(Exception):
    """The file is not what was written; says how."""


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _try_lock(folder: Path, name: str) -> int | None:
    """The lock of a session, or None where somebody holds it or no lock can be had."""
    try:
        fd = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def _remove(folder: Path, name: str) -> None:
    """Called with the lock held, so that nobody takes the session over in between."""
    _file(folder, name).unlink(missing_ok=True)
    (folder / f"{name}.lock").unlink(missing_ok=True)


def _written(session: SavedSession, now: float) -> bytes:
    body = {**plain_data(_with_text(session)), "version": VERSION, "saved": now}
    text = json.dumps(body, ensure_ascii=True, allow_nan=False)
    return f"{hashlib.sha256(text.encode('ascii')).hexdigest()}\n{text}\n".encode("ascii")


def _with_text(session: SavedSession) -> dict[str, Any]:
    """The session's fields with bytes as base64, which JSON can carry."""
    turns = [{**vars(turn), **{name: _text(getattr(turn, name)) for name in _BYTES}} for turn in session.turns]
    return {**vars(session), "source": _text(session.source), "turns": turns}


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


def _read(data: bytes) -> SavedSession:
    """Raises _DamagedError for bytes that `_written` has not made."""
    digest, _, text = data.partition(b"\n")
    if hashlib.sha256(text.removesuffix(b"\n")).hexdigest().encode("ascii") != digest:
        raise _DamagedError("its check sum is wrong")
    try:
        body = json.loads(text)
        version = body.pop("version")
        if version != VERSION:
            raise _DamagedError(f"it was written by another version, {version}")
        turns = tuple(SavedTurn(**{**turn, **{name: _data(turn[name]) for name in _BYTES}}) for turn in body["turns"])
        return SavedSession(**{**body, "source": _data(body["source"]), "turns": turns})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _DamagedError("it is not a session") from error
