"""Files of our own state: written whole or not at all, and readable by this user alone.

Knows nothing of what is in them. Invariant: whoever reads the path, at whatever moment and after whatever crash, finds
the old bytes or the new ones; the file is 0600 in a 0700 folder from its first byte; what a killed writer left, perhaps
the user's source code, goes with the next write into the folder.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from app.errors import StateError
from app.paths import private_dir, shown
from editor_engine.scratch_file import scratch_file, sweep

_SUFFIX = ".redraft-new"


def write_private(path: Path, data: bytes) -> None:
    """Put `data` under `path`, durably. Raises StateError or SettingsError when it cannot be kept."""
    private_dir(path.parent)
    try:
        sweep_private(path.parent)
        with scratch_file(path.parent, f".{path.name}-", _SUFFIX) as stream:  # 0600
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            os.replace(stream.name, path)
    except OSError as error:
        raise StateError(f"{shown(path)} cannot be written: {error.strerror or error}.") from error


def sweep_private(folder: Path) -> None:
    """Remove what killed writers left in it."""
    sweep(folder, f".*{_SUFFIX}")


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep other redrafts from changing `path` between our reading and writing it.

    The lock is a file beside it, which the system lets go of when its holder dies. Raises StateError, SettingsError.
    """
    private_dir(path.parent)
    try:
        fd = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateError(f"{shown(path)} cannot be locked: {error.strerror}.") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # held for the time of one small write, never while a person is asked
        yield
    finally:
        os.close(fd)
