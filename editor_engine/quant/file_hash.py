"""SHA-256 of a model file, worked out once and remembered by what the file system says of the file.

Knows nothing of GGUF. Invariant: a remembered hash is used only while path, device, inode, size and modification time
are those of the file that was hashed; a record that cannot be read or written costs a second, never an error.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from editor_engine.atomic_file import write_atomically
from editor_engine.foreign_json import read_kept

_SETTLED_NS = 2 * 10**9  # a file changed later than this before hashing may change again within one clock tick

log = logging.getLogger(__name__)


def file_sha256(path: Path, status: os.stat_result, stretches: Iterable[npt.NDArray[np.uint8]], folder: Path) -> str:
    """Hex SHA-256 of `stretches`, the bytes in order of the open file at `path` with `status`.

    Records lie in `folder`, one per path; it is made when missing.
    """
    key = str(path.resolve())
    facts = [key, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]
    record = folder / (hashlib.sha256(os.fsencode(key)).hexdigest()[:32] + ".json")
    known = _remembered(record, facts)
    if known is not None:
        return known
    digest = hashlib.sha256()
    for stretch in stretches:
        digest.update(stretch.data)
    if time.time_ns() - status.st_mtime_ns > _SETTLED_NS:
        _remember(record, facts, digest.hexdigest())
    return digest.hexdigest()


def _remembered(record: Path, facts: list[object]) -> str | None:
    found = read_kept(record)
    if found.get("file") != facts:
        return None
    known = found.get("sha256")
    return known if isinstance(known, str) and len(known) == 64 else None


def _remember(record: Path, facts: list[object], sha256: str) -> None:
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(record, json.dumps({"file": facts, "sha256": sha256}).encode())
    except OSError as reason:
        log.info("the hash is not remembered: %s", reason)
