"""The remembered hash: worked out once, and again whenever the file may have changed."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from editor_engine.quant.file_hash import file_sha256

OLD_NS = 10**18  # long settled


def settled(path: Path, content: bytes, mtime_ns: int = OLD_NS) -> Path:
    path.write_bytes(content)
    os.utime(path, ns=(mtime_ns, mtime_ns))
    return path


def asked(path: Path, folder: Path, content: bytes | None = None) -> str:
    """The hash, reading `content` where given: other bytes than the file's show whether it was remembered."""
    data = path.read_bytes() if content is None else content
    return file_sha256(path, path.stat(), [np.frombuffer(data, np.uint8)], folder)


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_remembered_while_nothing_changed(tmp_path: Path) -> None:
    path, folder = settled(tmp_path / "m", b"one"), tmp_path / "cache" / "hashes"
    assert asked(path, folder) == sha(b"one")
    assert asked(path, folder, b"not read") == sha(b"one")


@pytest.mark.parametrize("change", ["size", "time", "inode", "name"])
def test_hashed_again_after_a_change(tmp_path: Path, change: str) -> None:
    path, folder = settled(tmp_path / "m", b"one"), tmp_path / "hashes"
    asked(path, folder)
    if change == "size":
        settled(path, b"longer")
    elif change == "time":
        os.utime(path, ns=(OLD_NS + 1, OLD_NS + 1))
    elif change == "inode":
        settled(tmp_path / "other", b"two").rename(path)
    else:
        path = path.rename(tmp_path / "n")
    assert asked(path, folder, b"new") == sha(b"new")


def test_a_file_just_written_is_not_remembered(tmp_path: Path) -> None:
    path, folder = tmp_path / "m", tmp_path / "hashes"
    path.write_bytes(b"one")
    future = path.stat().st_mtime_ns + 10**12
    os.utime(path, ns=(future, future))
    asked(path, folder)
    assert asked(path, folder, b"new") == sha(b"new")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"file": 1}', b"\xff\xfe", b'{"sha256": "ab"}', b"[" * 200_000]
)
def test_a_damaged_record_costs_a_hash(tmp_path: Path, content: bytes) -> None:
    path, folder = settled(tmp_path / "m", b"one"), tmp_path / "hashes"
    asked(path, folder)
    (record,) = folder.iterdir()
    record.write_bytes(content)
    assert asked(path, folder) == sha(b"one")
    assert asked(path, folder, b"not read") == sha(b"one")


def test_a_folder_that_cannot_be_written_costs_a_hash(tmp_path: Path) -> None:
    path = settled(tmp_path / "m", b"one")
    (tmp_path / "hashes").write_bytes(b"in the way")
    assert asked(path, tmp_path / "hashes") == sha(b"one")
