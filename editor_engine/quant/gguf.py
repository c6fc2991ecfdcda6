"""Opens a GGUF file: its metadata, its tensor table, and raw bytes of each tensor as views over a memory map.

Knows nothing of what a model does with them. Invariant: no tensor byte is read or copied until a view is looked at, and
no metadata value is made until it is asked for (a load with a cached tokenizer never makes the 150,000 token strings).
"""

import mmap
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from editor_engine.errors import ModelFileError, ModelMissingError, UnsupportedModelError
from editor_engine.kernels._native import GgufDamagedError, GgufIndex, GgufUnsupportedError

_STRETCH = 16 << 20


@dataclass(frozen=True)
class GgufTensor:
    """One row of the tensor table."""

    name: str
    type_name: str
    """ggml's name of the type: F32, Q4_K, ..."""
    dims: tuple[int, ...]
    """As the file has them: the contiguous dimension first. 1 to 4 of them, none 0."""
    offset: int
    """Bytes from the start of the file."""
    nbytes: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Numpy order: [N, K] for a matrix of N outputs and K inputs, [N] for a vector."""
        return self.dims[::-1]


class _Metadata(Mapping[str, object]):
    """Lazy view: int, float, bool, str, or a list of such."""

    def __init__(self, path: Path, index: GgufIndex) -> None:
        self._path = path
        self._index = index
        self._rows = {key: row for row, key in enumerate(index.keys())}
        self._made: dict[str, object] = {}

    def __getitem__(self, key: str) -> object:
        if key not in self._made:
            row = self._rows[key]
            try:
                self._made[key] = self._index.value(row)
            except GgufDamagedError as error:
                raise damaged_file(self._path, f"{error} ({key})") from error
        return self._made[key]

    def array_length(self, key: str) -> int | None:
        """Elements of the array at `key`, without making them; None where there is no array."""
        row = self._rows.get(key)
        return None if row is None else self._index.array_length(row)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows


class GgufFile:
    """A mapped GGUF file. Raises on opening: ModelMissingError, ModelFileError, UnsupportedModelError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._memory, self.status = _map(path)  # `status` is of the file that was mapped, whatever is at `path` later
        self._bytes = np.frombuffer(self._memory, np.uint8)
        try:
            self._index = GgufIndex(self._bytes)
            self._metadata = _Metadata(path, self._index)
            self.tensors: Mapping[str, GgufTensor] = {row[0]: GgufTensor(*row) for row in self._index.tensors()}
        except GgufDamagedError as error:
            raise damaged_file(path, str(error)) from error
        except GgufUnsupportedError as error:
            raise UnsupportedModelError(f"{path.name} cannot be run: {error}.") from error

    @property
    def metadata(self) -> Mapping[str, object]:
        """Key to int, float, bool, str or list. A value that is not UTF-8 raises ModelFileError when asked for."""
        return self._metadata

    def array_length(self, key: str) -> int | None:
        """Elements of the metadata array at `key`, without making them; None where there is no array."""
        return self._metadata.array_length(key)

    def stretches(self) -> Iterator[npt.NDArray[np.uint8]]:
        """Every byte of the file in order, read-only; no more than one stretch is in memory for it."""
        for start in range(0, len(self._bytes), _STRETCH):
            yield self._bytes[start : start + _STRETCH]
            self.release()

    def release(self) -> None:
        """Give back the memory of all that was read; views stay good, and read the file again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._memory.madvise(mmap.MADV_DONTNEED)

    def raw(self, name: str) -> npt.NDArray[np.uint8]:
        """Read-only bytes of tensor `name`, as stored; a view that keeps the map alive. Raises KeyError."""
        tensor = self.tensors[name]
        return self._bytes[tensor.offset : tensor.offset + tensor.nbytes]

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        """Read-only float32 values of tensor `name`, shape as `GgufTensor.shape`.

        Raises KeyError, UnsupportedModelError.
        """
        tensor = self.tensors[name]
        if tensor.type_name != "F32":
            raise UnsupportedModelError(
                f"{self.path.name} has {name} as {tensor.type_name}; only F32 can be run there."
            )
        return self.raw(name).view(np.float32).reshape(tensor.shape)


def damaged_file(path: Path, what: str) -> ModelFileError:
    """The error of a damaged file; `what` is a clause about it."""
    return ModelFileError(
        f"{path.name} is not a usable model file: {what}. If it was downloaded, `redraft models verify` checks it and "
        "`redraft models pull` fetches it again."
    )


def _map(path: Path) -> tuple[mmap.mmap, os.stat_result]:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would block the open below for ever
            raise ModelFileError(f"{path} is not a regular file.")
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size == 0:
                raise damaged_file(path, "it is empty")
            view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        raise ModelMissingError(f"There is no model file at {path}.") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    return view, status
