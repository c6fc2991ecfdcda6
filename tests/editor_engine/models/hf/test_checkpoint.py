"""Folders as they come: what is whole is read, everything else is refused in a sentence that says what to do."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.errors import EngineError, ModelFileError, ModelMissingError, UnsupportedModelError
from editor_engine.models.hf.checkpoint import UNSAID_CONTEXT, open_folder
from tests.support.light_checkpoints import CONFIG, TENSORS, light_checkpoint, write_json, write_weights
from tests.support.tiny_checkpoints import ROWS, STOP, token_ids

HEADLESS = {name: tensor for name, tensor in TENSORS.items() if name != "lm_head.weight"}
END = token_ids()[STOP]


def test_a_whole_folder_says_how_large_it_is(tmp_path: Path) -> None:
    checkpoint = open_folder(light_checkpoint(tmp_path / "Tiny-1B"))
    assert (checkpoint.name, checkpoint.architecture) == ("Tiny-1B", "LlamaForCausalLM")
    assert checkpoint.weights == (tmp_path / "Tiny-1B" / "model.safetensors",)
    assert checkpoint.parameters == {"BF16": 2 * ROWS * 8 + 64, "F32": 8}
    assert checkpoint.weights_bytes == 2 * (2 * ROWS * 8 + 64) + 4 * 8
    assert (checkpoint.rows, checkpoint.context_length, checkpoint.tied) == (ROWS, 512, False)
    assert checkpoint.kv_elements_per_token == 3 * 2 * 2 * 2  # layers, key heads, head, keys and values
    assert checkpoint.eos_ids == (END,)
    assert len(checkpoint.sha256) == 64


def test_a_look_brings_neither_torch_nor_transformers_nor_numpy(tmp_path: Path) -> None:
    folder = light_checkpoint(tmp_path / "tiny")
    words = (
        f"import sys, pathlib; from editor_engine.models.hf.checkpoint import open_folder;"
        f"open_folder(pathlib.Path({str(folder)!r})).sha256;"
        "print([name for name in ('torch', 'transformers', 'numpy', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_commit_in_the_cache_of_hugging_face_goes_by_its_repository(tmp_path: Path) -> None:
    real = light_checkpoint(tmp_path / "blobs")
    snapshot = tmp_path / "models--owner--some-name" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    for path in real.iterdir():  # there, files are links out of the folder
        (snapshot / path.name).symlink_to(path)
    assert open_folder(snapshot).name == "owner/some-name"


# --- ids that end a reply, heads, contexts, caches --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "generation", "ids"),
    [
        (5, {}, (5,)),
        ([7, 5], {}, (5, 7)),
        (None, {"eos_token_id": 9}, (9,)),
        ([], {"eos_token_id": None}, ()),
        (5, {"eos_token_id": [6, 5]}, (5, 6)),
    ],
)
def test_end_ids_are_numbers_lists_null_or_absent(
    tmp_path: Path, ours: object, generation: dict[str, Any], ids: tuple[int, ...]
) -> None:
    folder = light_checkpoint(tmp_path, {"eos_token_id": ours})
    write_json(folder / "generation_config.json", generation)
    assert open_folder(folder).eos_ids == ids


@pytest.mark.parametrize("value", ["</s>", -1, True, 1.0, [1, "2"], {"a": 1}, 2**40])
def test_end_ids_of_another_kind_are_damage(tmp_path: Path, value: object) -> None:
    with pytest.raises(ModelFileError, match=r"config\.json is damaged: eos_token_id is"):
        open_folder(light_checkpoint(tmp_path, {"eos_token_id": value}))


def test_an_end_beyond_the_embedding_is_damage(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=f"ends replies with the token {ROWS} and embeds {ROWS}"):
        open_folder(light_checkpoint(tmp_path, {"eos_token_id": [END, ROWS]}))


def test_heads_tied_and_untied(tmp_path: Path) -> None:
    assert open_folder(light_checkpoint(tmp_path / "tied", {"tie_word_embeddings": True}, HEADLESS)).tied
    assert open_folder(light_checkpoint(tmp_path / "unsaid", {"tie_word_embeddings": None}, HEADLESS)).tied
    assert open_folder(light_checkpoint(tmp_path / "copied", {"tie_word_embeddings": True})).tied
    assert not open_folder(light_checkpoint(tmp_path / "own")).tied
    with pytest.raises(ModelFileError, match=r"its head is not the embedding, and the weights have no lm_head\.weight"):
        open_folder(light_checkpoint(tmp_path / "lost", tensors=HEADLESS))


def test_a_vocabulary_that_is_not_the_embedding_is_damage(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=f"promises 999 tokens and embeds {ROWS}"):
        open_folder(light_checkpoint(tmp_path, {"vocab_size": 999}))


def test_contexts_under_their_names_and_unsaid(tmp_path: Path) -> None:
    gone = {"max_position_embeddings": None}
    assert open_folder(light_checkpoint(tmp_path / "a", {**gone, "n_positions": 77})).context_length == 77
    assert open_folder(light_checkpoint(tmp_path / "b", gone)).context_length == UNSAID_CONTEXT
    with pytest.raises(ModelFileError, match="max_position_embeddings is '4k', which cannot be"):
        open_folder(light_checkpoint(tmp_path / "c", {"max_position_embeddings": "4k"}))


def test_caches_that_are_known_and_not(tmp_path: Path) -> None:
    def elements(name: str, change: dict[str, Any]) -> int | None:
        return open_folder(light_checkpoint(tmp_path / name, change)).kv_elements_per_token

    assert elements("heads", {"num_key_value_heads": None}) == 3 * 4 * 2 * 2
    assert elements("wide", {"head_dim": 16}) == 3 * 2 * 16 * 2
    assert elements("sliding", {"layer_types": ["sliding_attention", "full_attention"] * 2}) == 24
    assert elements("hybrid", {"layer_types": ["linear_attention", "full_attention"]}) is None
    assert elements("latent", {"kv_lora_rank": 8}) is None
    assert elements("unsaid", {"hidden_size": None}) is None


def test_the_text_half_of_a_model_that_sees(tmp_path: Path) -> None:
    text = {name: CONFIG[name] for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")}
    change = {name: None for name in (*text, "num_key_value_heads", "max_position_embeddings", "eos_token_id")}
    change |= {"text_config": {**text, "max_position_embeddings": 99, "eos_token_id": 3}}
    checkpoint = open_folder(light_checkpoint(tmp_path, {**change, "architectures": ["XForConditionalGeneration"]}))
    assert (checkpoint.context_length, checkpoint.eos_ids, checkpoint.kv_elements_per_token) == (99, (3,), 48)


# --- weights ----------------------------------------------------------------------------------------------------------


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


# --- what is no whole model, or brings code ---------------------------------------------------------------------------


def test_an_adapter_is_named_and_what_to_do(tmp_path: Path) -> None:
    write_json(tmp_path / "adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "owner/base"})
    write_weights(tmp_path / "adapter_model.safetensors", {"a": ("F32", (2,))})
    with pytest.raises(
        UnsupportedModelError, match=r"is a PEFT adapter.*its base model 'owner/base'.*merge_and_unload"
    ):
        open_folder(tmp_path)
    light_checkpoint(tmp_path)  # also beside whole weights: what was meant is not ours to guess
    with pytest.raises(UnsupportedModelError, match="is a PEFT adapter"):
        open_folder(tmp_path)


def test_code_of_the_folder_needs_consent(tmp_path: Path) -> None:
    brought = {"AutoConfig": "configuration_new.NewConfig", "AutoModelForCausalLM": "owner/code--modeling_new.NewModel"}
    folder = light_checkpoint(
        tmp_path, {"auto_map": brought, "model_type": "brand_new", "architectures": ["NewLMHeadModel"]}
    )
    with pytest.raises(UnsupportedModelError, match=r"\(configuration_new\.py, modeling_new\.py\).*--remote-code"):
        open_folder(folder)
    assert open_folder(folder, remote_code=True).remote_code
    assert not open_folder(light_checkpoint(tmp_path / "plain"), remote_code=True).remote_code


def test_code_beside_a_model_that_transformers_knows_is_never_run(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    brought = {"AutoModelForCausalLM": "modeling_llama.LlamaForCausalLM"}
    checkpoint = open_folder(light_checkpoint(tmp_path, {"auto_map": brought}), remote_code=True)
    assert not checkpoint.remote_code


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"architectures": ["BertForMaskedLM"]}, "is a BertForMaskedLM; this engine runs causal language models"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "runs causal language models"),
        ({"is_encoder_decoder": True}, "runs causal language models"),
    ],
)
def test_models_that_do_not_write(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedModelError, match=words):
        open_folder(light_checkpoint(tmp_path, change))


@pytest.mark.parametrize(
    "change", [{"architectures": None, "model_type": None}, {"architectures": [3]}, {"model_type": 3}]
)
def test_models_without_a_name_of_their_kind(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(ModelFileError, match="does not name the architecture"):
        open_folder(light_checkpoint(tmp_path, change))


@pytest.mark.parametrize(
    "change",
    [
        {"_attn_implementation": "somebody/kernel"},
        {"attn_implementation": "somebody/kernel@v1:function"},
        {"_attn_implementation_internal": {"": "eager", "text_config": "paged|somebody/kernel"}},
        {"text_config": {"_experts_implementation": "somebody/kernel", "vocab_size": ROWS}},
    ],
)
def test_no_configuration_has_compiled_code_fetched(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match=r"asks for compiled code of the model hub .*kernel"):
        open_folder(light_checkpoint(tmp_path, change), remote_code=True)
    open_folder(light_checkpoint(tmp_path, {"_attn_implementation": "eager"}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_hidden_layers": 5}, "promises 5 layers and has 4 tensors"),
        ({"num_hidden_layers": None, "n_layer": 2**31 - 1}, "promises 2147483647 layers"),
        ({"num_labels": 10**9}, "num_labels is 1000000000, which cannot be"),
    ],
)
def test_counts_that_a_load_would_never_come_to_the_end_of(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        open_folder(light_checkpoint(tmp_path, change))


def test_a_folder_that_is_shut_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shut(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    folder = light_checkpoint(tmp_path / "shut")
    monkeypatch.setattr(Path, "exists", shut)
    with pytest.raises(ModelFileError, match=r"shut cannot be read: Permission denied\.$"):
        open_folder(folder)


def _drop(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        (_drop("config.json"), ModelMissingError, r"has no config\.json, so it is no Hugging Face checkpoint"),
        (lambda folder: (folder / "config.json").write_bytes(b"{"), ModelFileError, r"config\.json is damaged"),
        (lambda folder: (folder / "config.json").write_bytes(b"[" * 99999), ModelFileError, "nested too deeply"),
        (lambda folder: (folder / "generation_config.json").write_bytes(b"1"), ModelFileError, "generation_config"),
        (_drop("tokenizer.json"), ModelMissingError, "has no tokenizer"),
        (shutil.rmtree, ModelMissingError, "There is no folder"),
    ],
)
def test_what_is_missing_or_damaged(
    tmp_path: Path, damage: Callable[[Path], object], error: type[EngineError], words: str
) -> None:
    folder = light_checkpoint(tmp_path / "tiny")
    damage(folder)
    with pytest.raises(error, match=words):
        open_folder(folder)


VALUES = (
    st.none() | st.booleans() | st.integers(-2, 2**40) | st.floats() | st.text(max_size=3) | st.just([]) | st.just({})
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    change=st.dictionaries(
        st.sampled_from(
            [
                *CONFIG,
                "text_config",
                "auto_map",
                "quantization_config",
                "layer_types",
                "head_dim",
                "kv_lora_rank",
                "is_encoder_decoder",
            ]
        ),
        VALUES,
        max_size=3,
    )
)
def test_any_configuration_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, change: dict[str, Any]) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    if not folder.exists():
        light_checkpoint(folder)
    write_json(folder / "config.json", {**CONFIG, **{name: value for name, value in change.items() if value == value}})
    try:
        checkpoint = open_folder(folder)
        assert checkpoint.rows == ROWS and checkpoint.context_length > 0 and isinstance(checkpoint.tied, bool)
    except EngineError as error:
        assert str(error).endswith(".")


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
