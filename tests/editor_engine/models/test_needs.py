"""What loads need by the headers of their files: both kinds of models, pairs, devices, and refusals before a load."""

from dataclasses import replace
from pathlib import Path

import pytest

from editor_engine.config import EngineConfig, HfOptions
from editor_engine.engine import Engine
from editor_engine.errors import OptionError, OutOfMemoryError, RequestError
from editor_engine.gpus import Gpu
from editor_engine.memory import CPU, MemoryPlan, Need
from editor_engine.models.hf.sizes import WORKSPACE_BYTES
from editor_engine.models.native.load import load_native
from editor_engine.models.needs import Machine, draft_config, plan_load, refuse_what_does_not_fit
from tests.support.bare_checkpoint import CACHE, CONTEXT, EMBEDDING, LAYERS, MATRIX, write_bare
from tests.support.tiny_gguf import write_tiny

WHOLE = 2 * (2 * EMBEDDING + LAYERS * MATRIX)
"""Bytes of the bare checkpoint's weights in two bytes each."""
ROOMY, TIGHT = Gpu(0, "G", 80 << 30, 79 << 30), Gpu(0, "G", 1 << 30, WORKSPACE_BYTES)


def planned(path: Path, machine: Machine | None = None, draft: Path | None = None, **hf: object) -> MemoryPlan:
    options = HfOptions(**{"dtype": "bfloat16", **hf})  # type: ignore[arg-type]
    config = EngineConfig(path, draft_path=draft, hf=options)
    return plan_load(config, machine or Machine(1 << 40))


def test_a_gguf_file_needs_what_its_load_then_takes(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf")
    plan = planned(path)
    (need,) = plan.needs
    info = load_native(EngineConfig(path, threads=1)).model.info
    assert (need.name, need.weights, need.cache_per_token) == (
        info.name,
        info.weights_bytes,
        info.cache_bytes_per_token,
    )
    assert (plan.context, plan.asked, plan.free) == (info.context_length, False, {CPU: 1 << 40})


@pytest.mark.parametrize(
    ("options", "weights", "cached"),
    [
        ({}, WHOLE, 2),
        ({"dtype": "float32"}, 2 * WHOLE, 4),
        ({"quantise": "nf4"}, 4 * EMBEDDING + LAYERS * (MATRIX // 2 + MATRIX // 64 * 4), 2),
        ({"quantise": "int8"}, 4 * EMBEDDING + LAYERS * (MATRIX + 64 * 4), 2),
    ],
)
def test_a_folder_needs_what_its_options_make_of_it(
    tmp_path: Path, options: dict[str, object], weights: int, cached: int
) -> None:
    plan = planned(write_bare(tmp_path / "bare"), **options)
    assert plan.needs == (Need("bare", weights, CACHE * cached, WORKSPACE_BYTES),)
    assert plan.context == CONTEXT


@pytest.mark.parametrize(
    ("options", "gpus", "places"),
    [
        ({}, (), [CPU]),
        ({}, (ROOMY,), ["cuda:0"]),
        ({}, (TIGHT,), [CPU]),
        ({"device": "cpu"}, (ROOMY,), [CPU]),
        ({"device": "cuda"}, (TIGHT,), ["cuda:0"]),
        ({"device": "cuda:3"}, (), ["cuda:3"]),
        ({"gpu_layers": 1}, (TIGHT,), ["cuda:0", CPU]),
        ({"gpu_layers": 0}, (ROOMY,), [CPU]),
        ({"gpu_layers": 0, "device": "cuda"}, (ROOMY,), [CPU]),
        ({"gpu_layers": LAYERS}, (ROOMY,), ["cuda:0"]),
        ({"device": "cuda", "gpu_layers": 3}, (ROOMY,), ["cuda:0", CPU]),
    ],
)
def test_where_a_folder_goes(
    tmp_path: Path, options: dict[str, object], gpus: tuple[Gpu, ...], places: list[str]
) -> None:
    plan = planned(write_bare(tmp_path / "bare"), Machine(1 << 40, gpus), **options)
    assert list(plan.places) == places
    assert sum(need.weights for need in plan.needs) == WHOLE
    assert sum(need.cache_per_token for need in plan.needs) == 2 * CACHE


def test_the_first_layers_alone_go_to_the_device(tmp_path: Path) -> None:
    plan = planned(write_bare(tmp_path / "bare"), Machine(1 << 40, (ROOMY,)), gpu_layers=3)
    there, here = plan.needs
    assert (there.weights, there.cache_per_token) == (3 * 2 * MATRIX, 2 * CACHE * 3 // LAYERS)
    assert here.weights == 2 * (2 * EMBEDDING + MATRIX)


@pytest.mark.parametrize("gpus", [(), (ROOMY,), (TIGHT,)])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gpu_layers": LAYERS + 1}, f"--gpu-layers {LAYERS + 1} cannot be had: the model has {LAYERS} layers."),
        ({"gpu_layers": 1, "device": "cpu"}, "--gpu-layers 1 contradicts --device cpu."),
    ],
)
def test_layers_that_cannot_be_meant_are_refused_by_the_plan(
    tmp_path: Path, options: dict[str, object], words: str, gpus: tuple[Gpu, ...]
) -> None:
    with pytest.raises(OptionError) as caught:
        planned(write_bare(tmp_path / "bare"), Machine(1 << 40, gpus), **options)
    assert str(caught.value) == words


def test_a_draft_model_gives_no_more_layers_than_it_has(tmp_path: Path) -> None:
    draft = write_bare(tmp_path / "draft")
    plan = planned(write_tiny(tmp_path / "tiny.gguf"), Machine(1 << 40, (ROOMY,)), draft=draft, gpu_layers=LAYERS + 5)
    assert [(need.place, need.drafts) for need in plan.needs] == [(CPU, False), ("cuda:0", True)]
    config = EngineConfig(tmp_path / "tiny.gguf", draft_path=draft, context_length=9, hf=HfOptions(gpu_layers=2))
    assert draft_config(draft, config) == EngineConfig(draft, hf=HfOptions(gpu_layers=2))


def test_a_draft_model_is_counted_with_its_own_context(tmp_path: Path) -> None:
    target, draft = write_tiny(tmp_path / "tiny.gguf"), write_bare(tmp_path / "bare")
    plan = planned(target, draft=draft)
    assert [(need.name, need.drafts) for need in plan.needs] == [(plan.needs[0].name, False), ("bare", True)]
    assert plan.needs[1].most_tokens == CONTEXT
    asked = plan_load(EngineConfig(target, draft_path=draft, context_length=100), Machine(1 << 40))
    assert (asked.context, asked.asked, asked.needs[1].most_tokens) == (100, True, CONTEXT)


def test_a_draft_model_finds_what_the_model_left(tmp_path: Path) -> None:
    target, draft = write_bare(tmp_path / "big"), write_bare(tmp_path / "small")
    whole = planned(target, Machine(1 << 40, (ROOMY,)), draft=draft)
    room = WORKSPACE_BYTES + WHOLE + 2 * CACHE * CONTEXT
    assert whole.places == ("cuda:0",)
    both = planned(target, Machine(1 << 40, (replace(ROOMY, free=room),)), draft=draft)
    assert [need.place for need in both.needs] == ["cuda:0", CPU]


def test_an_impossible_context_is_said_before_anything_is_loaded(tmp_path: Path) -> None:
    for path in (write_tiny(tmp_path / "tiny.gguf"), write_bare(tmp_path / "bare")):
        with pytest.raises(RequestError, match="was made for at most"):
            plan_load(EngineConfig(path, context_length=10**6), Machine(None))


def test_a_folder_that_does_not_fit_may_fit_with_smaller_weights(tmp_path: Path) -> None:
    folder = write_bare(tmp_path / "bare")
    config = EngineConfig(folder, context_length=CONTEXT, hf=HfOptions(dtype="bfloat16"))
    whole = plan_load(config, Machine(None)).needed(CPU)
    refuse_what_does_not_fit(config, Machine(whole))
    with pytest.raises(OutOfMemoryError, match=r"\(--context-length 4095\)"):
        refuse_what_does_not_fit(config, Machine(whole - 1))
    with pytest.raises(OutOfMemoryError, match=r"fits is 4-bit weights \(--quantise nf4\)"):
        refuse_what_does_not_fit(config, Machine(whole - 2 * CACHE * (CONTEXT - 1000)), lambda plan: iter(()))


def test_a_folder_that_does_not_fit_in_float32_may_fit_as_it_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("editor_engine.models.hf.sizes.multiplies_bfloat16", lambda: False)
    config = EngineConfig(write_bare(tmp_path / "bare"), context_length=CONTEXT)
    room = plan_load(config, Machine(None)).needed(CPU) - 4 * CACHE * CONTEXT + 2 * CACHE * 1500
    with pytest.raises(OutOfMemoryError, match=r"fits is weights as they are stored \(--dtype bfloat16\)"):
        refuse_what_does_not_fit(config, Machine(room))


def test_an_engine_refuses_a_pair_before_it_loads_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tiny(tmp_path / "tiny.gguf")
    plan = planned(path)
    monkeypatch.setattr("editor_engine.loading.load", None)  # whoever calls it fails
    config = EngineConfig(path, threads=1, draft_path=path, max_memory=plan.largest + 1)
    with pytest.raises(OutOfMemoryError, match=r"draft model .*--max-memory allows .* is no draft model") as caught:
        Engine.load(config)
    assert str(caught.value).endswith(".") and "Traceback" not in str(caught.value)


def test_options_of_checkpoints_are_said_to_have_no_effect_on_a_file(tmp_path: Path) -> None:
    path = write_tiny(tmp_path / "tiny.gguf")
    config = EngineConfig(path, threads=1, hf=HfOptions(device="cuda", quantise="nf4"))
    (note,) = [note for note in Engine.load(config).notes if "without effect" in note]
    assert (
        note
        == "tiny.gguf is a GGUF file, which our own kernels run on the CPU; without effect there: --quantise, --device."
    )
    assert not any("without effect" in note for note in Engine.load(EngineConfig(path, threads=1)).notes)
