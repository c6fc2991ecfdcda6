"""The weights of a folder: shards, types, pickles, and the hash that tells checkpoints apart."""

import os
from pathlib import Path

import pytest

from editor_engine.errors import ModelFileError, ModelMissingError, UnsupportedModelError
from editor_engine.models.hf.checkpoint import open_folder
from tests.support.light_checkpoints import TENSORS, light_checkpoint, write_json, write_weights


def sharded(folder: Path) -> Path:
    """The same folder with its weights in two files and an index."""
    light_checkpoint(folder)
    (folder / "model.safetensors").unlink()
    names = {}
    for number, part in enumerate((list(TENSORS)[:2], list(TENSORS)[2:]), 1):
        shard = f"model-{number:05}-of-00002.safetensors"
        write_weights(folder / shard, {name: TENSORS[name] for name in part})
        names |= {name: shard for name in part}
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": 1}, "weight_map": names})
    return folder


def test_shards_are_one_checkpoint(tmp_path: Path) -> None:
    whole, parts = open_folder(light_checkpoint(tmp_path / "whole")), open_folder(sharded(tmp_path / "parts"))
    assert parts.weights_bytes == whole.weights_bytes
    assert parts.tensors.keys() == whole.tensors.keys()
    assert [path.name for path in parts.weights] == [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ({}, "does not say which file has which tensor"),
        ({"weight_map": []}, "does not say which file"),
        ({"weight_map": {"a": 3}}, "does not say which file"),
        ({"weight_map": {"a": "../other/model.safetensors"}}, "is no name of a file beside it"),
        ({"weight_map": {"a": "/etc/passwd"}}, "is no name of a file beside it"),
        ({"weight_map": {"a": "pytorch_model.bin"}}, "is no name of a file beside it"),
        ({"weight_map": {"a": "model-00001-of-00002.safetensors"}}, "has no tensor 'a'"),
        (
            {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00009-of-00009.safetensors"}},
            r"lacks 1 of 2 files of weights, model-00009-of-00009\.safetensors first; fetch them again",
        ),
    ],
)
def test_an_index_that_names_what_is_not_there(tmp_path: Path, index: object, words: str) -> None:
    folder = sharded(tmp_path)
    write_json(folder / "model.safetensors.index.json", index)
    with pytest.raises(ModelFileError, match=words):
        open_folder(folder)


def test_a_tensor_in_two_shards_is_damage(tmp_path: Path) -> None:
    folder = sharded(tmp_path)
    write_weights(folder / "model-00002-of-00002.safetensors", TENSORS)
    with pytest.raises(ModelFileError, match="one tensor in two files"):
        open_folder(folder)


def test_a_shortened_file_is_seen_at_the_door(tmp_path: Path) -> None:
    folder = light_checkpoint(tmp_path)
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="it was cut, so fetch it again"):
        open_folder(folder)


@pytest.mark.parametrize("pickle", ["pytorch_model.bin", "model.pt", "model.pth", "last.ckpt", "weights.pkl"])
def test_pickled_weights_are_refused_and_never_opened(tmp_path: Path, pickle: str) -> None:
    folder = light_checkpoint(tmp_path / "tiny")
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / pickle)  # whoever opened it would hang
    with pytest.raises(UnsupportedModelError, match=rf"tiny has pickled weights \({pickle}\).*only safetensors are"):
        open_folder(folder)
    write_weights(folder / "model.safetensors", TENSORS)  # with safetensors beside it, nobody reads the pickle
    assert open_folder(folder).weights == (folder / "model.safetensors",)


def test_no_weights_at_all(tmp_path: Path) -> None:
    folder = light_checkpoint(tmp_path)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelMissingError, match=r"has no weights \(model\.safetensors or"):
        open_folder(folder)
    (folder / "tiny.gguf").touch()
    with pytest.raises(ModelMissingError, match=r"to run tiny\.gguf, give the path of that file"):
        open_folder(folder)


def test_types_that_cannot_be_multiplied(tmp_path: Path) -> None:
    eights = {**TENSORS, "model.layers.0.self_attn.q_proj.weight": ("F8_E4M3", (8, 8))}
    with pytest.raises(UnsupportedModelError, match=r"q_proj\.weight' in F8_E4M3; this engine runs F32"):
        open_folder(light_checkpoint(tmp_path / "eights", tensors=eights))
    packed = {**TENSORS, "model.layers.0.self_attn.q_proj.weight": ("U8", (32, 1)), "model.ids": ("I64", (9,))}
    with pytest.raises(UnsupportedModelError, match="in U8"):
        open_folder(light_checkpoint(tmp_path / "packed", tensors=packed))
    known = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
    assert open_folder(light_checkpoint(tmp_path / "known", known, packed)).parameters["U8"] == 32


@pytest.mark.parametrize("method", ["gptq", "awq", "fp8", None, 3])
def test_other_quantisations_are_refused_by_name(tmp_path: Path, method: object) -> None:
    change = {"quantization_config": {"quant_method": method}}
    with pytest.raises(UnsupportedModelError, match=f"is quantised by {method!r}.*say --quantise nf4"):
        open_folder(light_checkpoint(tmp_path, change))


# --- what tells checkpoints apart -------------------------------------------------------------------------------------


def test_the_hash_is_of_names_sizes_headers_weights_and_configurations(tmp_path: Path) -> None:
    first = open_folder(light_checkpoint(tmp_path / "a")).sha256
    assert open_folder(light_checkpoint(tmp_path / "b")).sha256 == first
    assert open_folder(light_checkpoint(tmp_path / "c", {"rope_theta": 5.0})).sha256 != first
    assert open_folder(sharded(tmp_path / "d")).sha256 != first
    other = light_checkpoint(tmp_path / "e")
    write_weights(other / "model.safetensors", TENSORS, byte=1)
    assert open_folder(other).sha256 != first


@pytest.mark.parametrize("name", TENSORS)
def test_the_hash_sees_every_tensor(tmp_path: Path, name: str) -> None:
    folder = light_checkpoint(tmp_path)
    checkpoint = open_folder(folder)
    before = checkpoint.sha256
    raw = bytearray((folder / "model.safetensors").read_bytes())
    raw[checkpoint.tensors[name].offset] ^= 1
    (folder / "model.safetensors").write_bytes(raw)
    assert open_folder(folder).sha256 != before
