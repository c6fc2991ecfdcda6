"""Loading: the same bits by every way in, a note where something went other than wished, one sentence on failure."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from editor_engine import kernels
from editor_engine.config import EngineConfig, model_cache_dir
from editor_engine.errors import (
    ContextOverflowError,
    EngineError,
    ModelFileError,
    ModelMissingError,
    NumericsError,
    OutOfMemoryError,
    RequestError,
    UnsupportedModelError,
)
from editor_engine.models.native.load import LoadedModel, load_native
from editor_engine.quant.packed_cache import cache_file
from tests.support.tiny_gguf import (
    BLOCKS,
    LINEAR_TYPES,
    MINIMUM_AT,
    SCALE_AT,
    GgufSource,
    TinyShape,
    tiny_source,
    write_tiny,
)

TOKENS = list(range(40, 80))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def load(path: Path, **options: object) -> LoadedModel:
    return load_native(EngineConfig(path, **{"threads": 1, **options}))  # type: ignore[arg-type]


def scores(path: Path, **options: object) -> np.ndarray:
    loaded = load(path, **options)
    assert loaded.notes == ()
    return loaded.model.logits(TOKENS, head_rows=len(TOKENS))


@pytest.mark.parametrize("family", ["qwen2", "llama"])
@pytest.mark.parametrize("kind", LINEAR_TYPES)
def test_every_type_loads_and_gives_the_same_bits_on_every_path(tmp_path: Path, family: str, kind: str) -> None:
    path = write_tiny(tmp_path / "tiny.gguf", family, kind=kind)
    logits = scores(path, isa="scalar")
    assert logits.shape == (len(TOKENS), 315)
    assert np.isfinite(logits).all()
    assert logits.std() > 0.1
    for isa in kernels.variants():
        assert np.array_equal(scores(path, isa=isa), logits)
    assert np.array_equal(scores(path, threads=2), logits)
    one_by_one = load(path).model
    assert [one_by_one.forward([token], head_rows=1)[0] for token in TOKENS] == logits.argmax(axis=1).tolist()


def test_tied_head_biases_and_rope_factors_are_applied(tmp_path: Path) -> None:
    def run(**options: object) -> np.ndarray:
        source = tiny_source("llama", seed=3, tied=True, **options)  # type: ignore[arg-type]
        return scores(source.write(tmp_path / "tiny.gguf"))

    plain = run()
    assert not np.array_equal(plain, run(biases=True))
    assert np.array_equal(plain, run(rope_factors=[1.0] * 8))
    assert not np.array_equal(plain, run(rope_factors=[1.0] * 7 + [2.0]))


def _embedding_of(kind: str, name: str) -> str:
    return kind if name == "token_embd.weight" else "Q8_0"


def test_an_embedding_that_is_not_quantised(tmp_path: Path) -> None:
    for kind in ("F16", "F32"):
        source = tiny_source(kind=partial(_embedding_of, kind))
        assert np.isfinite(scores(source.write(tmp_path / f"{kind}.gguf"))).all()


def test_truncating_and_interrupting_leave_the_same_model(tmp_path: Path) -> None:
    model = load(write_tiny(tmp_path / "tiny.gguf")).model
    fresh = model.logits(TOKENS, head_rows=1)
    model.truncate(7)
    assert model.length == 7
    model.interrupt()
    with pytest.raises(EngineError, match="cancel"):
        model.forward(TOKENS[7:], head_rows=1)
    assert model.length == 7
    model.resume()
    assert np.array_equal(model.logits(TOKENS[7:], head_rows=1), fresh)
    assert model.length == len(TOKENS)


def test_what_a_caller_can_get_wrong(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf")
    model = load(path, context_length=50).model
    with pytest.raises(RequestError):
        model.forward([315], head_rows=1)
    with pytest.raises(RequestError):
        model.forward([-1], head_rows=1)
    with pytest.raises(RequestError):
        model.truncate(1)
    model.forward(TOKENS, head_rows=1)
    with pytest.raises(ContextOverflowError, match="50"):
        model.forward(TOKENS, head_rows=1)
    assert model.length == len(TOKENS)
    with pytest.raises(RequestError, match="at most 512"):
        load(path, context_length=513)
    with pytest.raises(RequestError, match="mmx"):
        load(path, isa="mmx")


def test_facts(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf")
    loaded = load(path, context_length=50)
    info = loaded.model.info
    assert (info.name, info.architecture, info.vocab_size, info.context_length) == ("Tiny qwen2", "qwen2", 315, 50)
    assert (info.device, info.threads) == ("cpu", 1)
    assert info.isa == kernels.variants()[0]
    assert loaded.cache_folder == model_cache_dir() / info.sha256
    assert loaded.metadata["general.name"] == "Tiny qwen2"


def test_cache_is_used_and_rebuilt_with_the_same_bits(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf", kind="Q4_K")
    loaded = load(path)
    first = loaded.model.logits(TOKENS, head_rows=len(TOKENS))
    packed = cache_file(loaded.cache_folder, kernels.LAYOUT_VERSION)
    made = packed.stat()
    assert np.array_equal(scores(path), first)
    assert packed.stat().st_ino == made.st_ino
    whole = packed.read_bytes()
    for damage in (whole[:-1], whole[: len(whole) // 2], b"", whole[:-5000] + bytes(5000), b"x" + whole[1:]):
        packed.write_bytes(damage)
        assert np.array_equal(scores(path), first)
        assert packed.read_bytes()[-6000:] == whole[-6000:]


def test_packing_is_told_step_by_step_and_only_when_it_happens(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = write_tiny(tmp_path / "tiny.gguf")
    for _ in range(2):
        load_native(EngineConfig(path, threads=1), on_packed=lambda done, total: told.append((done, total)))
    assert told == [(number, len(told)) for number in range(1, len(told) + 1)]
    assert told


def test_a_cache_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf")
    right = scores(path)
    folder = model_cache_dir()
    for entry in sorted(folder.rglob("*"), reverse=True):
        entry.unlink() if entry.is_file() else entry.rmdir()
    folder.rmdir()
    folder.write_bytes(b"in the way")
    loaded = load(path)
    assert len(loaded.notes) == 1 and "cannot be kept" in loaded.notes[0]
    assert np.array_equal(loaded.model.logits(TOKENS, head_rows=len(TOKENS)), right)


def test_too_little_memory_is_refused_before_anything_is_packed(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf")
    with pytest.raises(
        OutOfMemoryError,
        match=r"^Tiny qwen2 needs about \d+ MB of memory \(weights .* and 0 MB is available; no smaller",
    ):
        load_native(EngineConfig(path), available=lambda: 1000)
    assert not model_cache_dir().exists()


def _truncated(source: GgufSource) -> bytes:
    return source.to_bytes()[:-1000]


def _wrong_architecture(source: GgufSource) -> bytes:
    source.metadata["general.architecture"] = "bert"
    return source.to_bytes()


def _lacks_tensor(source: GgufSource) -> bytes:
    del source.tensors["blk.1.ffn_up.weight"]
    return source.to_bytes()


def _unsupported_kind(source: GgufSource) -> bytes:
    source.tensors["blk.1.ffn_up.weight"] = ("F16", (64, 96), bytes(64 * 96 * 2))
    return source.to_bytes()


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        (_truncated, ModelFileError, "reaches past the end"),
        (lambda source: b"<html>", ModelFileError, "does not begin like a GGUF file"),
        (_wrong_architecture, UnsupportedModelError, "'bert'"),
        (_lacks_tensor, ModelFileError, r"lacks the tensor blk\.1\.ffn_up\.weight"),
        (_unsupported_kind, UnsupportedModelError, r"blk\.1\.ffn_up\.weight as F16"),
    ],
)
def test_files_that_are_not_run(tmp_path: Path, damage: object, error: type[EngineError], words: str) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(damage(tiny_source()))  # type: ignore[operator]
    with pytest.raises(error, match=words) as caught:
        load(path)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError):
        load(tmp_path / "absent.gguf")


NO_NUMBERS = {"nan": 0x7E01, "infinity": 0x7C00, "minus infinity": 0xFC00}


def _with_half(source: GgufSource, name: str, at: int, half: int) -> None:
    kind, dims, raw = source.tensors[name]
    source.tensors[name] = (kind, dims, raw[:at] + half.to_bytes(2, "little") + raw[at + 2 :])


@pytest.mark.parametrize("bad", NO_NUMBERS.values(), ids=NO_NUMBERS)
@pytest.mark.parametrize("kind", LINEAR_TYPES)
def test_a_scale_that_is_no_number_is_damage_wherever_it_stands(tmp_path: Path, kind: str, bad: int) -> None:
    """First and last block, scale and minimum, of a layer, the head, and an embedding that is or is not the head."""
    inputs, size = BLOCKS[kind]
    fields = [SCALE_AT[kind], *([MINIMUM_AT[kind]] if kind in MINIMUM_AT else [])]
    places = [("blk.0.attn_q.weight", False), ("output.weight", False), ("token_embd.weight", False)]
    for name, tied in [*places, ("token_embd.weight", True)]:
        blocks = len(tiny_source("llama", kind=kind, tied=tied).tensors[name][2]) // size
        assert blocks * inputs > 1000
        for block in (0, blocks - 1):
            for field in fields:
                source = tiny_source("llama", kind=kind, tied=tied)
                _with_half(source, name, block * size + field, bad)
                with pytest.raises(ModelFileError, match=rf"tensor {name} is damaged: .*NaN or infinite"):
                    load(source.write(tmp_path / "tiny.gguf"))


@pytest.mark.parametrize(("kind", "bits"), [("F16", "007e"), ("F16", "00fc"), ("F32", "0000c07f"), ("F32", "000080ff")])
def test_an_embedding_of_floats_is_checked_too(tmp_path: Path, kind: str, bits: str) -> None:
    for place in ("first", "last"):
        source = tiny_source(kind=partial(_embedding_of, kind))
        name, raw = "token_embd.weight", source.tensors["token_embd.weight"][2]
        bad = bytes.fromhex(bits)
        broken = bad + raw[len(bad) :] if place == "first" else raw[: -len(bad)] + bad
        source.tensors[name] = (kind, source.tensors[name][1], broken)
        with pytest.raises(ModelFileError, match=rf"tensor {name} is damaged: .*NaN or infinite"):
            load(source.write(tmp_path / "tiny.gguf"))


@pytest.mark.parametrize(
    "name", ["blk.1.ffn_norm.weight", "blk.0.attn_norm.weight", "output_norm.weight", "blk.1.attn_k.bias"]
)
@pytest.mark.parametrize("bits", ["0000807f", "000080ff", "0100c07f"])
def test_a_vector_with_what_is_no_number_is_damage(tmp_path: Path, name: str, bits: str) -> None:
    source = tiny_source()
    kind, dims, raw = source.tensors[name]
    source.tensors[name] = (kind, dims, raw[:-4] + bytes.fromhex(bits))
    with pytest.raises(ModelFileError, match=rf"tensor {name} is damaged: a value is NaN or infinite"):
        load(source.write(tmp_path / "tiny.gguf"))


@pytest.mark.parametrize("factor", [0.0, -0.0, -2.0, float("nan"), float("inf")])
def test_rope_factors_divide_and_so_are_positive(tmp_path: Path, factor: float) -> None:
    source = tiny_source("llama", rope_factors=[1.0] * 7 + [factor])
    with pytest.raises(ModelFileError, match=r"tensor rope_freqs\.weight is damaged"):
        load(source.write(tmp_path / "tiny.gguf"))


@pytest.mark.parametrize("kind", LINEAR_TYPES)
def test_a_file_that_ends_inside_a_block_is_damage(tmp_path: Path, kind: str) -> None:
    whole = tiny_source(kind=kind).to_bytes()
    size = BLOCKS[kind][1]
    path = tmp_path / "tiny.gguf"
    for cut in (size // 2, size, size + 1):
        path.write_bytes(whole[: len(whole) - 32 - cut])  # 32: the file ends with whole units of alignment
        with pytest.raises(ModelFileError, match="reaches past the end"):
            load(path)


def test_weights_that_overflow_name_the_layer(tmp_path: Path) -> None:
    source = tiny_source()
    kind, dims, raw = source.tensors["blk.1.ffn_norm.weight"]
    source.tensors["blk.1.ffn_norm.weight"] = (kind, dims, b"\xff\xff\x7f\x7f" * (len(raw) // 4))  # the largest
    model = load(source.write(tmp_path / "tiny.gguf")).model
    with pytest.raises(NumericsError, match="layer 1"):
        model.forward(TOKENS, head_rows=1)
    assert model.length == 0


def test_odd_vocabularies_and_shapes(tmp_path: Path) -> None:
    shape = TinyShape(layers=1, hidden=32, heads=6, kv_heads=3, head_dim=16, ffn=32)
    logits = scores(tiny_source("llama", shape=shape, kind="Q5_1").write(tmp_path / "tiny.gguf"))
    assert np.isfinite(logits).all()


def test_a_native_load_imports_no_framework(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf")
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from editor_engine.config import EngineConfig\n"
        "from editor_engine.models.native.load import load_native\n"
        f"load_native(EngineConfig(Path({str(path)!r}), threads=1)).model.forward([1, 2], head_rows=1)\n"
        "heavy = {'torch', 'transformers', 'gguf', 'tokenizers', 'huggingface_hub'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
