"""Opens the sockets the server listens on, and sees to it that nobody else can have or use them.

Knows file modes, locks and addresses; nothing of HTTP. Invariants: a unix socket is ours, mode 0600, in a folder that
is ours alone; one server listens on it at a time, and what a killed one left behind is cleared by the next; nothing but
loopback is listened on without a key.
"""

import contextlib
import errno
import fcntl
import ipaddress
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from editor_engine.errors import EngineError
from editor_engine.server.options import LOOPBACK, ServeOptions

_LONGEST_PATH = 107
"""Bytes of a unix socket's path on Linux, its final zero not counted."""


class ListenError(EngineError):
    """The server cannot listen where it was asked to; the sentence says why."""


class AlreadyServedError(ListenError):
    """Another server has this socket; the sentence names its process."""


class KeyNeededError(ListenError):
    """What was asked for lets other machines in, and there is no key to keep strangers out."""


@contextlib.contextmanager
def listening(options: ServeOptions) -> Iterator[list[socket.socket]]:
    """Open sockets, not yet accepting, and close and remove them afterwards. Raises ListenError."""
    with contextlib.ExitStack() as stack:
        sockets = []
        if options.socket is not None:
            sockets.append(stack.enter_context(_unix_socket(options.socket)))
        if options.port is not None:
            sockets.append(stack.enter_context(_tcp_socket(options.host, options.port, options.key)))
        if not sockets:
            raise ListenError("There is nothing to listen on: name a socket or a port.")
        yield sockets


def require_private(folder: Path) -> None:
    """Make the folder if it is missing; raises ListenError unless it is ours and closed to everybody else."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ListenError(f"The folder {folder} cannot be used for a socket: {error.strerror}.") from error
    if not stat.S_ISDIR(found.st_mode):
        raise ListenError(f"{folder} is not a folder (links are not followed here); name another --socket.")
    if found.st_uid != os.geteuid():
        raise ListenError(f"The folder {folder} belongs to another user, who could take the socket away.")
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        way = "name a --socket in a folder that is yours alone"
        if not mode & stat.S_ISVTX:  # /tmp and its like are there for everybody
            way = f"close it (chmod 700 {folder}), or {way}"
        raise ListenError(f"The folder {folder} is open to other users (mode {mode:04o}); {way}.")


@contextlib.contextmanager
def _unix_socket(path: Path) -> Iterator[socket.socket]:
    require_private(path.parent)
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise ListenError(f"The path {path} is too long for a socket: {_LONGEST_PATH} bytes at most.")
    with _locked(path.with_name(path.name + ".lock"), path):
        try:
            _remove_stale(path)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                # The folder is ours alone, so nobody can connect before the mode is set.
                sock.bind(os.fspath(path))
                os.chmod(path, 0o600)
                sock.setblocking(False)
                mine = path.stat().st_ino
                yield sock
        except OSError as error:
            raise ListenError(f"The socket {path} cannot be made: {error.strerror or error}.") from error
        finally:
            with contextlib.suppress(OSError, UnboundLocalError):
                if path.stat().st_ino == mine:  # else someone has put another one there: not ours to remove
                    path.unlink()


def _remove_stale(path: Path) -> None:
    """We hold the lock, so whoever made the socket that lies there is gone."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ListenError(f"{path} exists and is no socket; move it out of the way or name another --socket.")
        path.unlink()


@contextlib.contextmanager
def _locked(lock: Path, path: Path) -> Iterator[None]:
    handle = _take_lock(lock, path)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()  # while it is held: whoever waits for it finds that it is no longer there
        os.close(handle)


def _take_lock(lock: Path, path: Path) -> int:
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ListenError(f"The lock {lock} cannot be opened: {error.strerror}.") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        except BlockingIOError:
            owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            os.close(handle)
            who = f"process {owner}" if owner.isdigit() else "another process"
            raise AlreadyServedError(f"A server is listening on {path} already: {who}.") from None
        except FileNotFoundError:
            pass  # the one before us has just removed it and gone
        os.close(handle)


@contextlib.contextmanager
def _tcp_socket(host: str, port: int, key: str | None) -> Iterator[socket.socket]:
    if key is None and not _is_loopback(host):
        raise KeyNeededError(
            f"Listening on {host} lets other machines in, so it needs a key: set REDRAFT_ENGINE_KEY, here and for "
            "the clients, or listen on 127.0.0.1."
        )
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.setblocking(False)
            if key is None and not _is_loopback(sock.getsockname()[0]):
                raise KeyNeededError(f"The name {host} stands for an address that other machines reach; use 127.0.0.1.")
            yield sock
    except OSError as error:
        taken = "another program listens there" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise ListenError(f"The server cannot listen on {host}, port {port}: {taken}.") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK
