"""Watches that run on this machine: what other processes can see of them, and how one is asked to stop.

Each watch keeps a lock file, which the system lets go of however it ends, and beside it its status as JSON. Knows
nothing of how a watch works. Invariant: a process is asked to stop only while it holds the lock of the watch it is.
"""

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from app.errors import StateError
from app.paths import private_dir, shown, state_dir
from app.watch.events import Status


@dataclass(frozen=True)
class RunningWatch:
    """A watch of some process of this user."""

    pid: int
    roots: tuple[str, ...]
    started: float
    """Seconds since 1970."""
    status: Status


class Presence:
    """Shows one watch to others while it is open."""

    def __init__(self, folder: Path, roots: Sequence[str]) -> None:
        self._file = folder / f"{os.getpid()}.json"
        self._roots = tuple(roots)
        self._started = time.time()

    def show(self, status: Status) -> None:
        """Replace what others see. A status that cannot be written is no loss: the watch itself says it, too."""
        shown_now = asdict(RunningWatch(os.getpid(), self._roots, self._started, status))
        part = self._file.with_suffix(".part")
        with contextlib.suppress(OSError):
            part.write_bytes(json.dumps(shown_now).encode("ascii"))  # not synced: it is for the living only
            part.replace(self._file)


@contextlib.contextmanager
def present(roots: Sequence[str]) -> Iterator[Presence]:
    """While inside, others see this watch. Raises SettingsError or StateError where the folder cannot be used."""
    folder = private_dir(watches_dir())
    lock = folder / f"{os.getpid()}.lock"
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise StateError(f"{shown(lock)} cannot be used: {error.strerror}.") from error
    try:
        yield Presence(folder, roots)
    finally:
        _remove(lock)
        os.close(fd)


def watches_dir() -> Path:
    """Folder of the watches that run."""
    return state_dir() / "watches"


def running_watches() -> list[RunningWatch]:
    """Every watch of this user that runs, the oldest first; what dead ones left is removed."""
    found = [watch for lock in watches_dir().glob("*.lock") if (watch := _alive(lock)) is not None]
    return sorted(found, key=lambda watch: watch.started)


def stop_watch(pid: int) -> bool:
    """Ask a watch to stop, as ctrl-C would; False where there is none of that process any more."""
    lock = watches_dir() / f"{pid}.lock"
    if not _is_held(lock):
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        return True
    return False


def _alive(lock: Path) -> RunningWatch | None:
    if not _is_held(lock):
        return None
    try:
        fields = json.loads(lock.with_suffix(".json").read_bytes())
        status = fields["status"]
        status["queued"] = tuple(status["queued"])
        return RunningWatch(fields["pid"], tuple(fields["roots"]), fields["started"], Status(**status))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # it has only just begun, or it is damaged
        return None


def _is_held(lock: Path) -> bool:
    """True while the process that made the lock file lives; the file of a dead one is removed."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        _remove(lock)
        return False
    finally:
        os.close(fd)


def _remove(lock: Path) -> None:
    for path in (lock, lock.with_suffix(".json"), lock.with_suffix(".part")):
        with contextlib.suppress(OSError):
            path.unlink()
