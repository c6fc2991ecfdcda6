"""Keeps packed weights on disk, so that a model is repacked once per machine and layout and mapped ever after.

Knows nothing of layers; it gets a list of matrices and a function that packs one. Invariant: what `packed_weights`
returns is what packing the sources now would return, byte for byte, whatever state the cache is in: a file that is not
exactly the one that was written is packed again, and a cache that cannot be written costs memory, never an error.

File: magic, length and SHA-256 of a JSON header, the header, then each tensor at a multiple of 64 bytes. It is written
under a temporary name, flushed, renamed. Its time stamp is set to the one in the header, so that a later write by
anything else shows without reading a gigabyte at each load.
"""

import contextlib
import errno
import hashlib
import json
import logging
import mmap
import os
import shutil
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from editor_engine.atomic_file import flush_folder
from editor_engine.errors import ModelFileError, ModelMissingError
from editor_engine.foreign_json import open_regular, parse_object
from editor_engine.scratch_file import scratch_file, sweep

Bytes = npt.NDArray[np.uint8]
_MAGIC = b"RDPACK01"
_ALIGNMENT = 64
_SPARE_BYTES = 64 << 20  # never fill a disk to the last byte for a cache
_MAX_HEADER = 16 << 20

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Matrix:
    """A weight matrix as the model file has it."""

    name: str
    type_name: str
    """ggml's name: Q4_K, ..."""
    outputs: int
    """N, rows of the file's matrix."""
    inputs: int
    """K."""
    raw: Bytes
    """N * K weights in GGUF's blocks."""


PackFunction = Callable[[Matrix], Bytes]
"""A matrix to its packed bytes."""


@dataclass(frozen=True)
class Packed:
    """Packed weights, by name of the matrix."""

    tensors: Mapping[str, Bytes]
    """Read-only when they are a map's, which they keep alive."""
    note: str | None
    """None: views of the cache file, which the system may drop from memory and read again. Else the cache could not be
    used, they are held in memory, and this is a sentence for the user."""


class _Stale(Exception):
    """The cache file is not the one wanted; the text says why."""


def cache_file(folder: Path, layout: int) -> Path:
    """Where packed weights of a layout lie inside the cache folder of one model file."""
    return folder / f"packed-v{layout}"


def packed_weights(folder: Path, sha256: str, layout: int, matrices: Sequence[Matrix], pack: PackFunction) -> Packed:
    """Packed `matrices`, from the cache in `folder` when it is whole, else packed now and kept there.

    `sha256` is of the model file and `layout` the version of what `pack` makes; a cache of another one is not used.
    Raises what `pack` raises.
    """
    path = cache_file(folder, layout)
    try:
        return Packed(_mapped(path, sha256, layout, matrices), note=None)
    except ModelMissingError:
        log.info("no packed weights at %s", path)
    except (_Stale, ModelFileError) as reason:
        log.info("packing again, %s: %s", path, reason)
    try:
        _write(path, sha256, layout, matrices, pack)
        return Packed(_mapped(path, sha256, layout, matrices), note=None)
    except (_Stale, ModelFileError, ModelMissingError, OSError) as reason:
        log.info("packed weights are not kept, %s: %s", path, reason)
        words = os.strerror(reason.errno) if isinstance(reason, OSError) and reason.errno else str(reason)
        note = f"Packed weights cannot be kept in {folder} ({words}); this load and every later one packs them anew."
    return Packed({m.name: pack(m) for m in matrices}, note=note)


def _mapped(path: Path, sha256: str, layout: int, matrices: Sequence[Matrix]) -> dict[str, Bytes]:
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        header, start = _read_header(file)
        if (header.get("sha256"), header.get("layout")) != (sha256, layout):
            raise _Stale("made from another model file or for another layout")
        if header.get("mtime_ns") != status.st_mtime_ns:
            raise _Stale("written to after it was made")
        wanted = [[m.name, m.type_name, m.outputs, m.inputs] for m in matrices]
        rows = header["tensors"]
        if [row[:4] for row in rows] != wanted:
            raise _Stale("holds other tensors")
        if status.st_size != start + header["bytes"]:
            raise _Stale("has another size")
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_WILLNEED"):  # read ahead while the tokenizer loads
        memory.madvise(mmap.MADV_WILLNEED)
    view = np.frombuffer(memory, np.uint8)
    return {name: view[start + offset : start + offset + size] for name, _, _, _, offset, size in rows}


def _read_header(file: IO[bytes]) -> tuple[dict[str, Any], int]:
    """The checked header and where the tensors start."""
    fixed = file.read(len(_MAGIC) + 8 + 32)
    if len(fixed) != len(_MAGIC) + 40 or fixed[:8] != _MAGIC:
        raise _Stale("does not begin like one")
    (length,) = struct.unpack("<Q", fixed[8:16])
    if length > _MAX_HEADER:
        raise _Stale("has a damaged header")
    text = file.read(length)
    if hashlib.sha256(text).digest() != fixed[16:]:
        raise _Stale("has a damaged header")
    return parse_object("it", text), _aligned(len(fixed) + length)


def _write(path: Path, sha256: str, layout: int, matrices: Sequence[Matrix], pack: PackFunction) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent, layout)
    if shutil.disk_usage(path.parent).free < sum(m.raw.nbytes for m in matrices) + _SPARE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with scratch_file(path.parent, f"{path.name}.", ".tmp") as file:
        # The offsets are known only after packing: tensors first, at the place a header of this size leaves them.
        rows: list[list[Any]] = [[m.name, m.type_name, m.outputs, m.inputs, 2**53, 2**53] for m in matrices]
        made_ns = int(time.time()) * 10**9  # a whole second: every file system keeps it exactly
        header = {"sha256": sha256, "layout": layout, "mtime_ns": made_ns, "bytes": 2**53}
        room = len(json.dumps(header | {"tensors": rows}))
        start = _aligned(len(_MAGIC) + 40 + room)
        offset = 0
        for row, matrix in zip(rows, matrices, strict=True):
            data = pack(matrix)
            file.seek(start + offset)
            file.write(data.data)
            row[4:] = [offset, data.nbytes]
            offset = _aligned(offset + data.nbytes)
        header["bytes"] = offset
        file.truncate(start + offset)
        text = json.dumps(header | {"tensors": rows}).ljust(room).encode()
        file.seek(0)
        file.write(_MAGIC + struct.pack("<Q", len(text)) + hashlib.sha256(text).digest() + text)
        file.flush()
        os.utime(file.fileno(), ns=(made_ns, made_ns))
        os.fsync(file.fileno())
        os.rename(file.name, path)
    flush_folder(path.parent)


def _sweep(folder: Path, layout: int) -> None:
    """Remove what killed writers left, and packed weights of older layouts."""
    sweep(folder, "packed-v*.tmp")
    for path in folder.glob("packed-v*"):
        version = path.name.removeprefix("packed-v")
        if version.isdecimal() and int(version) < layout:
            with contextlib.suppress(OSError):  # another process may sweep as well
                path.unlink()


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
