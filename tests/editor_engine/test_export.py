"""A GGUF file written as a folder: the same weights, the same tokenizer, whole or not at all."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine import export
from editor_engine.errors import FetchError, ModelFileError, ModelMissingError, RequestError, UnsupportedModelError
from editor_engine.export import DTYPES, export_folder, to_bfloat16
from editor_engine.models.hf.checkpoint import open_folder
from editor_engine.models.native.checkpoint import open_checkpoint
from editor_engine.models.native.float_twin import FloatTwin
from editor_engine.quant.dequantise import dequantise
from editor_engine.quant.gguf import GgufFile
from editor_engine.requests import Message
from editor_engine.text.chat_template import render_prompt
from editor_engine.text.folder_tokenizer import load_folder_tokenizer
from editor_engine.text.tokenizer import load_tokenizer
from tests.editor_engine.text.samples import CODE, MARKERS
from tests.support.tiny_gguf import tiny_source, write_tiny


def stored(folder: Path) -> dict[str, npt.NDArray[np.float32]]:
    """Every tensor of a folder as float32, read by the public library where it can."""
    numpy = pytest.importorskip("safetensors.numpy")
    found = {}
    for path in open_folder(folder).weights:
        found |= {name: array.astype(np.float32) for name, array in numpy.load_file(path).items()}
    return found


def weights(file: GgufFile, name: str) -> npt.NDArray[np.float32]:
    tensor = file.tensors[name]
    return dequantise(tensor.type_name, file.raw(name), tensor.shape)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_K"])
def test_float32_weights_are_the_files_bit_for_bit(tmp_path: Path, kind: str) -> None:
    file = GgufFile(write_tiny(tmp_path / "tiny.gguf", "qwen2", kind=kind))
    exported = export_folder(file.path, tmp_path / "tiny", "float32")
    found = stored(tmp_path / "tiny")
    assert exported.files == ("model.safetensors",)
    assert len(found) == len(file.tensors)
    for ours, theirs in {
        "token_embd.weight": "model.embed_tokens.weight",
        "blk.1.attn_q.weight": "model.layers.1.self_attn.q_proj.weight",
        "blk.0.attn_k.bias": "model.layers.0.self_attn.k_proj.bias",
        "blk.0.ffn_down.weight": "model.layers.0.mlp.down_proj.weight",
        "output_norm.weight": "model.norm.weight",
        "output.weight": "lm_head.weight",
    }.items():
        assert np.array_equal(found[theirs], weights(file, ours))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_in_stretches_and_files_are_the_rows_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    source = write_tiny(tmp_path / "tiny.gguf", "llama")
    export_folder(source, tmp_path / "whole", dtype)
    monkeypatch.setattr(export, "_STRETCH_BYTES", 4 * 64 * 7)
    told: list[tuple[int, int]] = []
    exported = export_folder(
        source, tmp_path / "parts", dtype, lambda done, total: told.append((done, total)), shard_bytes=50_000
    )
    assert len(exported.files) > 2
    whole, parts = open_folder(tmp_path / "whole"), open_folder(tmp_path / "parts")
    assert parts.tensors.keys() == whole.tensors.keys()
    assert raw_tensors(tmp_path / "parts") == raw_tensors(tmp_path / "whole")
    assert told[-1] == (exported.weights_bytes, exported.weights_bytes) == (parts.weights_bytes,) * 2
    assert told == sorted(told)


def raw_tensors(folder: Path) -> dict[str, bytes]:
    found = {}
    for file in open_folder(folder).files:
        data = file.path.read_bytes()
        found |= {name: data[tensor.offset : tensor.offset + tensor.nbytes] for name, tensor in file.tensors.items()}
    return found


@pytest.mark.parametrize("family", ["qwen2", "llama"])
@pytest.mark.parametrize("tied", [False, True])
def test_transformers_computes_what_the_float_twin_does(tmp_path: Path, family: str, tied: bool) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    source = write_tiny(tmp_path / "tiny.gguf", family, seed=3, tied=tied)
    export_folder(source, tmp_path / "tiny", "float32")
    assert open_folder(tmp_path / "tiny").tied is tied
    tokens = [5, 250, 17, 300, 17, 5, 99, 280]
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "tiny", dtype=torch.float32)
    with torch.inference_mode():
        theirs = model(torch.tensor([tokens])).logits[0].numpy()
    ours = FloatTwin(open_checkpoint(GgufFile(source))).logits(tokens)
    assert np.abs(theirs - ours).max() <= 1e-4 * np.abs(ours).max()


@pytest.mark.parametrize("family", ["qwen2", "llama"])
def test_the_tokenizer_and_the_template_are_the_files(tmp_path: Path, family: str) -> None:
    metadata = GgufFile(write_tiny(tmp_path / "tiny.gguf", family)).metadata
    export_folder(tmp_path / "tiny.gguf", tmp_path / "tiny")
    ours, text = (
        load_tokenizer(metadata),
        load_folder_tokenizer(tmp_path / "tiny", rows=open_folder(tmp_path / "tiny").rows),
    )
    assert text.template == metadata["tokenizer.chat_template"]
    assert (text.tokenizer.stop_ids, text.tokenizer.eos_id, text.tokenizer.bos_id) == (
        ours.stop_ids,
        ours.eos_id,
        ours.bos_id,
    )
    assert text.tokenizer.special_tokens == ours.special_tokens
    for sample in [*CODE, MARKERS, "e\u0301"]:
        assert text.tokenizer.encode(sample) == ours.encode(sample)
        assert text.tokenizer.encode(sample, special=True) == ours.encode(sample, special=True)


def test_a_first_token_that_a_gguf_reader_puts_there_goes_into_the_template(tmp_path: Path) -> None:
    source = tiny_source("llama", metadata={"tokenizer.ggml.add_bos_token": True}).write(tmp_path / "tiny.gguf")
    export_folder(source, tmp_path / "tiny")
    metadata, text = GgufFile(source).metadata, load_folder_tokenizer(tmp_path / "tiny")
    ours, messages = load_tokenizer(metadata), [Message("user", "hi")]
    assert text.template is not None
    pieces = render_prompt(text.template, messages, "```", bos="<|endoftext|>")
    template = str(metadata["tokenizer.chat_template"])
    assert text.tokenizer.encode_pieces(pieces) == ours.encode_pieces(render_prompt(template, messages, "```"))


def test_bfloat16_is_rounded_as_torch_does() -> None:
    torch = pytest.importorskip("torch")

    @settings(derandomize=True, deadline=None)
    @given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
    def rounds(values: Sequence[float]) -> None:
        array = np.array(values, np.float32)
        theirs = torch.from_numpy(array).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
        assert np.array_equal(to_bfloat16(array), theirs)

    rounds()


# --- refusals: nothing is left behind ---------------------------------------------------------------------------------


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_folder_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    source = write_tiny(tmp_path / "tiny.gguf")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "note.txt").touch()
    for place in ("taken", "tiny.gguf"):
        with pytest.raises(RequestError, match="is there already and not an empty folder"):
            export_folder(source, tmp_path / place)
    assert names(tmp_path / "taken") == {"note.txt"}
    (tmp_path / "empty").mkdir()
    export_folder(source, tmp_path / "empty")
    assert json.loads((tmp_path / "empty" / "config.json").read_text("utf-8"))["dtype"] == "float16"


def test_what_has_no_place_in_a_config_is_refused(tmp_path: Path) -> None:
    tiny_source("llama", rope_factors=[1.0] * 8).write(tmp_path / "factors.gguf")
    tiny_source("llama", biases=True).write(tmp_path / "biased.gguf")
    for name, words in (("factors", "stretches its context"), ("biased", "biases on some of its attention")):
        with pytest.raises(UnsupportedModelError, match=words):
            export_folder(tmp_path / f"{name}.gguf", tmp_path / "out")
    with pytest.raises(RequestError, match="cannot be written as 'nf4'; float32, float16, bfloat16 can"):
        export_folder(tmp_path / "factors.gguf", tmp_path / "out", "nf4")
    with pytest.raises(ModelMissingError):
        export_folder(tmp_path / "absent.gguf", tmp_path / "out")
    assert names(tmp_path) == {"factors.gguf", "biased.gguf"}


def test_values_beyond_the_type_or_no_numbers_are_refused(tmp_path: Path) -> None:
    source = tiny_source("qwen2")
    large = np.full(64, 1e5, "<f4")
    source.tensors["output_norm.weight"] = ("F32", (64,), large.tobytes())
    source.write(tmp_path / "large.gguf")
    with pytest.raises(ModelFileError, match=r"model\.norm\.weight has a value beyond float16; take bfloat16"):
        export_folder(tmp_path / "large.gguf", tmp_path / "out")
    export_folder(tmp_path / "large.gguf", tmp_path / "brain", "bfloat16")
    large[3] = np.nan
    source.tensors["output_norm.weight"] = ("F32", (64,), large.tobytes())
    source.write(tmp_path / "nan.gguf")
    with pytest.raises(ModelFileError, match="is damaged: a value is NaN or infinite"):
        export_folder(tmp_path / "nan.gguf", tmp_path / "out", "float32")
    assert names(tmp_path) == {"large.gguf", "nan.gguf", "brain"}


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_tiny(tmp_path / "tiny.gguf")
    calls = []

    def full(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(export.os, "fsync", lambda handle: full(handle))
        with pytest.raises(ModelFileError, match="cannot be written: No space left on device"):
            export_folder(source, tmp_path / "out", shard_bytes=30_000)
    assert names(tmp_path) == {"tiny.gguf"}

    def no_room(folder: Path, size: int) -> None:
        raise FetchError("no room")

    monkeypatch.setattr(export, "require_space", no_room)
    with pytest.raises(FetchError):
        export_folder(source, tmp_path / "out")
    assert names(tmp_path) == {"tiny.gguf"}
