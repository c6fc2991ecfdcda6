"""Puts a small file in its place whole or not at all, and leaves nothing beside it where that fails.

Knows nothing of what is in it. Light. Invariant: readers see the old file or the new one, and a full disk leaves no
temporary file behind.
"""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write `data` under `path` in a folder that exists; `durable` also waits until the disk has it. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".new")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
