"""The GGUF face: the same table and bytes as the independent package `gguf`, one sentence when damaged."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from editor_engine.errors import EngineError, ModelFileError, ModelMissingError, UnsupportedModelError
from editor_engine.quant.gguf import GgufFile
from tests.support.tiny_gguf import GgufSource, tiny_source, write_tiny


def assert_reads_as_the_gguf_package_does(path: Path) -> None:
    reader = pytest.importorskip("gguf").GGUFReader(path)
    ours = GgufFile(path)
    theirs = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    assert dict(ours.metadata) == theirs
    assert list(ours.tensors) == [tensor.name for tensor in reader.tensors]
    for tensor in reader.tensors:
        mine = ours.tensors[tensor.name]
        assert mine.type_name == tensor.tensor_type.name
        assert mine.dims == tuple(int(dim) for dim in tensor.shape)
        assert (mine.offset, mine.nbytes) == (int(tensor.data_offset), int(tensor.n_bytes))
        assert np.array_equal(ours.raw(tensor.name), tensor.data.view(np.uint8).reshape(-1))


@pytest.mark.parametrize("family", ["qwen2", "llama"])
@pytest.mark.parametrize("kind", ["Q4_0", "Q6_K", "F16"])
def test_tiny_files_read_as_the_gguf_package_reads_them(tmp_path: Path, family: str, kind: str) -> None:
    assert_reads_as_the_gguf_package_does(write_tiny(tmp_path / "tiny.gguf", family, kind=kind))


@pytest.mark.model
def test_smollm2_reads_as_the_gguf_package_reads_it(smollm2_path: Path) -> None:
    assert_reads_as_the_gguf_package_does(smollm2_path)


@pytest.mark.model
@pytest.mark.slow  # the other reader takes 14 s
def test_qwen_reads_as_the_gguf_package_reads_it(qwen05_path: Path) -> None:
    assert_reads_as_the_gguf_package_does(qwen05_path)


def test_views_are_read_only(tmp_path: Path) -> None:
    raw = GgufFile(write_tiny(tmp_path / "tiny.gguf")).raw("output.weight")
    with pytest.raises(ValueError, match="read-only"):
        raw[0] = 1


def test_a_view_outlives_its_file(tmp_path: Path) -> None:
    source = tiny_source()
    raw = GgufFile(source.write(tmp_path / "tiny.gguf")).raw("output.weight")
    assert raw.tobytes() == source.tensors["output.weight"][2]


def test_version_2_is_read(tmp_path: Path) -> None:
    source = tiny_source()
    source.version = 2
    assert len(GgufFile(source.write(tmp_path / "tiny.gguf")).tensors) == len(source.tensors)


def _version(version: int) -> Callable[[GgufSource], bytes]:
    def change(source: GgufSource) -> bytes:
        source.version = version
        return source.to_bytes()

    return change


def _tensor(name: str, kind: str, dims: tuple[int, ...]) -> Callable[[GgufSource], bytes]:
    def change(source: GgufSource) -> bytes:
        source.tensors[name] = (kind, dims, b"")
        return source.to_bytes()

    return change


def _metadata(key: str, value: object) -> Callable[[GgufSource], bytes]:
    def change(source: GgufSource) -> bytes:
        source.metadata[key] = value
        return source.to_bytes()

    return change


def _replaced(old: bytes, new: bytes) -> Callable[[GgufSource], bytes]:
    def change(source: GgufSource) -> bytes:
        raw = source.to_bytes()
        assert raw.count(old) == 1
        return raw.replace(old, new)

    return change


def _row(name: str, kind: int, offset: int, dims: tuple[int, ...]) -> bytes:
    return name.encode() + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


DAMAGE: dict[str, tuple[Callable[[GgufSource], bytes], type[EngineError], str]] = {
    "magic": (lambda source: b"GGML" + source.to_bytes()[4:], ModelFileError, "does not begin like a GGUF file"),
    "empty": (lambda source: b"", ModelFileError, "is empty"),
    "three bytes": (lambda source: b"GGU", ModelFileError, "does not begin like"),
    "header only": (lambda source: source.to_bytes()[:20], ModelFileError, "ends inside the header"),
    "version 1": (_version(1), UnsupportedModelError, "GGUF version 1"),
    "version 4": (_version(4), UnsupportedModelError, "GGUF version 4"),
    "big endian": (_version(3 << 24), UnsupportedModelError, "big-endian"),
    "cut weights": (lambda source: source.to_bytes()[:-4096], ModelFileError, "past the end of the file"),
    "cut table": (lambda source: source.to_bytes()[:2000], ModelFileError, "claims|ends inside"),
    "tensor count": (
        lambda source: source.to_bytes()[:8] + b"\xff" * 8 + source.to_bytes()[16:],
        ModelFileError,
        "claims 18446744073709551615 tensors",
    ),
    "entry count": (
        lambda source: source.to_bytes()[:16] + b"\xff" * 8 + source.to_bytes()[24:],
        ModelFileError,
        "claims 18446744073709551615 metadata entries",
    ),
    "empty dimension": (_tensor("x", "F32", (0, 4)), ModelFileError, "'x' has an empty dimension"),
    "no dimensions": (_tensor("x", "F32", ()), ModelFileError, "'x' has 0 dimensions"),
    "five dimensions": (_tensor("x", "F32", (1,) * 5), ModelFileError, "'x' has 5 dimensions"),
    "huge": (_tensor("x", "F32", (1 << 40, 1 << 40)), ModelFileError, "'x' is impossibly large"),
    "past the end": (_tensor("x", "F32", (1 << 20,)), ModelFileError, "'x' reaches past the end"),
    "half a block": (_tensor("x", "Q4_K", (128, 2)), ModelFileError, "'x' has rows of 128 weights"),
    "control characters": (_tensor("x\x1b[2J", "F32", (0,)), ModelFileError, r"'x\?\[2J' has an empty"),
    "alignment 0": (_metadata("general.alignment", 0), ModelFileError, "general.alignment is 0"),
    "alignment 48": (_metadata("general.alignment", 48), ModelFileError, "general.alignment is 48"),
    "alignment text": (_metadata("general.alignment", "32"), ModelFileError, "general.alignment is not"),
    "array count": (
        _metadata("x", (9, struct.pack("<IQ", 8, 1 << 61))),
        ModelFileError,
        "array claims 2305843009213693952 elements",
    ),
    "deep arrays": (
        _metadata("x", (9, struct.pack("<IQ", 9, 1) * 40 + struct.pack("<IQ", 0, 0))),
        ModelFileError,
        "nested too deeply",
    ),
    "value type": (_metadata("x", (13, b"\0" * 8)), ModelFileError, "unknown type 13"),
    "flag": (_metadata("x", (7, b"\2")), ModelFileError, "neither true nor false"),
    "string length": (_metadata("x", (8, b"\xff" * 8)), ModelFileError, "a metadata string has a length"),
    "twice a key": (
        _replaced(b"tokenizer.ggml.eos_token_id", b"tokenizer.ggml.bos_token_id"),
        ModelFileError,
        "'tokenizer.ggml.bos_token_id' is there twice",
    ),
    "twice a tensor": (
        _replaced(b"blk.1.attn_norm.weight", b"blk.0.attn_norm.weight"),
        ModelFileError,
        "'blk.0.attn_norm.weight' is there twice",
    ),
    "tensor type": (
        _replaced(_row("token_embd.weight", 8, 0, (64, 315)), _row("token_embd.weight", 99, 0, (64, 315))),
        UnsupportedModelError,
        "'token_embd.weight' has the unknown type 99",
    ),
    "misaligned": (
        _replaced(_row("token_embd.weight", 8, 0, (64, 315)), _row("token_embd.weight", 8, 8, (64, 315))),
        ModelFileError,
        "'token_embd.weight' is not aligned",
    ),
    "offset": (
        _replaced(_row("token_embd.weight", 8, 0, (64, 315)), _row("token_embd.weight", 8, 2**64 - 32, (64, 315))),
        ModelFileError,
        "'token_embd.weight' reaches past the end",
    ),
    "overlap": (
        _replaced(_row("token_embd.weight", 8, 0, (64, 315)), _row("token_embd.weight", 8, 32, (64, 315))),
        ModelFileError,
        "'token_embd.weight' and 'blk.0.attn_norm.weight' overlap",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_one_sentence_that_names_the_file(tmp_path: Path, name: str) -> None:
    change, error, words = DAMAGE[name]
    path = tmp_path / "broken.gguf"
    path.write_bytes(change(tiny_source()))
    with pytest.raises(error, match=words) as caught:
        GgufFile(path)
    assert type(caught.value) is error
    assert str(caught.value).startswith("broken.gguf ")


def test_text_that_is_not_utf8_is_damage_when_it_is_asked_for(tmp_path: Path) -> None:
    source = tiny_source()
    source.metadata["general.author"] = (8, struct.pack("<Q", 1) + b"\xff")
    file = GgufFile(source.write(tmp_path / "broken.gguf"))
    assert file.metadata["general.name"] == "Tiny qwen2"
    with pytest.raises(ModelFileError, match=r"not UTF-8 \(general.author\)"):
        file.metadata["general.author"]


def test_missing_and_odd_files(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match="no model file at"):
        GgufFile(tmp_path / "absent.gguf")
    with pytest.raises(ModelFileError, match="not a regular file"):
        GgufFile(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ModelFileError, match=r"loop cannot be read: Too many levels"):
        GgufFile(tmp_path / "loop")


def test_a_vector_must_be_f32(tmp_path: Path) -> None:
    source = tiny_source()
    source.tensors["output_norm.weight"] = ("F16", (64,), bytes(128))
    file = GgufFile(source.write(tmp_path / "tiny.gguf"))
    assert file.vector("blk.0.ffn_norm.weight").shape == (64,)
    with pytest.raises(UnsupportedModelError, match="as F16; only F32"):
        file.vector("output_norm.weight")
