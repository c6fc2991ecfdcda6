"""A file is put in its place whole or not at all, and neither a failure nor a kill leaves anything beside it."""

import errno
import fcntl
import os
import resource
import signal
from pathlib import Path

import pytest

from editor_engine.atomic_file import write_atomically
from editor_engine.scratch_file import scratch_file, sweep
from tests.support.saboteur import die, in_child


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "facts.json"
    for data in (b"old", b"", b"new" * 10_000):
        write_atomically(path, data, durable=durable)
        assert path.read_bytes() == data
        assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("call", ["replace", "fsync"])
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


def test_a_file_that_may_not_be_written_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_atomically(path, b"new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("call", ["replace", "fstat"])
def test_what_a_killed_one_left_goes_with_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path, other = tmp_path / "facts[1].json", tmp_path / ".facts[1].json.new"
    other.write_bytes(b"not ours")

    def killed() -> None:
        monkeypatch.setattr(os, call, lambda *_: die())
        write_atomically(path, b"new")

    assert in_child(killed) == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 2
    write_atomically(path, b"newer")
    assert path.read_bytes() == b"newer" and other.read_bytes() == b"not ours"
    assert len(os.listdir(tmp_path)) == 2


def test_a_living_writer_keeps_its_file(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    with scratch_file(tmp_path, ".facts.json-", ".new") as stream:
        write_atomically(path, b"another one's")
        stream.write(b"mine")
        stream.flush()
        os.replace(stream.name, path)
    assert path.read_bytes() == b"mine" and os.listdir(tmp_path) == [path.name]


def test_a_file_swept_before_it_is_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "facts.json"
    lock = fcntl.flock
    orders = []

    def late(fd: int, order: int) -> None:
        orders.append(order)
        if orders == [fcntl.LOCK_EX]:
            sweep(tmp_path, "*.new")
        lock(fd, order)

    monkeypatch.setattr(fcntl, "flock", late)
    write_atomically(path, b"new")
    assert orders == [fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_EX]
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == [path.name]


def test_where_nothing_can_be_locked_files_are_written_and_nothing_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / ".facts.json-x.new"
    left.write_bytes(b"perhaps a living one's")

    def refused(fd: int, order: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    write_atomically(tmp_path / "facts.json", b"new")
    assert sorted(os.listdir(tmp_path)) == [left.name, "facts.json"]


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "facts.json", b"")
