"""A folder becomes a model that says what it is, or one clear sentence; nothing is guessed and nothing is printed."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from editor_engine.config import EngineConfig, HfOptions  # noqa: E402
from editor_engine.errors import (  # noqa: E402
    EngineError,
    ModelFileError,
    OutOfMemoryError,
    RequestError,
    UnsupportedModelError,
)
from editor_engine.gpus import Gpu  # noqa: E402
from editor_engine.models.hf import load as load_module  # noqa: E402
from editor_engine.models.hf.checkpoint import open_folder  # noqa: E402
from editor_engine.models.hf.devices import Cuda  # noqa: E402
from editor_engine.models.hf.load import load_hf, try_out  # noqa: E402
from editor_engine.models.hf.model import HfModel  # noqa: E402
from editor_engine.models.needs import Machine  # noqa: E402
from tests.support.hf_runs import scores  # noqa: E402
from tests.support.tiny_checkpoints import ARCHITECTURES, CONTEXT, ROWS, make_checkpoint  # noqa: E402

FolderOf = Callable[..., Path]
Load = Callable[..., HfModel]


def loaded(folder: Path, context: int | None = None, **options: object) -> tuple[HfModel, tuple[str, ...]]:
    config = EngineConfig(folder, 1, context, hf=HfOptions(**options))  # type: ignore[arg-type]
    return load_hf(open_folder(folder), config)


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_a_model_says_what_it_is(folder_of: FolderOf, family: str) -> None:
    folder = folder_of(family)
    checkpoint = open_folder(folder)
    model, notes = loaded(folder)
    info = model.info
    attention = "eager" if family == "Gemma2" else "sdpa"
    assert (info.name, info.architecture) == (folder.name, f"{family}ForCausalLM")
    assert (info.vocab_size, info.context_length, info.device, info.threads) == (ROWS, CONTEXT, "cpu", 1)
    assert info.isa == f"float32 {attention}"
    assert (info.backend, info.guarantee, info.sha256) == ("transformers", "not guaranteed", checkpoint.sha256)
    assert info.cache_bytes_per_token == 4 * (checkpoint.kv_elements_per_token or 0) > 0
    assert info.weights_bytes == pytest.approx(checkpoint.weights_bytes, rel=0.02)
    assert notes == () and model.length == 0


def test_it_computes_what_transformers_computes(folder_of: FolderOf) -> None:
    folder, tokens = folder_of("Gemma3"), [(11 * index) % 290 for index in range(60)]
    ours = scores(loaded(folder)[0], tokens, chunk=60)
    theirs = transformers_logits(folder, tokens)
    assert np.abs(ours - theirs).max() < 1e-4 * np.abs(theirs).max()


def transformers_logits(folder: Path, tokens: list[int]) -> np.ndarray:  # type: ignore[type-arg]
    from transformers import AutoModelForCausalLM

    with torch.inference_mode():
        module = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32)
        return module(torch.tensor([tokens])).logits[0].numpy()  # type: ignore[no-any-return]


def test_a_tied_head_is_the_embedding(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "tied", "Llama", change={"tie_word_embeddings": True})
    assert open_folder(folder).tied
    tokens = list(range(20))
    ours = scores(loaded(folder)[0], tokens, chunk=20)
    theirs = transformers_logits(folder, tokens)
    assert np.abs(ours - theirs).max() < 1e-4 * np.abs(theirs).max()


def spoilt(folder: Path, target: Path, change: Callable[[dict[str, object]], None]) -> Path:
    """A copy whose tensors were changed."""
    shutil.copytree(folder, target)
    tensors = load_file(target / "model.safetensors")
    change(tensors)
    save_file(tensors, target / "model.safetensors", {"format": "pt"})
    return target


LAYER = "model.layers.1.mlp.up_proj.weight"


def test_a_tensor_that_is_missing_is_not_made_up(folder_of: FolderOf, tmp_path: Path) -> None:
    folder = spoilt(folder_of("Qwen2"), tmp_path / "lacking", lambda tensors: tensors.pop(LAYER))  # type: ignore[arg-type,return-value]
    with pytest.raises(ModelFileError, match=rf"lacks 1 of its tensors, {LAYER} first"):
        loaded(folder)


def test_a_tensor_of_another_shape_is_refused(folder_of: FolderOf, tmp_path: Path) -> None:
    def change(tensors: dict[str, object]) -> None:
        tensors[LAYER] = torch.zeros(127, 64)

    with pytest.raises(ModelFileError, match=r"up_proj.weight has the shape \[127, 64\], .* says \[128, 64\]"):
        loaded(spoilt(folder_of("Qwen2"), tmp_path / "other", change))


def with_config(source: Path, folder: Path, **change: object) -> Path:
    """A copy of `source` whose config.json says something else."""
    shutil.copytree(source, folder)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, **change}))
    return folder


@pytest.mark.parametrize("change", [{"intermediate_size": 10**6}, {"hidden_size": 2**16}, {"intermediate_size": 2**31}])
def test_what_a_configuration_makes_up_takes_no_memory(
    folder_of: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    monkeypatch.setattr(load_module, "_module", None)  # whoever calls it fails
    with pytest.raises(ModelFileError, match=r"describes \d+ numbers and its weights have \d+; it is damaged"):
        loaded(with_config(folder_of("Qwen2"), tmp_path / "vast", **change))


def test_what_transformers_finds_wrong_is_said_whole(folder_of: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=r"'intermediate_size': .* expected int, got str") as raised:
        loaded(with_config(folder_of("Qwen2"), tmp_path / "text", intermediate_size="x"))
    assert "\n" not in str(raised.value)


def test_a_shape_that_a_kernel_does_not_know_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    folder = make_checkpoint(tmp_path / "odd", "Llama", change={"intermediate_size": 31})
    try:
        model, _ = loaded(folder, quantise="nf4", device="cpu")
    except UnsupportedModelError as error:  # which widths can be run depends on the processor
        assert str(error).startswith("transformers cannot run odd packed as nf4: ")
    else:
        assert np.isfinite(scores(model, [1, 2, 3])).all()


def test_an_unknown_architecture_is_refused(folder_of: FolderOf, tmp_path: Path) -> None:
    folder = tmp_path / "unknown"
    shutil.copytree(folder_of("Qwen2"), folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "nonesuch", "architectures": ["NonesuchForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedModelError, match=r"transformers cannot load unknown: .*nonesuch") as raised:
        loaded(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"attention": "flash_attention_2"}, UnsupportedModelError, "on a graphics processor only"),
        ({"attention": "paged"}, RequestError, "There is no attention 'paged'; auto, eager"),
        ({"dtype": "float8"}, RequestError, "There is no dtype 'float8'"),
        ({"quantise": "int4"}, RequestError, "There is no quantisation 'int4'; nf4, fp4, int8"),
        ({"compute_dtype": "x"}, RequestError, "no compute dtype 'x'"),
        ({"double_quant": True}, RequestError, "for nf4 and fp4"),
        ({"quantise": "int8", "double_quant": True}, RequestError, "for nf4 and fp4"),
        ({"device": "cuda:7"}, UnsupportedModelError, "The device cuda:7 cannot be used"),
        ({"gpu_layers": 9}, RequestError, "the model has 2"),
    ],
)
def test_what_cannot_be_done_is_refused(
    folder_of: FolderOf, options: dict[str, object], error: type[EngineError], words: str
) -> None:
    with pytest.raises(error, match=words):
        loaded(folder_of("Qwen2"), **options)


def test_attention_a_model_does_not_have_is_refused(folder_of: FolderOf) -> None:
    with pytest.raises(UnsupportedModelError, match="does not run with sdpa attention"):
        loaded(folder_of("Gemma2"), attention="sdpa")
    assert loaded(folder_of("Qwen2"), attention="eager")[0].info.isa == "float32 eager"


def test_a_context_beyond_the_model_is_refused(folder_of: FolderOf) -> None:
    with pytest.raises(RequestError, match=f"made for at most {CONTEXT}"):
        loaded(folder_of("Qwen2"), context=CONTEXT + 1)
    assert loaded(folder_of("Qwen2"), context=77)[0].info.context_length == 77


def test_memory_is_asked_for_before_it_is_taken(folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> object:
        raise AssertionError("weights were loaded")

    monkeypatch.setattr(load_module, "_module", never)
    checkpoint, config = open_folder(folder_of("Qwen2")), EngineConfig(folder_of("Qwen2"), 1)
    with pytest.raises(OutOfMemoryError, match="available"):
        load_hf(checkpoint, config, available=lambda: 10_000_000)
    with pytest.raises(OutOfMemoryError, match="--max-memory"):
        load_hf(checkpoint, replace(config, max_memory=10_000_000))


def test_a_graphics_processor_that_is_too_small_is_left_alone_and_named_unless_nobody_wanted_it(
    folder_of: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("editor_engine.models.hf.devices.see_cuda", lambda: Cuda(1, ""))
    monkeypatch.setattr(load_module, "_machine", lambda cuda, available: Machine(None, (Gpu(0, "G", 1 << 30, 1000),)))
    model, notes = loaded(folder_of("Qwen2"))
    assert (model.info.device, len(notes)) == ("cpu", 1) and "--gpu-layers puts a part of it there" in notes[0]
    model, notes = loaded(folder_of("Qwen2"), gpu_layers=0)
    assert (model.info.device, notes) == ("cpu", ())


def test_a_cache_that_cannot_be_rewound_is_refused_before_weights_are_read(
    folder_of: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mixed"
    shutil.copytree(folder_of("Llama"), folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "lfm2", "layer_types": ["conv", "full_attention"], "architectures": ["Lfm2ForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr(load_module, "_module", None)  # whoever calls it fails
    with pytest.raises(UnsupportedModelError, match="keeps its state in a LinearAttentionLayer"):
        loaded(folder)


def test_stretched_positions_end_the_context_where_the_stretching_begins(tmp_path: Path) -> None:
    scaling = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
    folder = make_checkpoint(
        tmp_path / "dynamic", "Llama", change={"rope_parameters": scaling, "max_position_embeddings": 128}
    )
    model, notes = loaded(folder)
    assert model.info.context_length == 128
    factors = {"long_factor": [2.0] * 8, "short_factor": [1.0] * 8}
    scaling = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 64, **factors}
    folder = make_checkpoint(
        tmp_path / "long", "Phi3", change={"rope_parameters": scaling, "original_max_position_embeddings": 64}
    )
    model, notes = loaded(folder)
    assert model.info.context_length == 64
    assert "The context is 64 tokens" in notes[0]


class Forgetful:
    """A network with a state of its own beside the cache."""

    def __init__(self, keeps: bool) -> None:
        self.embedded = 100
        self.cache = self
        self._keeps, self._seen, self._tokens = keeps, 0, list[int]()

    def set_length(self, length: int) -> None:
        del self._tokens[length:]

    def run(self, tokens: list[int], head_rows: int) -> object:
        self._tokens += tokens
        self._seen += len(tokens)
        return torch.tensor([[float(sum(self._tokens)) + self._keeps * self._seen]])


def test_a_state_beside_the_cache_is_found() -> None:
    assert try_out(Forgetful(False), "model") == 1  # type: ignore[arg-type]
    with pytest.raises(UnsupportedModelError, match="keeps something of tokens that were taken back"):
        try_out(Forgetful(True), "model")  # type: ignore[arg-type]


def test_nothing_is_printed_and_nothing_is_warned_of(folder_of: FolderOf) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom editor_engine.config import EngineConfig, HfOptions\n"
        "from editor_engine.models.hf.checkpoint import open_folder\n"
        "from editor_engine.models.hf.load import load_hf\nfolder = Path(sys.argv[1])\n"
        "for quantise in (None, 'nf4', 'int8'):\n"
        "    config = EngineConfig(folder, 1, hf=HfOptions(quantise=quantise, device='cpu'))\n"
        "    model, notes = load_hf(open_folder(folder), config)\n"
        "    model.forward([1, 2, 3], head_rows=3)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, folder_of("Qwen2", "bfloat16")], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
