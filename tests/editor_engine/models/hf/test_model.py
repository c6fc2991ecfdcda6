"""Every family as a target: drafts change nothing, the cache goes back anywhere, and faults leave it whole."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from editor_engine.errors import (  # noqa: E402
    CancelledError,
    ContextOverflowError,
    EngineError,
    NumericsError,
    OutOfMemoryError,
    RequestError,
)
from editor_engine.models.hf.model import HfModel  # noqa: E402
from editor_engine.models.sampling import Sampling  # noqa: E402
from tests.support.hf_runs import check_drafts, random_edits, scores  # noqa: E402
from tests.support.tiny_checkpoints import ARCHITECTURES, ROWS, WINDOW  # noqa: E402

TOKENS = [(7 * index * index + 3 * index) % 300 for index in range(4 * WINDOW)]
Load = Callable[..., HfModel]

families = pytest.mark.parametrize("family", ARCHITECTURES)


@families
def test_no_drafter_changes_a_token(load: Load, folder_of: Callable[..., Path], family: str) -> None:
    model = load(family)
    figures = check_drafts(model, folder_of(family), random_edits(2, seed=1))
    assert (figures.equal, figures.first_difference) == (2, None)
    assert all(case.accepted and case.drafted > case.accepted for case in figures.cases)
    decided, rerun = model.rerun_counts()
    assert decided > 2 * 32 and 0 <= rerun < decided / 10


@families
@pytest.mark.parametrize("kept", [1, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW])
def test_a_cache_that_was_cut_gives_the_bits_of_a_fresh_one(load: Load, family: str, kept: int) -> None:
    model, tail = load(family), TOKENS[kept : kept + 3]
    for token in TOKENS[:kept]:
        model.forward([token], head_rows=1)
    fresh = [model.logits([token], head_rows=1) for token in tail]
    model.truncate(kept)
    for token in TOKENS[::-1]:
        model.forward([token], head_rows=1)
    model.truncate(kept)
    again = [model.logits([token], head_rows=1) for token in tail]
    assert np.array_equal(fresh, again)


@families
def test_rows_of_one_pass_are_what_they_are_one_by_one(load: Load, family: str) -> None:
    """But for noise, which the guard is there for; a wrong mask or position is far more."""
    model = load(family)
    single = scores(model, TOKENS, chunk=1)
    for chunk in (2, 7, 64):
        model.truncate(0)
        assert np.abs(scores(model, TOKENS, chunk) - single).max() < 1e-3 * np.abs(single).max()


@families
def test_what_follows_a_copy_that_was_put_back_is_what_followed_before(load: Load, family: str) -> None:
    source, target = load(family), load(family)
    scores(source, TOKENS[:50], chunk=33)
    snapshot = source.export_cache(40)
    assert snapshot.data.nbytes == source.cache_bytes(40)
    source.truncate(40)
    expected = scores(source, TOKENS[40:60], chunk=1)
    scores(target, TOKENS[::-1])
    target.import_cache(snapshot)
    assert target.length == 40
    assert np.array_equal(scores(target, TOKENS[40:60], chunk=1), expected)
    target.truncate(40)
    assert bytes(target.export_cache(40).data) == bytes(snapshot.data)


@pytest.mark.parametrize("stored", ["bfloat16", "float16"])
@pytest.mark.parametrize("family", ["Qwen2", "Gemma3"])
def test_coarse_types_run(load: Load, family: str, stored: str) -> None:
    model = load(family, stored, dtype=stored)
    assert model.info.isa.startswith(stored)
    assert np.isfinite(scores(model, TOKENS)).all()
    copy = model.export_cache(len(TOKENS))
    model.truncate(0)
    model.import_cache(copy)
    assert bytes(model.export_cache(len(TOKENS)).data) == bytes(copy.data)


def test_a_refused_copy_leaves_the_cache_as_it_was(load: Load) -> None:
    model, other = load("Qwen2", context=100), load("Llama")
    scores(model, TOKENS[:40])
    expected = model.logits([5], head_rows=1)
    model.truncate(40)
    good = model.export_cache(30)
    longer = load("Qwen2")
    scores(longer, [*TOKENS, *TOKENS])
    scores(other, TOKENS[:30])
    refused: list[tuple[type[EngineError], object]] = [
        (RequestError, replace(good, data=good.data[:-1])),
        (RequestError, replace(good, length=29)),
        (RequestError, replace(good, length=-1)),
        (RequestError, replace(good, contract_version=7)),
        (RequestError, replace(good, data=memoryview(b"\1" + bytes(good.data)[1:]))),
        (RequestError, other.export_cache(30)),
        (ContextOverflowError, longer.export_cache(101)),
    ]
    for error, bad in refused:
        with pytest.raises(error):
            model.import_cache(bad)  # type: ignore[arg-type]
        assert model.length == 40
    assert np.array_equal(model.logits([5], head_rows=1), expected)


def test_a_copy_is_of_one_arithmetic(load: Load) -> None:
    fine, eager = load("Qwen2"), load("Qwen2", attention="eager")
    scores(fine, TOKENS[:10])
    with pytest.raises(RequestError, match="another arithmetic"):
        eager.import_cache(fine.export_cache(10))


def test_what_cannot_be_asked_is_refused(load: Load) -> None:
    model = load("Qwen2", context=70)
    asked: list[tuple[type[EngineError], Callable[[], object]]] = [
        (RequestError, lambda: model.forward([], head_rows=0)),
        (RequestError, lambda: model.forward([1] * 65, head_rows=0)),
        (RequestError, lambda: model.forward([1], head_rows=2)),
        (RequestError, lambda: model.forward([1, ROWS], head_rows=1)),
        (RequestError, lambda: model.forward([-1], head_rows=1)),
        (RequestError, lambda: model.truncate(1)),
        (RequestError, lambda: model.truncate(-1)),
        (RequestError, lambda: model.export_cache(1)),
        (RequestError, lambda: model.export_cache(-1)),
        (RequestError, lambda: model.cache_bytes(71)),
    ]
    for error, ask in asked:
        with pytest.raises(error):
            ask()
        assert model.length == 0
    scores(model, TOKENS[:64])
    with pytest.raises(ContextOverflowError, match="holds 70 tokens; 64 are in it and 7 more"):
        model.forward(TOKENS[:7], head_rows=1)
    assert len(model.forward(TOKENS[:6], head_rows=6)) == 6


def test_scores_and_choices_agree(load: Load) -> None:
    model, greedy = load("Qwen2"), Sampling(0.0, 0)
    for chunk in (1, 5):
        for at in range(0, 20, chunk):
            part, before = TOKENS[at : at + chunk], model.length
            logits = model.logits(part, head_rows=len(part))
            model.truncate(before)
            scored = model.sample(part, head_rows=len(part), sampling=greedy)
            model.truncate(before)
            assert [choice.token for choice in scored] == model.forward(part, head_rows=len(part))
            exact = logits[-1].astype(np.float64)
            total = float(np.log(np.exp(exact - exact.max()).sum()) + exact.max())
            assert scored[-1].logprob == pytest.approx(float(exact[scored[-1].token]) - total, abs=1e-6)
        model.truncate(0)


def test_the_lowest_of_equals_is_chosen(load: Load) -> None:
    model = load("Llama")
    head = model.network.module.lm_head.weight
    with torch.no_grad():
        head[300:] = head[:84]  # each id from 300 on ties with an earlier one
    for token in TOKENS[:60]:
        assert model.forward([token], head_rows=1)[0] < 300
    model.truncate(0)
    assert max(model.forward(TOKENS[:60], head_rows=60)) < 300


@pytest.mark.parametrize("after", [0, 1, 9])
@pytest.mark.parametrize("rows", [1, 3, 64])
def test_a_cancelled_pass_leaves_the_cache_at_its_last_whole_one(load: Load, after: int, rows: int) -> None:
    model = load("Qwen2")
    scores(model, TOKENS[:30])
    expected = model.logits(TOKENS[:rows], head_rows=rows)
    model.truncate(30)
    seen = 0

    def count(module: object, given: object) -> None:
        nonlocal seen
        seen += 1
        if seen > after:
            model.interrupt()

    linears = [part for part in model.network.module.modules() if isinstance(part, torch.nn.Linear)]
    handles = [part.register_forward_pre_hook(count, prepend=True) for part in linears]
    if after == 0:
        model.interrupt()
    with pytest.raises(CancelledError):
        model.forward(TOKENS[:rows], head_rows=rows)
    assert seen == after + (after > 0)  # nothing ran on
    with pytest.raises(CancelledError):
        model.forward([1], head_rows=1)
    model.resume()
    for handle in handles:
        handle.remove()
    assert model.length == 30
    assert np.array_equal(model.logits(TOKENS[:rows], head_rows=rows), expected)


def test_a_cancel_is_seen_within_the_head_as_well(load: Load) -> None:
    model = load("Qwen2")
    slices = 0
    original = torch.nn.functional.linear

    def linear(*given: Any) -> Any:
        nonlocal slices
        if given[1].shape[0] == ROWS:  # the head
            slices += 1
            if slices == 2:
                model.interrupt()
        return original(*given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch.nn.functional, "linear", linear)
        with pytest.raises(CancelledError):
            model.forward(TOKENS[:64], head_rows=64)
    model.resume()
    assert (slices, model.length) == (2, 0)
    expected = scores(model, TOKENS[:64], chunk=16)
    model.truncate(0)
    assert np.abs(scores(model, TOKENS[:64]) - expected).max() < 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: you tried 9"),
        "cuda",
    ],
)
def test_memory_that_runs_out_in_a_pass_ends_it_with_words(load: Load, error: Exception | str) -> None:
    model = load("Qwen2")
    scores(model, TOKENS[:30])
    expected = model.logits([3, 4], head_rows=2)
    model.truncate(30)
    raised = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB") if error == "cuda" else error

    def fail(module: object, given: object) -> None:
        raise raised  # type: ignore[misc]

    handle = model.network.layers[1].register_forward_pre_hook(fail)
    with pytest.raises(OutOfMemoryError, match="in a pass of 2 tokens behind 30"):
        model.forward([3, 4], head_rows=2)
    handle.remove()
    assert model.length == 30
    assert np.array_equal(model.logits([3, 4], head_rows=2), expected)


def test_a_fault_of_the_model_is_not_taken_for_memory(load: Load) -> None:
    model = load("Qwen2")

    def fail(module: object, given: object) -> None:
        raise RuntimeError("The size of tensor a must match")

    handle = model.network.layers[0].register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="size of tensor"):
        model.forward([1], head_rows=1)
    handle.remove()
    assert model.length == 0 and len(model.forward([1], head_rows=1)) == 1


@pytest.mark.parametrize("heads", [0, 1, 2])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_numbers_that_are_none_name_their_layer(load: Load, value: str, heads: int) -> None:
    model = load("Qwen2")
    model.forward([1, 2], head_rows=1)
    weight = model.network.layers[1].mlp.down_proj.weight  # type: ignore[union-attr]
    before = weight[0, 0].item()  # type: ignore[index]
    with torch.no_grad():
        weight[0, 0] = float(value)  # type: ignore[index]
    with pytest.raises(NumericsError, match=r"NaN or an infinity came out of layer 1; try another --dtype"):
        model.forward([3, 4], head_rows=heads)
    with torch.no_grad():
        weight[0, 0] = before  # type: ignore[index]
    assert model.length == 2
    assert len(model.forward([3, 4], head_rows=2)) == 2
