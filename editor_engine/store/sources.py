"""What a source of weights has in common with the others: what it reports, room on the disk, and one pull at a time.

Knows no source in particular.
"""

import contextlib
import fcntl
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from editor_engine.errors import FetchError
from editor_engine.store.catalogue import gigabytes

_SPARE_BYTES = 64 << 20  # never fill a disk to the last byte


@dataclass(frozen=True)
class Fetching:
    """Bytes have arrived, or a source begins."""

    source: str
    """`model hub` or `package index`."""
    done: int
    """Bytes of the model file that are here; never goes back within a source."""
    total: int


@dataclass(frozen=True)
class SourceFailed:
    """A source could not be used; the next one is asked."""

    source: str
    reason: str
    """A clause a user understands."""


@dataclass(frozen=True)
class Waiting:
    """Another process is fetching the same model; this one waits for it."""

    model_id: str


FetchEvent = Fetching | SourceFailed | Waiting
Report = Callable[[FetchEvent], None]


def require_space(folder: Path, size: int) -> None:
    """Raise FetchError when `folder`'s disk has no room for `size` more bytes."""
    free = shutil.disk_usage(folder).free
    if free < size + _SPARE_BYTES:
        raise FetchError(
            f"{folder} has {gigabytes(free)} free and {gigabytes(size + _SPARE_BYTES)} are needed, some to spare; "
            "free some space and try again: what is here already is kept."
        )


@contextlib.contextmanager
def alone(name: str, model_id: str, folder: Path, report: Report) -> Iterator[None]:
    """Hold the lock `name` of `folder`, which the system drops when its holder dies; says so when it must wait.

    The file stays, since removing it would race.
    """
    with (folder / f".{name}.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(Waiting(model_id))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
