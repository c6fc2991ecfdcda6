"""Packed by bitsandbytes, on the CPU: every kind drafts without changing a token and takes the bytes that were said."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("bitsandbytes")

from editor_engine.config import HfOptions
from editor_engine.models.hf.checkpoint import open_folder
from editor_engine.models.hf.model import HfModel
from editor_engine.models.hf.sizes import weights_bytes
from tests.support.hf_runs import check_drafts, random_edits, scores

Load = Callable[..., HfModel]

KINDS = [
    {"quantise": "nf4"},
    {"quantise": "nf4", "double_quant": True},
    {"quantise": "nf4", "compute_dtype": "bfloat16", "dtype": "bfloat16"},
    {"quantise": "fp4"},
    {"quantise": "int8"},
]
kinds = pytest.mark.parametrize("options", KINDS, ids=lambda options: " ".join(map(str, options.values())))


@kinds
def test_drafts_change_nothing(load: Load, folder_of: Callable[..., Path], options: dict[str, object]) -> None:
    """With near ties replayed; by itself the guard only runs them again, since a replay would cost what drafts gain."""
    model = load("Qwen2", device="cpu", **options)
    assert not model.guard.replay
    model.guard = replace(model.guard, replay=True)
    figures = check_drafts(model, folder_of("Qwen2"), random_edits(1, seed=5))
    assert (figures.equal, figures.first_difference) == (1, None)
    assert all(case.accepted for case in figures.cases)


@kinds
def test_they_take_the_bytes_that_were_said_and_differ_from_the_whole(
    load: Load, folder_of: Callable[..., Path], options: dict[str, object]
) -> None:
    model, tokens = load("Qwen2", device="cpu", **options), list(range(40))
    said = weights_bytes(open_folder(folder_of("Qwen2")), HfOptions(**options), str(options.get("dtype", "float32")))  # type: ignore[arg-type]
    assert model.info.weights_bytes == pytest.approx(said, rel=0.05)
    whole, packed = scores(load("Qwen2"), tokens), scores(model, tokens)
    off = np.abs(whole - packed).max() / np.abs(whole).max()
    assert 1e-4 < off < 1.0
    again = load("Qwen2", device="cpu", **options)
    noise = np.abs(scores(again, tokens, chunk=1) - packed) / np.abs(packed).max(axis=1, keepdims=True)
    assert 2 * noise.max() < again.guard.share  # a lead is between two logits
    assert str(options["quantise"]) in model.info.isa


@pytest.mark.parametrize("family", ["Gemma3", "Phi3", "Starcoder2"])
def test_other_families_are_packed_as_well(load: Load, folder_of: Callable[..., Path], family: str) -> None:
    model = load(family, device="cpu", quantise="nf4")
    model.guard = replace(model.guard, replay=True)
    figures = check_drafts(model, folder_of(family), random_edits(1, seed=6), hostile=False)
    assert figures.equal == 1


def test_a_row_does_not_depend_on_what_its_neighbours_are(load: Load) -> None:
    """int8 as bitsandbytes has it by default takes columns out where any row of the pass is large."""
    model = load("Qwen2", device="cpu", quantise="int8")
    model.logits([1, 2, 3], head_rows=1)
    first = model.logits([7, 8, 9, 10], head_rows=4)
    model.truncate(3)
    second = model.logits([7, 300, 301, 302], head_rows=4)
    assert np.array_equal(first[0], second[0])
