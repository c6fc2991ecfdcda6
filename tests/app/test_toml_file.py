"""Whatever is wrong with a TOML file of the user is one sentence that names it."""

import os
from pathlib import Path

import pytest

from app.errors import SettingsError
from app.toml_file import read_toml


def test_a_table_is_read_with_or_without_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + b'name = "value"\n[part]\ncount = 3\n')
        assert read_toml(path) == {"name": "value", "part": {"count": 3}}


def test_a_file_that_is_not_there_is_for_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_toml(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a = ", "is not valid TOML"),
        (b"a = '\xff'", "it is not UTF-8 (byte 5)"),
        (b"a = 1\na = 2\n", "is not valid TOML"),
    ],
)
def test_what_is_not_toml_is_said(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(data)
    with pytest.raises(SettingsError) as caught:
        read_toml(path)
    assert str(caught.value).startswith(str(path)) and said in str(caught.value)


def test_a_pipe_or_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(SettingsError, match="not a regular file"):
            read_toml(tmp_path / name)
