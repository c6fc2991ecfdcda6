"""Files under a temporary name, and the end of those that a killed process left.

Knows nothing of what is in them. Light. Invariant: a file whose writer lives is never removed: the writer holds its
lock, which the system drops with the process.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def scratch_file(folder: Path, prefix: str, suffix: str = "") -> Iterator[IO[bytes]]:
    """A new file of that folder, locked while it is written and removed unless it was renamed. Raises OSError."""
    while True:
        file = tempfile.NamedTemporaryFile(dir=folder, prefix=prefix, suffix=suffix, delete=False)
        try:
            with file:
                with contextlib.suppress(OSError):  # a file system without locks, where `sweep` removes nothing
                    fcntl.flock(file.fileno(), fcntl.LOCK_EX)
                if os.fstat(file.fileno()).st_nlink == 0:  # swept before it was locked
                    continue
                yield file
                return
        finally:
            with contextlib.suppress(OSError):  # renamed; or why it could not be written is what the user should hear
                os.unlink(file.name)


def sweep(folder: Path, pattern: str) -> None:
    """Remove what killed writers left under names of this pattern."""
    for path in folder.glob(pattern):
        with contextlib.suppress(OSError), path.open("rb") as file:  # another process may sweep as well
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
