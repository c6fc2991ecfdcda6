"""The forward pass on tiny random models: chunking, variants, threads, twin agree; failures leave no mark."""

import threading

import numpy as np
import pytest

from editor_engine import kernels
from editor_engine.errors import (
    CancelledError,
    ContextOverflowError,
    EngineError,
    ModelFileError,
    NumericsError,
    RequestError,
    UnsupportedModelError,
)
from editor_engine.kernels import MAX_ROWS, PACKABLE_TYPES, RawTensor
from editor_engine.kernels.reference_model import ReferenceModel
from tests.support.kernel_cases import Floats, TinyModel, tiny_model

VARIANTS = kernels.variants()


def some_tokens(tiny: TinyModel, count: int, seed: int = 0) -> list[int]:
    return [int(t) for t in np.random.default_rng(seed).integers(0, tiny.shape.vocab, count)]


def logits_of(model: kernels.Model, tokens: list[int], chunks: list[int]) -> Floats:
    """Logits after every token, in passes of the given sizes (the last repeats)."""
    parts, at = [], 0
    while at < len(tokens):
        size = min(chunks[min(len(parts), len(chunks) - 1)], len(tokens) - at)
        parts.append(model.forward_logits(tokens[at : at + size], size)[1])
        at += size
    return np.concatenate(parts)


@pytest.mark.parametrize("family", ["qwen2", "llama"])
@pytest.mark.parametrize("kind", PACKABLE_TYPES)
def test_pass_equals_the_twin(family: str, kind: str) -> None:
    tiny = tiny_model(family, kind, tied=family == "llama", factors=kind in ("Q8_0", "Q4_K"))
    tokens = some_tokens(tiny, 12)
    twin = ReferenceModel(tiny.shape, tiny.raw)
    expected = np.stack([twin.step(token) for token in tokens])
    for isa in VARIANTS:
        model = tiny.load(isa=isa)
        ids, logits = model.forward_logits(tokens, len(tokens))
        assert logits.tobytes() == expected.tobytes(), isa
        assert ids == [int(np.argmax(row)) for row in expected]


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("kind", ["Q5_0", "Q4_K"])
def test_no_bit_depends_on_rows_or_threads(isa: str, kind: str) -> None:
    tiny = tiny_model("qwen2", kind)
    tokens = some_tokens(tiny, 140)
    alone = logits_of(tiny.load(isa=isa), tokens, [1])
    scalar = logits_of(tiny.load(isa="scalar"), tokens, [64])
    assert alone.tobytes() == scalar.tobytes()
    for chunks in ([2], [3], [4], [5], [7], [8], [16], [33], [64], [1, 64, 9, 17, 2]):
        for threads in (1, 2):
            model = tiny.load(isa=isa, threads=threads)
            assert logits_of(model, tokens, chunks).tobytes() == alone.tobytes(), (chunks, threads)


def test_head_rows_choose_which_ids_come_back() -> None:
    tiny = tiny_model("qwen2", "Q8_0")
    tokens = some_tokens(tiny, 20)
    every = tiny.load().forward(tokens, 20)
    for head_rows in (1, 2, 7, 20):
        assert tiny.load().forward(tokens, head_rows) == every[-head_rows:]
    model = tiny.load()
    assert model.forward(tokens[:19], 0) == []
    assert model.forward(tokens[19:], 1) == every[-1:]


def test_truncated_tokens_leave_no_trace() -> None:
    tiny = tiny_model("llama", "Q4_1")
    tokens = some_tokens(tiny, 90)
    fresh = logits_of(tiny.load(), tokens, [64])
    model = tiny.load()
    logits_of(model, tokens[:50] + some_tokens(tiny, 60, seed=9), [33])
    for keep in (50, 31, 0):
        model.truncate(keep)
        assert model.length == keep
        assert logits_of(model, tokens[keep:], [13]).tobytes() == fresh[keep:].tobytes()
    with pytest.raises(RequestError, match="90 tokens cannot be cut to 91"):
        model.truncate(91)


def test_interrupt_stops_passes_until_resume_and_leaves_the_cache_alone() -> None:
    tiny = tiny_model("qwen2", "Q8_0")
    tokens = some_tokens(tiny, 60)
    fresh = logits_of(tiny.load(), tokens, [60])
    model = tiny.load(threads=2)
    logits_of(model, tokens[:30], [30])
    model.interrupt()
    for _ in range(2):
        with pytest.raises(CancelledError):
            model.forward(tokens[30:], 1)
    assert model.length == 30
    model.resume()
    assert logits_of(model, tokens[30:], [30]).tobytes() == fresh[30:].tobytes()


def test_interrupt_in_the_middle_of_passes() -> None:
    """Another thread interrupts at changing moments; each pass is whole or never was."""
    tiny = tiny_model("qwen2", "Q8_0")
    tokens = some_tokens(tiny, 64)
    fresh = tiny.load().forward(tokens, 64)
    model = tiny.load(threads=2)
    cancelled = 0
    for round_ in range(60):
        started = threading.Event()

        def strike(spins: int = round_ * 40, started: threading.Event = started) -> None:
            started.wait()
            for _ in range(spins):
                pass
            model.interrupt()

        striker = threading.Thread(target=strike)
        striker.start()
        started.set()
        try:
            assert model.forward(tokens, 64) == fresh
            assert model.length == 64
        except CancelledError:
            cancelled += 1
            assert model.length == 0
        striker.join()
        model.resume()
        model.truncate(0)
        assert model.forward(tokens[:5], 5) == fresh[:5]
        model.truncate(0)
    assert cancelled > 0


def test_context_overflow_says_the_numbers() -> None:
    tiny = tiny_model("qwen2", "Q8_0", context=70)
    model = tiny.load()
    model.forward(some_tokens(tiny, 64), 1)
    with pytest.raises(ContextOverflowError, match=r"70 tokens; 64 are in it and 7 more"):
        model.forward(some_tokens(tiny, 7), 1)
    assert model.length == 64
    model.forward(some_tokens(tiny, 6), 1)


@pytest.mark.parametrize(
    ("tokens", "head_rows"), [([], 0), ([0] * (MAX_ROWS + 1), 1), ([0], 2), ([0], -1), ([-1], 1), ([10**6], 1)]
)
def test_a_pass_that_makes_no_sense_is_refused(tokens: list[int], head_rows: int) -> None:
    model = tiny_model("qwen2", "Q8_0").load()
    with pytest.raises(RequestError):
        model.forward(tokens, head_rows)
    assert model.length == 0


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("blk.1.attn_norm.weight", "input of attention, layer 1"),
        ("blk.0.attn_v.bias", "keys or values, layer 0"),
        ("blk.1.ffn_norm.weight", "input of the feed-forward part, layer 1"),
        ("output_norm.weight", "input of the head, after the last layer"),
    ],
)
def test_a_number_that_is_none_is_an_error_naming_the_layer(isa: str, name: str, where: str) -> None:
    tiny = tiny_model("qwen2", "Q8_0")
    vector = tiny.raw[name]
    assert isinstance(vector, np.ndarray)
    broken = vector.copy()
    broken[5] = np.inf
    tiny.raw[name] = broken
    model = tiny.load(isa=isa, threads=2)
    with pytest.raises(NumericsError, match=where):
        model.forward(some_tokens(tiny, 3), 1)
    assert model.length == 0


@pytest.mark.parametrize("name", ["output.weight", "blk.1.ffn_down.weight", "blk.0.attn_norm.weight"])
def test_missing_or_misshapen_tensors_are_refused_by_name(name: str) -> None:
    tiny = tiny_model("qwen2", "Q8_0")
    tensor = tiny.raw.pop(name)
    with pytest.raises(ModelFileError, match=name):
        tiny.load()
    if isinstance(tensor, RawTensor):
        fewer = tensor.data[: tensor.data.size * (tensor.n - 8) // tensor.n]
        tiny.raw[name] = RawTensor(tensor.type, tensor.n - 8, tensor.k, fewer)
    else:
        tiny.raw[name] = tensor[:-1]
    with pytest.raises(ModelFileError, match=name):
        tiny.load()


def test_sizes_the_kernels_do_not_take_are_refused() -> None:
    tiny = tiny_model("qwen2", "Q8_0")
    for field, value in (("head_dim", 12), ("layers", 0), ("context", 0), ("kv_heads", 3)):
        broken = TinyModel(kernels.ModelShape(**{**tiny.shape.__dict__, field: value}), tiny.raw)
        with pytest.raises((UnsupportedModelError, ModelFileError)):
            broken.load()


def test_threads_out_of_range_are_refused() -> None:
    tiny = tiny_model("qwen2", "Q8_0")
    for threads in (0, -1, 100000):
        with pytest.raises(EngineError, match="threads"):
            tiny.load(threads=threads)
