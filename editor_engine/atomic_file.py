"""Puts a small file in its place whole or not at all, and leaves nothing beside it where that fails.

Also makes renames last, for whoever writes a large file itself. Knows nothing of what is in it. Light. Invariant:
readers see the old file or the new one, and neither a full disk nor a kill leaves temporary files that stay.
"""

import glob
import os
from pathlib import Path

from editor_engine.scratch_file import scratch_file, sweep


def write_atomically(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write `data` under `path` in a folder that exists; `durable` also waits until the disk has it. Raises OSError."""
    sweep(path.parent, f".{glob.escape(path.name)}-*.new")
    with scratch_file(path.parent, f".{path.name}-", ".new") as stream:
        stream.write(data)
        stream.flush()
        if durable:
            os.fsync(stream.fileno())
        os.replace(stream.name, path)


def flush_folder(folder: Path) -> None:
    """Wait until the disk has the folder's names: a rename in it survives a power cut from then on. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
