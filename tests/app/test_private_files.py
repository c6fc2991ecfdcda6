"""Our own files: whole or not at all, private, and changed by one redraft at a time."""

import os
import stat
import threading
from pathlib import Path

import pytest

from app.errors import SettingsError, StateError
from app.private_files import held, write_private
from tests.support.saboteur import die, fail_with, in_child


def test_written_privately_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    old = os.umask(0)
    try:
        write_private(path, b"one")
        write_private(path, b"two")
    finally:
        os.umask(old)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_what_cannot_be_written_leaves_the_old_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "state" / "file"
    write_private(path, b"old")
    monkeypatch.setattr(os, call, lambda *_: fail_with(28)())
    with pytest.raises(StateError, match="No space left"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_killed_at_any_point_the_file_is_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "state" / "file"
    write_private(path, b"old")

    def work() -> None:
        monkeypatch.setattr(os, call, lambda *_: die())
        write_private(path, b"new")

    assert in_child(work) == -9
    assert path.read_bytes() == b"old"
    write_private(path.with_name("another"), b"x")
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["another", "file"]


def test_a_folder_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError):
        write_private(tmp_path / "file" / "below", b"x")
    with pytest.raises(SettingsError), held(tmp_path / "file" / "below"):
        pass


def test_readers_that_change_what_they_read_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "count"
    write_private(path, b"0")

    def count() -> None:
        for _ in range(25):
            with held(path):
                write_private(path, str(int(path.read_bytes()) + 1).encode())

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() == b"100"


def test_a_holder_that_dies_lets_go(tmp_path: Path) -> None:
    def work() -> None:
        with held(tmp_path / "file"):
            die()

    assert in_child(work) == -9
    with held(tmp_path / "file"):
        pass
