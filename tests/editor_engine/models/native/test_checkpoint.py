"""Configuration and tensor table: what is read, and one clear sentence for every file that is not run."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from editor_engine.errors import EngineError, ModelFileError, RequestError, UnsupportedModelError
from editor_engine.models.context import context_of
from editor_engine.models.native.checkpoint import Checkpoint, open_checkpoint
from editor_engine.quant.gguf import GgufFile
from tests.support.tiny_gguf import GgufSource, TinyShape, tiny_source


def opened(source: GgufSource, folder: Path) -> Checkpoint:
    return open_checkpoint(GgufFile(source.write(folder / "tiny.gguf")))


def test_qwen2(tmp_path: Path) -> None:
    checkpoint = opened(tiny_source("qwen2"), tmp_path)
    config = checkpoint.config
    assert (config.layers, config.hidden, config.heads, config.kv_heads, config.head_dim) == (2, 64, 4, 2, 16)
    assert (config.ffn, config.context_length, config.rope_pairs) == (96, 512, False)
    assert config.kv_bytes_per_token == 2 * 2 * 16 * 2 * 2
    assert (checkpoint.vocab_size, checkpoint.tied, checkpoint.biased) == (315, False, True)
    assert checkpoint.linears[0] == "blk.0.attn_q.weight"
    assert checkpoint.linears[-1] == "output.weight"
    assert len(checkpoint.linears) == 2 * 7 + 1
    assert "token_embd.weight" not in checkpoint.linears


def test_llama_with_tied_head(tmp_path: Path) -> None:
    checkpoint = opened(tiny_source("llama", tied=True), tmp_path)
    assert (checkpoint.tied, checkpoint.biased, checkpoint.config.rope_pairs) == (True, False, True)
    assert checkpoint.linears[-1] == "token_embd.weight"


def test_heads_of_their_own_length_and_defaults(tmp_path: Path) -> None:
    source = tiny_source("llama", shape=TinyShape(hidden=96, heads=4, head_dim=16), rope_factors=[1.0] * 8)
    del source.metadata["llama.rope.freq_base"]
    del source.metadata["general.name"]
    checkpoint = opened(source, tmp_path)
    assert (checkpoint.config.head_dim, checkpoint.config.rope_base) == (16, 10000.0)
    assert checkpoint.config.name == "llama"
    assert "rope_freqs.weight" in checkpoint.vectors


def test_settings_that_change_nothing_are_let_through(tmp_path: Path) -> None:
    quiet = {"expert_count": 0, "rope.scaling.type": "none", "rope.scaling.factor": 1.0, "attention.causal": True}
    opened(tiny_source(metadata={f"qwen2.{key}": value for key, value in quiet.items()}), tmp_path)


def test_context(tmp_path: Path) -> None:
    config = opened(tiny_source(shape=TinyShape(context=100_000)), tmp_path).config
    assert context_of(config, None) == 32768
    assert context_of(config, 100_000) == 100_000
    assert context_of(config, 1) == 1
    with pytest.raises(RequestError, match="made for at most 100000"):
        context_of(config, 100_001)
    with pytest.raises(RequestError, match="at least 1"):
        context_of(config, 0)


def _set(key: str, value: object) -> Callable[[GgufSource], None]:
    def change(source: GgufSource) -> None:
        source.metadata[key] = value

    return change


def _drop_setting(key: str) -> Callable[[GgufSource], None]:
    def change(source: GgufSource) -> None:
        del source.metadata[key]

    return change


def _drop_tensor(name: str) -> Callable[[GgufSource], None]:
    def change(source: GgufSource) -> None:
        del source.tensors[name]

    return change


def _tensor(name: str, kind: str, dims: tuple[int, ...], size: int) -> Callable[[GgufSource], None]:
    def change(source: GgufSource) -> None:
        source.tensors[name] = (kind, dims, bytes(size))

    return change


REFUSED: dict[str, tuple[Callable[[GgufSource], None], type[EngineError], str]] = {
    "no architecture": (_drop_setting("general.architecture"), ModelFileError, "does not name its architecture"),
    "architecture": (
        _set("general.architecture", "gemma"),
        UnsupportedModelError,
        "architecture 'gemma'; this engine runs qwen2 and llama",
    ),
    "no layers": (_drop_setting("qwen2.block_count"), ModelFileError, "lacks the setting qwen2.block_count"),
    "zero layers": (_set("qwen2.block_count", 0), ModelFileError, "qwen2.block_count = 0, which cannot be"),
    "endless layers": (_set("qwen2.block_count", 2**31 - 1), ModelFileError, "lacks the tensors of its 2147483647"),
    "one layer more": (_set("qwen2.block_count", 3), ModelFileError, r"lacks the tensor blk\.2\."),
    "one layer less": (_set("qwen2.block_count", 1), UnsupportedModelError, r"has the tensor blk\.1\."),
    "text for a number": (_set("qwen2.block_count", "2"), ModelFileError, "'2', which cannot be"),
    "a list": (
        _set("qwen2.attention.head_count_kv", [2, 2]),
        UnsupportedModelError,
        "a qwen2.attention.head_count_kv per layer",
    ),
    "heads": (_set("qwen2.attention.head_count", 5), ModelFileError, "5 heads to 64 inputs"),
    "shared heads": (_set("qwen2.attention.head_count_kv", 3), ModelFileError, "3 key heads among 4 heads"),
    "head size": (_set("qwen2.attention.key_length", 12), UnsupportedModelError, "unequal|multiples of 8"),
    "eps": (_set("qwen2.attention.layer_norm_rms_epsilon", -1.0), ModelFileError, "-1.0, which cannot be"),
    "eps nan": (_set("qwen2.attention.layer_norm_rms_epsilon", float("nan")), ModelFileError, "nan, which cannot be"),
    "rope base": (_set("qwen2.rope.freq_base", 0.0), ModelFileError, "0.0, which cannot be"),
    "yarn": (_set("qwen2.rope.scaling.type", "yarn"), UnsupportedModelError, "rope scaling .'yarn'."),
    "partial rope": (_set("qwen2.rope.dimension_count", 8), UnsupportedModelError, "only part of each head"),
    "experts": (_set("qwen2.expert_count", 8), UnsupportedModelError, "qwen2.expert_count = 8"),
    "window": (_set("qwen2.attention.sliding_window", 128), UnsupportedModelError, "sliding_window = 128"),
    "unknown setting": (_set("qwen2.logit_scale", 2.0), UnsupportedModelError, "the setting qwen2.logit_scale = 2.0"),
    "split": (_set("split.count", 3), UnsupportedModelError, "one of 3 parts"),
    "vocabulary": (_set("qwen2.vocab_size", 314), ModelFileError, "promises 314 tokens and embeds 315"),
    "tokens": (_set("tokenizer.ggml.tokens", ["a"] * 316), ModelFileError, "names 316 tokens and embeds 315"),
    "no embedding": (_drop_tensor("token_embd.weight"), ModelFileError, r"lacks the tensor token_embd\.weight"),
    "no norm": (_drop_tensor("blk.1.ffn_norm.weight"), ModelFileError, r"lacks the tensor blk\.1\.ffn_norm\.weight"),
    "no bias": (_drop_tensor("blk.1.attn_k.bias"), ModelFileError, r"lacks the tensor blk\.1\.attn_k\.bias"),
    "shape": (
        _tensor("blk.0.attn_k.weight", "Q8_0", (64, 16), 34 * 2 * 16),
        ModelFileError,
        r"blk\.0\.attn_k\.weight has the shape \[16, 64\], not \[32, 64\]",
    ),
    "rank": (
        _tensor("output_norm.weight", "F32", (64, 1), 256),
        ModelFileError,
        r"output_norm\.weight has the shape \[1, 64\], not \[64\]",
    ),
    "linear type": (
        _tensor("blk.0.attn_k.weight", "F16", (64, 32), 64 * 32 * 2),
        UnsupportedModelError,
        r"blk\.0\.attn_k\.weight as F16; this engine runs Q4_0, ",
    ),
    "norm type": (
        _tensor("output_norm.weight", "F16", (64,), 128),
        UnsupportedModelError,
        r"output_norm\.weight as F16; this engine runs F32 there",
    ),
    "unknown tensor": (
        _tensor("blk.0.attn_q_norm.weight", "F32", (16,), 64),
        UnsupportedModelError,
        r"the tensor blk\.0\.attn_q_norm\.weight, which this engine does not apply",
    ),
    "rope factors": (
        _tensor("rope_freqs.weight", "F32", (4,), 16),
        ModelFileError,
        r"rope_freqs\.weight has the shape \[4\], not \[8\]",
    ),
    "architecture not utf-8": (
        _set("general.architecture", (8, struct.pack("<Q", 1) + b"\xff")),
        ModelFileError,
        "not UTF-8",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_sentence(tmp_path: Path, name: str) -> None:
    change, error, words = REFUSED[name]
    source = tiny_source("qwen2")
    change(source)
    with pytest.raises(error, match=words) as caught:
        opened(source, tmp_path)
    assert type(caught.value) is error
    assert str(caught.value).rstrip().endswith(".")


def test_a_tied_head_must_be_of_a_type_that_multiplies(tmp_path: Path) -> None:
    def kind(name: str) -> str:
        return "F16" if name == "token_embd.weight" else "Q8_0"

    opened(tiny_source(kind=kind), tmp_path)
    with pytest.raises(UnsupportedModelError, match="as F16; this engine"):
        opened(tiny_source(kind=kind, tied=True), tmp_path)


def test_llama_biases_must_be_complete(tmp_path: Path) -> None:
    source = tiny_source("llama", biases=True)
    assert opened(source, tmp_path).biased
    del source.tensors["blk.1.attn_v.bias"]
    with pytest.raises(ModelFileError, match=r"lacks the tensor blk\.1\.attn_v\.bias"):
        opened(source, tmp_path)


def test_no_token_list_is_made_to_check_a_file(tmp_path: Path) -> None:
    source = tiny_source()
    source.metadata["tokenizer.ggml.merges"] = (9, struct.pack("<IQQ", 8, 1, 1) + b"\xff")  # not UTF-8: raises if made
    opened(source, tmp_path)
