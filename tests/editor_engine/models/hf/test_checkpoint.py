"""Folders as they come: what is whole is read, everything else is refused in a sentence that says what to do."""

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
