"""The safetensors format: reads a file's table of tensors and checks it, writes a file tensor by tensor.

    8 bytes  length of the header, little-endian
    header   JSON: name -> {"dtype", "shape", "data_offsets": [first, end)}, and "__metadata__": texts
    data     the tensors' bytes, one after the other, no byte between them

Light: no numpy, and no tensor byte is read. Invariant: a table that is handed out covers the data of its file without
holes and overlaps, and every tensor has the bytes its shape and type ask for.
"""

import json
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO, TypeGuard

from editor_engine.errors import ModelFileError, UnsupportedModelError
from editor_engine.foreign_json import open_regular, parse_object, shown

HEADER_LIMIT = 32 << 20
"""Most bytes of a header; the largest real ones, of experts by the thousand, have three million."""

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U16": 16, "I32": 32, "U32": 32, "I64": 64, "U64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
}  # fmt: skip
"""Of one element of every type the format has."""

_LENGTH = struct.Struct("<Q")
_METADATA = "__metadata__"
_MOST_DIMENSIONS = 64  # a longer shape is not multiplied out


@dataclass(frozen=True)
class StoredTensor:
    """One row of a file's table."""

    name: str
    dtype: str
    """A key of BITS."""
    shape: tuple[int, ...]
    """Empty for a single number; a dimension may be 0."""
    offset: int
    """Bytes from the start of the file."""
    nbytes: int


@dataclass(frozen=True)
class SafetensorsFile:
    """A file whose table is whole."""

    path: Path
    header: bytes
    """As the file has it."""
    tensors: Mapping[str, StoredTensor]
    """In the order of their bytes."""
    size: int
    """Bytes of the file."""


def read_table(path: Path) -> SafetensorsFile:
    """The table of a file.

    Raises ModelMissingError, ModelFileError for a damaged or shortened file, UnsupportedModelError for a type of tensor
    the format did not have when this was written.
    """
    name = path.name
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size < _LENGTH.size:
            raise _damaged(name, f"it has {size} bytes")
        length = int(_LENGTH.unpack(stream.read(_LENGTH.size))[0])
        if length > HEADER_LIMIT:
            raise _damaged(name, f"its header is said to have {length} bytes")
        if length > size - _LENGTH.size:
            raise _damaged(name, f"its header is said to have {length} bytes and the file has {size}")
        header = stream.read(length)
    start = _LENGTH.size + length
    rows = parse_object(name, header)
    tensors = [_row(name, key, row, start) for key, row in rows.items() if key != _METADATA]
    tensors.sort(key=lambda tensor: (tensor.offset, tensor.nbytes))
    end = start
    for tensor in tensors:
        if tensor.offset != end:
            how = "overlaps the one before it" if tensor.offset < end else "leaves a hole before it"
            raise _damaged(name, f"the tensor {shown(tensor.name)} {how}")
        end += tensor.nbytes
    if end > size:
        raise _damaged(name, f"it has {size} bytes and its tensors need {end}; it was cut, so fetch it again")
    if end < size:
        raise _damaged(name, f"it has {size - end} bytes more than its tensors")
    return SafetensorsFile(path, header, {tensor.name: tensor for tensor in tensors}, size)


def _row(file: str, name: str, row: object, start: int) -> StoredTensor:
    tensor = shown(name)
    if not isinstance(row, dict):
        raise _damaged(file, f"its table has no entry for the tensor {tensor}")
    dtype, shape, offsets = row.get("dtype"), row.get("shape"), row.get("data_offsets")
    if not isinstance(dtype, str):
        raise _damaged(file, f"the tensor {tensor} has no type")
    if dtype not in BITS:
        raise UnsupportedModelError(f"{file} has the tensor {tensor} in {shown(dtype)}, a type unknown to this engine.")
    if not _counts(shape) or len(shape) > _MOST_DIMENSIONS:
        raise _damaged(file, f"the tensor {tensor} has no shape")
    if not _counts(offsets) or len(offsets) != 2:
        raise _damaged(file, f"the table does not say where the tensor {tensor} lies")
    first, end = offsets
    if (end - first) * 8 != prod(shape) * BITS[dtype]:
        raise _damaged(file, f"the tensor {tensor} of the shape {shown(shape)} in {dtype} has {end - first} bytes")
    return StoredTensor(name, dtype, tuple(shape), start + first, end - first)


def _counts(value: object) -> TypeGuard[list[int]]:
    """A list of numbers that can count something."""
    return isinstance(value, list) and all(
        isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**63 for number in value
    )


def _damaged(name: str, what: str) -> ModelFileError:
    return ModelFileError(f"{name} is damaged: {what}.")


@dataclass(frozen=True)
class PlannedTensor:
    """A tensor that will be written."""

    name: str
    dtype: str
    """A key of BITS."""
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * BITS[self.dtype] // 8


def write_header(stream: BinaryIO, tensors: Sequence[PlannedTensor], metadata: Mapping[str, str]) -> None:
    """Begin a file; the bytes of `tensors` follow, in this order and written by the caller. Raises OSError."""
    table: dict[str, object] = {_METADATA: dict(metadata)}
    end = 0
    for tensor in tensors:
        table[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [end, end + tensor.nbytes],
        }
        end += tensor.nbytes
    header = json.dumps(table, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # data that is aligned can be mapped
    stream.write(_LENGTH.pack(len(header)) + header)


def shards(tensors: Iterable[PlannedTensor], limit: int) -> list[list[PlannedTensor]]:
    """`tensors` in their order, cut into files of at most `limit` bytes of data, a larger tensor alone in one."""
    found: list[list[PlannedTensor]] = []
    size = 0
    for tensor in tensors:
        if not found or size + tensor.nbytes > limit:
            found.append([])
            size = 0
        found[-1].append(tensor)
        size += tensor.nbytes
    return found
