"""Filesystems that fail, are interfered with, or die at a chosen call, and a way to run code as another user.

Knows the seam `Filesystem`, not what is built on it.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.editing.filesystem import Filesystem, Lease, Snapshot

NOBODY = 65534


class Saboteur(Filesystem):
    """The real thing, with something done before or after a call of a given name; each thing happens once."""

    def __init__(self, leases: bool = True) -> None:
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Callable[[], None]] = {}
        self.calls: list[str] = []
        self.held = Lease(None)
        """The lease that is held, while one is."""
        self._leases = leases

    @contextmanager
    def _around(self, name: str) -> Iterator[None]:
        self.calls.append(name)
        self.before.pop(name, _nothing)()
        yield
        self.after.pop(name, _nothing)()

    def snapshot(self, folder: int, name: str) -> Snapshot | None:
        with self._around("snapshot"):
            return super().snapshot(folder, name)

    def create(self, folder: int, name: str) -> int:
        with self._around("create"):
            return super().create(folder, name)

    def write(self, fd: int, data: bytes) -> None:
        with self._around("write"):
            super().write(fd, data)

    def take_attributes(self, fd: int, like: Snapshot) -> None:
        with self._around("take_attributes"):
            super().take_attributes(fd, like)

    def fsync(self, fd: int) -> None:
        with self._around("fsync"):
            super().fsync(fd)

    def exchange(self, folder: int, one: str, other: str) -> None:
        with self._around("exchange"):
            super().exchange(folder, one, other)

    def rename(self, folder: int, one: str, other: str) -> None:
        with self._around("rename"):
            super().rename(folder, one, other)

    def unlink(self, folder: int, name: str) -> None:
        with self._around("unlink"):
            super().unlink(folder, name)

    @contextmanager
    def lease(self, folder: int, name: str) -> Iterator[Lease]:
        if not self._leases:  # as on file systems without them
            yield Lease(None)
            return
        with super().lease(folder, name) as self.held:
            yield self.held


class Dying(Saboteur):
    """Kills the process right before or right after its n-th call; a write killed "before" is cut in the middle."""

    def __init__(self, calls_left: int, after: bool) -> None:
        super().__init__()
        self._left = calls_left
        self._die_after = after

    @contextmanager
    def _around(self, name: str) -> Iterator[None]:
        self._left -= 1
        if self._left == 0 and not self._die_after:
            die()
        yield
        if self._left == 0:
            die()

    def write(self, fd: int, data: bytes) -> None:
        if self._left == 1 and not self._die_after:
            os.write(fd, data[: len(data) // 2])
        super().write(fd, data)


def fail_with(number: int) -> Callable[[], None]:
    """Something that fails as the system would with this errno."""

    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


def die() -> None:
    """What kill -9 does, to this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], object]) -> int:
    """Run `work` in a forked child; its exit status: 0, 1 for an exception, minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def as_nobody(work: Callable[[], object]) -> int:
    """`in_child`, with root's rights given up where the tests run as root."""

    def dropped() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        work()

    return in_child(dropped)


def give_to_nobody(*paths: Path) -> None:
    """Make files belong to the user that `as_nobody` runs as."""
    for path in paths:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)


def _nothing() -> None:
    pass
