"""Real weights: the float twin within its bound of transformers (`test_float_twin` says why that bound), the price of
8-bit activations against the twin, reported, and plain greedy decoding compared with transformers.

transformers runs the same weights with float activations, so its ids are the float model's choice. Ours are computed
with activations of 8 bits: near a tie they may choose otherwise. On this prompt they do not, for every id compared;
that is asserted as it is, because our bits are the same on every machine.
"""

from pathlib import Path

import numpy as np
import pytest

from editor_engine import kernels
from editor_engine.config import EngineConfig
from editor_engine.models.native.checkpoint import open_checkpoint
from editor_engine.models.native.float_twin import FloatTwin
from editor_engine.models.native.load import load_native
from editor_engine.models.native.model import NativeModel
from editor_engine.quant.gguf import GgufFile
from editor_engine.text.tokenizer import load_tokenizer

reference = pytest.importorskip("tests.support.reference_model", exc_type=ImportError)

BOUND = 1e-3
PROMPT = "def fibonacci(n):\n"
CODE = '''def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number."""
    if n < 2:
        return n
    a, b = 0, 1
    for _ in range(n - 1):
        a, b = b, a + b
    return b


def factorial(n: int) -> int:
    """Return n!."""
'''


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def greedy(model: NativeModel, tokens: list[int], count: int) -> list[int]:
    """The plainest loop: one token a pass after the prompt."""
    (last,) = model.forward(tokens, head_rows=1)
    out = [last]
    while len(out) < count:
        (last,) = model.forward([last], head_rows=1)
        out.append(last)
    return out


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    out: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return out


def check(path: Path, count: int) -> None:
    loaded = load_native(EngineConfig(path))
    model, tokenizer = loaded.model, load_tokenizer(loaded.metadata)

    tokens = tokenizer.encode(CODE)
    chunks = [tokens[at : at + model.rows] for at in range(0, len(tokens), model.rows)]
    ours = np.concatenate([model.logits(chunk, head_rows=len(chunk)) for chunk in chunks])
    twin = FloatTwin(open_checkpoint(GgufFile(path))).logits(tokens)
    transformers_model = reference.reference_model(path)
    reference.assert_same_model(twin, reference.reference_logits(transformers_model, tokens), BOUND)

    ours_log, twin_log = log_probabilities(ours), log_probabilities(twin)
    divergence = (np.exp(twin_log) * (twin_log - ours_log)).sum(axis=1)
    ordered = np.sort(twin, axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    same = ours.argmax(axis=1) == twin.argmax(axis=1)
    print(
        f"{path.name}, 8-bit activations against float over {len(tokens)} positions: same choice {same.mean():.1%}, "
        f"largest logit difference {np.abs(ours - twin).max():.2f}, divergence mean {divergence.mean():.1e} nats, "
        f"most {divergence.max():.1e}; widest margin lost {margin[~same].max(initial=0):.2f}"
    )
    assert same[margin > 1].all()
    assert same.mean() > 0.95
    assert divergence.mean() < 0.02

    prompt = tokenizer.encode(PROMPT)
    model.truncate(0)
    ids = greedy(model, prompt, count)
    print(f"{path.name}, greedy: {tokenizer.decode(ids)!r}")
    assert ids == reference.reference_greedy(transformers_model, prompt, count)


@pytest.mark.model
def test_smollm2(smollm2_path: Path) -> None:
    check(smollm2_path, 40)


@pytest.mark.model
def test_qwen_05(qwen05_path: Path) -> None:
    check(qwen05_path, 16)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(1800)  # 6 GB of floats are made and multiplied on few processors
def test_qwen_15(qwen15_path: Path) -> None:
    check(qwen15_path, 24)


def check_identity(path: Path, count: int) -> None:
    """Every variant, thread count and size of passes gives the logits of the scalar kernels in one pass."""

    def run(chunk: int, isa: str, threads: int) -> bytes:
        model = load_native(EngineConfig(path, isa=isa, threads=threads, context_length=256)).model
        pieces = [tokens[at : at + chunk] for at in range(0, count, chunk)]
        return b"".join(model.logits(piece, head_rows=len(piece)).tobytes() for piece in pieces)

    tokens = [index * 97 % 49000 for index in range(1, count + 1)]
    right = run(count, "scalar", 2)
    for isa in kernels.variants():
        for threads, chunk in ((1, 7), (2, 1), (3, count)) if isa != "scalar" else ():
            assert run(chunk, isa, threads) == right or pytest.fail(f"{isa}, {threads} threads, {chunk} rows")


@pytest.mark.model
def test_variants_threads_and_chunks_give_one_result(smollm2_path: Path) -> None:
    check_identity(smollm2_path, 17)


@pytest.mark.model
def test_variants_threads_and_chunks_give_one_result_05(qwen05_path: Path) -> None:
    check_identity(qwen05_path, 9)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_variants_threads_and_chunks_give_one_result_15(qwen15_path: Path) -> None:
    check_identity(qwen15_path, 64)
