"""Hunks into a patch file of their own, under a name that nobody has yet.

Knows nothing of decisions or screens. Invariant: no file that exists is written to, and the patch is the one
`editing.patch` has checked.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from app.editing.diff import Hunk
from app.editing.document import Document
from app.editing.patch import patch_bytes
from app.errors import FileUnwritableError, UsageError
from app.paths import shown


def export_patch(document: Document, hunks: Sequence[Hunk], folder: Path | None = None) -> Path:
    """Write the hunks' diff to `<file's name>.patch` in `folder` (default: the current one), numbered where taken.

    Raises UsageError without hunks, PatchCheckError, FileUnwritableError.
    """
    data = patch_bytes(document, hunks)
    if not data:
        raise UsageError("There is no hunk to export; accept one first.")
    folder = Path.cwd() if folder is None else folder
    name = os.path.basename(os.path.normpath(document.name))
    number = 1
    while True:
        path = folder / (f"{name}.patch" if number == 1 else f"{name}.{number}.patch")
        try:
            _create(path, data)
        except FileExistsError:
            number += 1
        except OSError as error:
            raise FileUnwritableError(f"The patch {shown(path)} cannot be written: {error.strerror}.") from error
        else:
            return path


def _create(path: Path, data: bytes) -> None:
    """A new file with these bytes, or none: half a patch would apply half an edit."""
    with path.open("xb") as stream:
        try:
            stream.write(data)
            stream.flush()
        except OSError:
            path.unlink()
            raise
