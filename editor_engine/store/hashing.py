"""SHA-256 of files of any size, read in pieces.

Knows nothing of models. Invariant: memory does not grow with the file.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from editor_engine.errors import ModelFileError

CHUNK = 4 << 20
"""Bytes read at once."""

OnBytes = Callable[[int], None]
"""Called with the bytes read so far."""


def hash_file(path: Path, on_bytes: OnBytes = lambda done: None) -> str:
    """Hex SHA-256 of a file. Raises ModelFileError when it cannot be read."""
    digest, done = hashlib.sha256(), 0
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
                done += len(chunk)
                on_bytes(done)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.") from error
    return digest.hexdigest()
