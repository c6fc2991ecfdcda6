"""A file is put in its place whole or not at all, and a failure leaves nothing beside it."""

import os
from pathlib import Path

import pytest

from editor_engine.atomic_file import write_atomically


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "facts.json"
    for data in (b"old", b"", b"new" * 10_000):
        write_atomically(path, data, durable=durable)
        assert path.read_bytes() == data
        assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("call", ["replace", "fdopen", "fsync"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "facts.json"
    path.write_bytes(b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new", durable=True)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "facts.json", b"")
