"""Snapshots of the KV cache: put back anywhere, they go on as a fresh model would; refused ones change nothing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from editor_engine import kernels
from editor_engine.config import EngineConfig
from editor_engine.errors import ContextOverflowError, EngineError, RequestError
from editor_engine.models.native.load import load_native
from editor_engine.models.native.model import NativeModel
from tests.support.tiny_gguf import TinyShape, write_tiny

TOKENS = [(7 * index * index + 3 * index) % 300 for index in range(200)]
OTHERS = [(11 * index + 5) % 300 for index in range(200)]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "tiny.gguf", "qwen2", kind="Q8_0")


def load(path: Path, **options: object) -> NativeModel:
    return load_native(EngineConfig(path, **{"threads": 1, **options})).model  # type: ignore[arg-type]


def scores(model: NativeModel, tokens: list[int], chunk: int = 64) -> npt.NDArray[np.float32]:
    """Logits after every token."""
    parts = [tokens[at : at + chunk] for at in range(0, len(tokens), chunk)]
    return np.concatenate([model.logits(part, head_rows=len(part)) for part in parts])


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 128, 150])
def test_what_follows_an_import_is_what_a_fresh_model_gives(tiny: Path, length: int) -> None:
    fresh = scores(load(tiny), TOKENS)
    source = load(tiny)
    scores(source, TOKENS[:150], chunk=33)
    snapshot = source.export_cache(length)
    assert source.length == 150
    assert snapshot.length == length
    assert snapshot.data.nbytes == source.cache_bytes(length)
    source.truncate(0)
    scores(source, OTHERS)  # a copy, not a view: what is decoded later does not reach it
    targets = [source, *(load(tiny, isa=isa, threads=2) for isa in kernels.variants())]
    for model in targets:
        for _ in range(2):
            model.import_cache(snapshot)
            assert model.length == length
            assert scores(model, TOKENS[length:], chunk=17).tobytes() == fresh[length:].tobytes()
        model.import_cache(snapshot)
        assert bytes(model.export_cache(length).data) == bytes(snapshot.data)
        model.truncate(length - 1)
        assert scores(model, TOKENS[length - 1 :]).tobytes() == fresh[length - 1 :].tobytes()


def test_a_snapshot_of_no_tokens_empties_the_cache(tiny: Path) -> None:
    model = load(tiny)
    snapshot = model.export_cache(0)
    assert snapshot.data.nbytes == model.cache_bytes(0) == 0
    scores(model, OTHERS[:20])
    model.import_cache(snapshot)
    assert model.length == 0
    assert scores(model, TOKENS[:5]).tobytes() == scores(load(tiny), TOKENS[:5]).tobytes()


def test_sizes_are_known_before(tiny: Path) -> None:
    """Whole groups of eight tokens, as the keys lie in the cache."""
    model = load(tiny)
    shape = TinyShape()
    per_token = shape.layers * shape.kv_heads * shape.head_dim * 2 * 2
    assert [model.cache_bytes(n) for n in (0, 1, 8, 9, 104)] == [per_token * n for n in (0, 8, 8, 16, 104)]
    for length in (-1, 1 << 40):
        with pytest.raises(RequestError, match="tokens"):
            model.cache_bytes(length)


def test_more_than_there_is_cannot_be_exported(tiny: Path) -> None:
    model = load(tiny)
    scores(model, TOKENS[:10])
    for length in (11, -1):
        with pytest.raises(RequestError, match="tokens"):
            model.export_cache(length)
    assert model.length == 10


def test_a_refused_snapshot_leaves_the_cache_as_it_was(tiny: Path, tmp_path: Path) -> None:
    model = load(tiny, context_length=100)
    fresh = scores(load(tiny), TOKENS[:60])
    good = load(tiny)
    scores(good, TOKENS[:120])
    snapshot = good.export_cache(50)
    other = load(write_tiny(tmp_path / "other.gguf", "qwen2", kind="Q8_0", seed=9))
    scores(other, TOKENS[:50])
    scores(model, TOKENS[:40])
    refused: list[tuple[type[EngineError], object]] = [
        (RequestError, replace(snapshot, data=snapshot.data[:-1])),
        (RequestError, replace(snapshot, length=57)),
        (RequestError, replace(snapshot, length=-1)),
        (RequestError, replace(snapshot, contract_version=snapshot.contract_version + 1)),
        (RequestError, other.export_cache(50)),
        (ContextOverflowError, good.export_cache(101)),
    ]
    for error, bad in refused:
        with pytest.raises(error):
            model.import_cache(bad)  # type: ignore[arg-type]
        assert model.length == 40
    assert scores(model, TOKENS[40:60]).tobytes() == fresh[40:].tobytes()


def test_a_snapshot_may_be_read_only(tiny: Path) -> None:
    model = load(tiny)
    scores(model, TOKENS[:30])
    snapshot = model.export_cache(30)
    model.import_cache(replace(snapshot, data=memoryview(bytes(snapshot.data))))
    assert scores(model, TOKENS[30:40]).tobytes() == scores(load(tiny), TOKENS[:40])[30:].tobytes()


@pytest.mark.model
def test_real_weights_go_on_from_a_snapshot(qwen05_path: Path) -> None:
    source, tokens = load(qwen05_path, threads=2), [index * 97 % 49000 for index in range(1, 81)]
    fresh = scores(source, tokens)
    snapshot = source.export_cache(70)
    target = load(qwen05_path, threads=2)
    target.import_cache(snapshot)
    assert scores(target, tokens[70:], chunk=3).tobytes() == fresh[70:].tobytes()
