"""The guard where it is needed: a head with near ties, and passes with more noise than any real one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from editor_engine.models.hf.guard import Guard  # noqa: E402
from editor_engine.models.hf.model import HfModel  # noqa: E402
from tests.support.hf_runs import check_drafts, random_edits  # noqa: E402

Load = Callable[..., HfModel]
NOISE = 0.02
"""Share of its greatest value that a pass of several rows moves every hidden number by."""


class Rounding:
    """What adding in another order does, made large: in passes of several rows, layers add a bit of their own."""

    def __init__(self, model: HfModel) -> None:
        self.handles = [layer.register_forward_hook(self._disturb) for layer in model.network.layers]

    def _disturb(self, module: object, given: object, output: Any) -> Any:
        states = output[0] if isinstance(output, tuple) else output
        rows = states.shape[1]
        if rows > 1:
            wave = torch.sin(torch.arange(states.numel(), dtype=states.dtype) * (1.0 + rows)).reshape(states.shape)
            states = states + NOISE / 4 * wave * states.abs().amax(dim=-1, keepdim=True)
        return (states, *output[1:]) if isinstance(output, tuple) else states


def noisy(load: Load, guard: Guard) -> HfModel:
    model = load("Qwen2")
    model.guard = guard
    Rounding(model)
    return model


def test_without_the_guard_rows_decide(load: Load, folder_of: Callable[..., Path]) -> None:
    """What the other tests here are worth: this noise does change tokens."""
    figures = check_drafts(noisy(load, Guard(-1.0, replay=True)), folder_of("Qwen2"), random_edits(3, seed=2))
    assert figures.equal < 3


def test_with_it_they_do_not(load: Load, folder_of: Callable[..., Path]) -> None:
    model = noisy(load, Guard(0.5, replay=True))
    figures = check_drafts(model, folder_of("Qwen2"), random_edits(4, seed=2))
    assert (figures.equal, figures.first_difference) == (4, None)
    assert 0 < model.rerun_counts()[1] < model.rerun_counts()[0]


def test_what_was_asked_before_decides_nothing_either(load: Load, folder_of: Callable[..., Path]) -> None:
    """The cache of an earlier request was filled in other passes than a fresh engine's."""
    cases = random_edits(4, seed=3)
    model = noisy(load, Guard(0.5, replay=True))
    together = check_drafts(model, folder_of("Qwen2"), cases, hostile=False)
    for case, figures in zip(cases, together.cases, strict=True):
        model.truncate(0)
        alone = check_drafts(model, folder_of("Qwen2"), [case], hostile=False)
        assert alone.cases[0].ids == figures.ids


def test_only_the_token_is_run_again_where_a_replay_would_cost_too_much(
    load: Load, folder_of: Callable[..., Path]
) -> None:
    model = noisy(load, Guard(0.5, replay=False))
    check_drafts(model, folder_of("Qwen2"), random_edits(1, seed=2), hostile=False)
    decided, rerun = model.rerun_counts()
    assert 0 < rerun < decided


def test_a_cancel_in_a_replay_leaves_the_cache_whole(load: Load) -> None:
    from editor_engine.errors import CancelledError

    model = noisy(load, Guard(10.0, replay=True))
    model.forward([1, 2, 3], head_rows=1)
    passes = 0

    def count(module: object, given: object) -> None:
        nonlocal passes
        passes += 1
        if passes == 2:  # the first pass of the replay
            model.interrupt()

    handle = model.network.layers[0].register_forward_pre_hook(count, prepend=True)
    with pytest.raises(CancelledError):
        model.forward([4, 5, 6], head_rows=3)
    handle.remove()
    model.resume()
    assert model.length == 3
    after = model.forward([4, 5, 6], head_rows=3)
    model.truncate(0)
    model.forward([1, 2, 3], head_rows=1)
    assert model.forward([4, 5, 6], head_rows=3) == after


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", ["Qwen2", "Gemma3"])
def test_many_edits_in_fine_and_in_coarse_types(
    load: Load, folder_of: Callable[..., Path], family: str, dtype: str
) -> None:
    """With the shares as they are; bfloat16 replayed too, which by itself it is not."""
    model = load(family, dtype, dtype=dtype)
    model.guard = replace(model.guard, replay=True)
    figures = check_drafts(model, folder_of(family, dtype), random_edits(4, seed=8), hostile=False)
    assert (figures.equal, figures.first_difference) == (4, None)
    decided, rerun = model.rerun_counts()
    assert rerun < decided / (2 if dtype == "bfloat16" else 100)


def test_a_head_with_twins_ties_in_every_form(load: Load, folder_of: Callable[..., Path]) -> None:
    """Each row of the head but for noise that float32 hardly holds twice: every choice is a near tie."""
    model = load("Llama")
    head = model.network.module.lm_head.weight
    with torch.no_grad():
        head[192:] = head[:192] * (1 + 1e-6)
    figures = check_drafts(model, folder_of("Llama"), random_edits(2, seed=4), hostile=False)
    assert (figures.equal, figures.first_difference) == (2, None)
    decided, rerun = model.rerun_counts()
    assert rerun > decided / 8
