"""The system calls that a safe apply is made of, in one object that tests can make fail.

Knows nothing of documents, hunks or the journal. Every name is relative to an open folder, so that a folder renamed or
replaced meanwhile cannot send a write elsewhere. Invariant: no method writes to a file that existed before, and none
removes anything but the name it was given.
"""

import ctypes
import errno
import fcntl
import hashlib
import os
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

_RENAME_EXCHANGE = 2
"""Linux: swap two names in one step. The same value means RENAME_SWAP on macOS."""
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
"""What a kernel or file system without exchange answers."""
_NO_XATTR = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class ExchangeUnsupportedError(OSError):
    """This file system or system cannot swap two names in one step."""


@dataclass(frozen=True)
class Snapshot:
    """One regular file as it was at one moment."""

    data: bytes
    mode: int
    """Permission bits, set-id bits among them (no file type)."""
    uid: int
    gid: int
    nlink: int
    """Names this file has; 1 is the usual."""
    device: int
    inode: int
    xattrs: tuple[tuple[str, bytes], ...] = field(default=())
    """Extended attributes by name; empty where the file system has none."""

    @cached_property
    def sha256(self) -> str:
        """Hex digest of `data`."""
        return hashlib.sha256(self.data).hexdigest()

    def same_content(self, other: "Snapshot") -> bool:
        """True when bytes, mode and owner are equal: what one would notice if it were lost."""
        return (self.data, self.mode, self.uid, self.gid) == (other.data, other.mode, other.uid, other.gid)


class NotRegularError(OSError):
    """The name is a folder, device, socket, pipe, or (where links are not followed) a link."""


class Lease:
    """A read lease on an open file: while held, nobody can have opened it for writing without our seeing it."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def writer_waits(self) -> bool:
        """True when some program has asked to open the file for writing since; it waits until the lease is given up."""
        return self._fd is not None and fcntl.fcntl(self._fd, fcntl.F_GETLEASE) != fcntl.F_RDLCK


class Filesystem:
    """The real thing. Methods raise OSError as the system does; callers turn it into sentences."""

    @contextmanager
    def folder(self, path: str | os.PathLike[str]) -> Iterator[int]:
        """Open a folder; inside, its descriptor stands for it."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)

    def snapshot(self, folder: int, name: str) -> Snapshot | None:
        """The regular file `name`, or None when there is nothing of that name. Links are not followed.

        Raises NotRegularError for anything that is not a regular file, OSError when it cannot be read.
        """
        try:
            # O_NONBLOCK: opening a pipe must not wait for its writer.
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise NotRegularError(error.errno, "not a regular file") from error
            raise
        try:
            return read_snapshot(fd)
        finally:
            os.close(fd)

    def create(self, folder: int, name: str) -> int:
        """Make a new empty file, mode 0600, and return its descriptor. Raises FileExistsError if the name is taken."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o600, dir_fd=folder)

    def write(self, fd: int, data: bytes) -> None:
        """Write all of `data`."""
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    def take_attributes(self, fd: int, like: Snapshot) -> None:
        """Give the file the owner, then the mode, then the extended attributes of `like`.

        The order matters: a change of owner clears set-id bits. Raises OSError where one is refused.
        """
        now = os.fstat(fd)
        if (now.st_uid, now.st_gid) != (like.uid, like.gid):
            os.fchown(fd, like.uid, like.gid)
        os.fchmod(fd, like.mode)
        wanted = dict(like.xattrs)
        present = dict(_read_xattrs(fd))
        for name in present.keys() - wanted.keys():  # inherited from the folder, such as a default access list
            os.removexattr(fd, name)
        for name, value in wanted.items():
            if present.get(name) != value:
                os.setxattr(fd, name, value)

    def fsync(self, fd: int) -> None:
        """Wait until a file or folder is on disk. A file system that has no such thing for folders is no error."""
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise

    def exchange(self, folder: int, one: str, other: str) -> None:
        """Swap two names in one step. Raises ExchangeUnsupportedError where there is no such call."""
        call = _exchange_call()
        if call is None:
            raise ExchangeUnsupportedError(errno.ENOSYS, "no exchange of names on this system")
        if call(folder, os.fsencode(one), folder, os.fsencode(other), _RENAME_EXCHANGE) != 0:
            number = ctypes.get_errno()
            kind = ExchangeUnsupportedError if number in _NO_EXCHANGE else OSError
            raise kind(number, os.strerror(number), one, None, other)

    def rename(self, folder: int, one: str, other: str) -> None:
        """Plain rename within the folder; replaces `other`."""
        os.rename(one, other, src_dir_fd=folder, dst_dir_fd=folder)

    def unlink(self, folder: int, name: str) -> None:
        """Remove a name."""
        os.unlink(name, dir_fd=folder)

    @contextmanager
    def lease(self, folder: int, name: str) -> Iterator[Lease]:
        """Hold a read lease on a file where the system offers one; elsewhere the lease is empty.

        Raises BlockingIOError while some program has the file open for writing.
        """
        if not hasattr(fcntl, "F_SETLEASE"):
            yield Lease(None)
            return
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            yield Lease(fd if _take_lease(fd) else None)
        finally:
            os.close(fd)  # gives the lease up


def read_snapshot(fd: int, limit: int | None = None) -> Snapshot:
    """Everything about an open regular file.

    Reads at most `limit` + 1 bytes when a limit is given, so that a huge file costs nothing. Raises NotRegularError.
    """
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise NotRegularError(errno.EINVAL, "not a regular file")
    chunks: list[bytes] = []
    left = -1 if limit is None else limit + 1
    while left != 0:
        chunk = os.read(fd, 1 << 20 if left < 0 else min(left, 1 << 20))
        if not chunk:
            break
        chunks.append(chunk)
        left = left - len(chunk) if left > 0 else left
    return Snapshot(
        data=b"".join(chunks),
        mode=stat.S_IMODE(found.st_mode),
        uid=found.st_uid,
        gid=found.st_gid,
        nlink=found.st_nlink,
        device=found.st_dev,
        inode=found.st_ino,
        xattrs=_read_xattrs(fd),
    )


def _read_xattrs(fd: int) -> tuple[tuple[str, bytes], ...]:
    if not hasattr(os, "listxattr"):
        return ()
    try:
        return tuple((name, os.getxattr(fd, name)) for name in sorted(os.listxattr(fd)))
    except OSError as error:
        if error.errno in _NO_XATTR:
            return ()
        raise


def _take_lease(fd: int) -> bool:
    """Take a read lease; False where the system or the owner of the file does not allow one."""
    # The kernel tells a lease holder by a signal; SIGIO, the usual one, would end the process. SIGURG is ignored.
    fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _exchange_call() -> "ctypes._FuncPointer | None":
    """The C library's call that swaps names relative to folders, None where it has none."""
    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "renameatx_np" if sys.platform == "darwin" else "renameat2", None)
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
        call.restype = ctypes.c_int
    return call
