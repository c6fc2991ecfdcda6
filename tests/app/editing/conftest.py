"""Fixtures for tests of documents and of what is written to disk."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.editing.journal import Journal
from tests.support.edits import OLD


@pytest.fixture
def open_tmp() -> Iterator[Path]:
    """A folder that an unprivileged user can reach (pytest's own are closed to others)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with the bytes of OLD."""
    path = tmp_path / "f.py"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """An empty one."""
    return Journal(tmp_path / "journal")
