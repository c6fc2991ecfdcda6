"""The cache of packed weights: same bytes whatever happened to the file, to the folder, or to another process."""

import errno
import multiprocessing
import multiprocessing.synchronize
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from editor_engine.quant.packed_cache import Matrix, Packed, cache_file, packed_weights

SHA = "a" * 64
LAYOUT = 3
Bytes = npt.NDArray[np.uint8]


def pack(matrix: Matrix) -> Bytes:
    """Stands in for the kernels: another order and a tail, so that copies of the source cannot pass."""
    tail = f"{matrix.type_name}{matrix.outputs}x{matrix.inputs}".encode()
    return np.concatenate([matrix.raw[::-1], np.frombuffer(tail, np.uint8)])


def refuses_to_pack(matrix: Matrix) -> Bytes:
    raise AssertionError("packed again although the cache is whole")


def matrices(seed: int = 0) -> list[Matrix]:
    rng = np.random.default_rng(seed)
    sizes = (("a.weight", 700), ("b.weight", 1), ("c.weight", 65536))
    return [Matrix(name, "Q8_0", size, 32, rng.integers(0, 256, size, np.uint8)) for name, size in sizes]


def assert_right(packed: Packed, seed: int = 0) -> None:
    wanted = {m.name: pack(m) for m in matrices(seed)}
    assert list(packed.tensors) == list(wanted)
    for name, data in packed.tensors.items():
        assert np.array_equal(data, wanted[name])


def made(folder: Path) -> Path:
    assert_right(packed_weights(folder, SHA, LAYOUT, matrices(), pack))
    return cache_file(folder, LAYOUT)


def test_packed_once_and_mapped_ever_after(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    path = made(folder)
    again = packed_weights(folder, SHA, LAYOUT, matrices(), refuses_to_pack)
    assert_right(again)
    assert again.note is None
    assert all(view.ctypes.data % 64 == 0 and not view.flags.writeable for view in again.tensors.values())
    assert list(folder.iterdir()) == [path]


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def _extend(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _keep_time(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """The same damage by something that puts the time stamp back."""

    def damage(path: Path) -> None:
        status = path.stat()
        change(path)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return damage


def _byte(at: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        raw = bytearray(path.read_bytes())
        raw[at] ^= 1
        path.write_bytes(raw)

    return damage


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE = {
    "truncated": _keep_time(_truncate),
    "extended": _keep_time(_extend),
    "empty": _keep_time(_empty),
    "magic": _keep_time(_byte(0)),
    "header length": _keep_time(_byte(14)),
    "header hash": _keep_time(_byte(20)),
    "header": _keep_time(_byte(60)),
    "weights": _byte(-100),
    "cut and time": _truncate,
    "a pipe": _pipe,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_cache_is_packed_again(tmp_path: Path, name: str) -> None:
    path = made(tmp_path)
    DAMAGE[name](path)
    again = packed_weights(tmp_path, SHA, LAYOUT, matrices(), pack)
    assert_right(again)
    assert again.note is None
    assert_right(packed_weights(tmp_path, SHA, LAYOUT, matrices(), refuses_to_pack))


def test_every_header_byte_counts(tmp_path: Path) -> None:
    path = made(tmp_path)
    whole = path.read_bytes()
    status = path.stat()
    for at in range(0, 400, 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :])
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert_right(packed_weights(tmp_path, SHA, LAYOUT, matrices(), pack))


def test_cache_of_another_model_layout_or_table_is_not_used(tmp_path: Path) -> None:
    made(tmp_path)
    assert_right(packed_weights(tmp_path, "b" * 64, LAYOUT, matrices(1), pack), seed=1)
    shutil.copy2(cache_file(tmp_path, LAYOUT), cache_file(tmp_path, LAYOUT + 1))
    fewer = packed_weights(tmp_path, "b" * 64, LAYOUT + 1, matrices(1)[:2], pack)
    assert list(fewer.tensors) == ["a.weight", "b.weight"]


def test_older_layouts_and_dead_temporaries_are_swept(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / f"packed-v{LAYOUT}.killed.tmp").write_bytes(b"half")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    packed_weights(tmp_path, SHA, LAYOUT + 1, matrices(), pack)
    assert {path.name for path in tmp_path.iterdir()} == {f"packed-v{LAYOUT + 1}", "tokenizer.json"}


def test_a_place_that_cannot_be_written_costs_memory_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_bytes(b"")
    packed = packed_weights(folder, SHA, LAYOUT, matrices(), pack)
    assert_right(packed)
    assert packed.note is not None and str(folder) in packed.note


def test_a_folder_in_the_way_costs_memory_and_says_so(tmp_path: Path) -> None:
    _folder(made(tmp_path))
    packed = packed_weights(tmp_path, SHA, LAYOUT, matrices(), pack)
    assert_right(packed)
    assert packed.note is not None
    assert [path.name for path in tmp_path.iterdir()] == [f"packed-v{LAYOUT}"]


def test_no_space_before_or_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
        packed = packed_weights(tmp_path, SHA, LAYOUT, matrices(), pack)
    assert_right(packed)
    assert packed.note is not None and "No space left" in packed.note

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        packed = packed_weights(tmp_path, SHA, LAYOUT, matrices(), pack)
    assert_right(packed)
    assert packed.note is not None and "No space left" in packed.note
    assert list(tmp_path.iterdir()) == []


def test_what_packing_raises_reaches_the_caller_and_leaves_nothing(tmp_path: Path) -> None:
    def fails(matrix: Matrix) -> Bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        packed_weights(tmp_path, SHA, LAYOUT, matrices(), fails)
    assert list(tmp_path.iterdir()) == []


def _pack_at_once(
    folder: Path, barrier: multiprocessing.synchronize.Barrier, answers: "multiprocessing.Queue[bool]"
) -> None:
    def meet(matrix: Matrix) -> Bytes:
        barrier.wait(30)  # both are inside the writing of the same tensor
        return pack(matrix)

    try:
        assert_right(packed_weights(folder, SHA, LAYOUT, matrices(), meet))
        answers.put(True)
    except BaseException:
        answers.put(False)
        raise


def test_two_processes_may_pack_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(2), context.Queue()
    workers = [context.Process(target=_pack_at_once, args=(tmp_path, barrier, answers)) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert [answers.get(timeout=60), answers.get(timeout=60)] == [True, True]
    for worker in workers:
        worker.join()
    assert_right(packed_weights(tmp_path, SHA, LAYOUT, matrices(), refuses_to_pack))
    assert [path.name for path in tmp_path.iterdir()] == [f"packed-v{LAYOUT}"]
