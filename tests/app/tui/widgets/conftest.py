"""A file for the tests of widgets."""

from pathlib import Path

import pytest

from tests.support.reviewed import SOURCE


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty lines, in the current folder."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "values.py"
    file.write_text(SOURCE)
    return file
