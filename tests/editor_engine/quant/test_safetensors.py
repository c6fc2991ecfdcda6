"""The table of a safetensors file: what the public library writes is read, what is damaged is refused in words."""

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.errors import EngineError, ModelFileError, ModelMissingError, UnsupportedModelError
from editor_engine.quant.safetensors import HEADER_LIMIT, PlannedTensor, read_table, shards, write_header


def written(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    """A file with that header, JSON or raw bytes, whatever it says of itself."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw + data)
    return path


def entry(first: int, end: int, dtype: object = "F32", shape: object = None) -> dict[str, object]:
    return {"dtype": dtype, "shape": [(end - first) // 4] if shape is None else shape, "data_offsets": [first, end]}


def test_a_file_of_the_public_library_is_read(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    arrays = {
        "matrix": np.arange(12, dtype=np.float32).reshape(3, 4),
        "half": np.ones(5, np.float16),
        "none": np.zeros((0, 7), np.float32),
        "one": np.array(3, np.int64),
    }
    path = tmp_path / "model.safetensors"
    numpy.save_file(arrays, path, metadata={"format": "pt"})
    table = read_table(path)
    assert {name: (tensor.dtype, tensor.shape) for name, tensor in table.tensors.items()} == {
        "matrix": ("F32", (3, 4)),
        "half": ("F16", (5,)),
        "none": ("F32", (0, 7)),
        "one": ("I64", ()),
    }
    matrix = table.tensors["matrix"]
    stored = path.read_bytes()[matrix.offset : matrix.offset + matrix.nbytes]
    assert np.array_equal(np.frombuffer(stored, "<f4").reshape(3, 4), arrays["matrix"])
    assert table.size == path.stat().st_size


def test_a_file_of_ours_is_read_by_the_public_library(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    arrays = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.arange(4, dtype=np.float16)}
    path = tmp_path / "ours.safetensors"
    with path.open("wb") as stream:
        write_header(stream, [PlannedTensor("b", "F32", (2, 3)), PlannedTensor("a", "F16", (4,))], {"format": "pt"})
        for array in arrays.values():
            stream.write(array.tobytes())
    found = numpy.load_file(path)
    assert found.keys() == arrays.keys()
    assert all(np.array_equal(found[name], array) for name, array in arrays.items())
    assert list(read_table(path).tensors) == ["b", "a"]


BROKEN: list[tuple[object, bytes, str]] = [
    (b"{", b"", "is damaged"),
    (b"[]", b"", "holds no JSON object"),
    (b"\xff\xfe{}", b"", "is damaged"),
    (b"[" * 100_000, b"", "nested too deeply"),
    (b'{"a": NaN}', b"", "NaN is no number"),
    (b'{"a": {}, "a": {}}', b"", "'a' twice"),
    ({"a": 3}, b"", "no entry for the tensor 'a'"),
    ({"a": entry(0, 4, dtype=4)}, b"1234", "has no type"),
    ({"a": entry(0, 4, shape="1")}, b"1234", "has no shape"),
    ({"a": entry(0, 4, shape=[True])}, b"1234", "has no shape"),
    ({"a": entry(0, 4, shape=[-1])}, b"1234", "has no shape"),
    ({"a": entry(0, 4, shape=[1] * 99)}, b"1234", "has no shape"),
    ({"a": {**entry(0, 4), "data_offsets": [0.0, 4.0]}}, b"1234", "does not say where"),
    ({"a": {**entry(0, 4), "data_offsets": [0]}}, b"1234", "does not say where"),
    ({"a": {**entry(0, 4), "data_offsets": [4, 0]}}, b"1234", "has -4 bytes"),
    ({"a": entry(0, 4, shape=[2])}, b"1234", "has 4 bytes"),
    ({"a": entry(0, 4, shape=[2**62, 2**62, 0, 9])}, b"1234", "has 4 bytes"),
    ({"a": entry(0, 4), "b": entry(0, 4)}, b"1234", "'b' overlaps the one before it"),
    ({"a": entry(0, 4), "b": entry(8, 12)}, b"123456789012", "'b' leaves a hole before it"),
    ({"a": entry(0, 8)}, b"1234", "it was cut"),
    ({"a": entry(0, 4)}, b"12345", "1 bytes more"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "data", "words"), BROKEN, ids=[words for _, _, words in BROKEN])
def test_a_damaged_table_is_refused_in_words(tmp_path: Path, header: object, data: bytes, words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        read_table(written(tmp_path / "x.safetensors", header, data))
    assert str(caught.value).startswith("x.safetensors is damaged")


def test_a_type_of_tomorrow_is_not_called_damage(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="'a' in 'Q3', a type unknown"):
        read_table(written(tmp_path / "x.safetensors", {"a": entry(0, 4, dtype="Q3")}, b"1234"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it has 0 bytes"),
        (b"1234567", "it has 7 bytes"),
        (struct.pack("<Q", 2**64 - 1) + b"{}", "said to have 18446744073709551615 bytes"),
        (struct.pack("<Q", HEADER_LIMIT + 1) + b"{}", "said to have"),
        (struct.pack("<Q", 3) + b"{}", "said to have 3 bytes and the file has 10"),
    ],
)
def test_lengths_that_cannot_be(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=words):
        read_table(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match="There is no file"):
        read_table(tmp_path / "absent.safetensors")
    os.mkfifo(tmp_path / "pipe.safetensors")
    for name in (".", "pipe.safetensors"):
        with pytest.raises(ModelFileError, match="is not a regular file"):
            read_table(tmp_path / name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.fixed_dictionaries(
    {},
    optional={"dtype": st.sampled_from(["F32", "BF16", "F4", "?"]) | JSON, "shape": st.lists(st.integers(0, 3)) | JSON,
              "data_offsets": st.lists(st.integers(0, 9), min_size=2, max_size=2) | JSON},
)  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=400)
@given(header=st.dictionaries(st.text(max_size=4), ENTRIES | JSON, max_size=4), data=st.binary(max_size=16))
def test_any_table_is_read_or_refused_and_what_is_read_covers_the_file(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any], data: bytes
) -> None:
    path = written(tmp_path_factory.getbasetemp() / "fuzz.safetensors", header, data)
    try:
        table = read_table(path)
    except EngineError as error:
        assert str(error).endswith(".")
        return
    covered = [
        byte for tensor in table.tensors.values() for byte in range(tensor.offset, tensor.offset + tensor.nbytes)
    ]
    assert covered == list(range(table.size - len(data), table.size))


@settings(derandomize=True, deadline=None, max_examples=400)
@given(data=st.data())
def test_any_flipped_byte_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    header = {"__metadata__": {"format": "pt"}, "a": entry(0, 8), "b": entry(8, 12, "U8", [4])}
    path = written(tmp_path_factory.getbasetemp() / "flip.safetensors", header, bytes(12))
    raw = bytearray(path.read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    try:
        table = read_table(path)
    except EngineError as error:
        assert str(error).endswith(".")
    else:
        assert sum(tensor.nbytes for tensor in table.tensors.values()) == 12


@settings(derandomize=True, deadline=None)
@given(sizes=st.lists(st.integers(0, 9), max_size=9), limit=st.integers(0, 20))
def test_shards_keep_order_and_limit(sizes: list[int], limit: int) -> None:
    tensors = [PlannedTensor(str(number), "U8", (size,)) for number, size in enumerate(sizes)]
    groups = shards(tensors, limit)
    assert [tensor for group in groups for tensor in group] == tensors
    assert all(len(group) == 1 or sum(tensor.nbytes for tensor in group) <= limit for group in groups)
