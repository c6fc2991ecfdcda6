"""A small file to edit. Knows nothing of what is tested."""

from pathlib import Path

import pytest

from tests.support.headless_edit import SOURCE


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sums.py"
    path.write_text(SOURCE)
    return path
