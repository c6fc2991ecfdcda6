"""Models in the place of one that does not fit: whole, meant for editing, smaller, and the nearest first."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from editor_engine.config import models_dir
from editor_engine.errors import OutOfMemoryError
from editor_engine.memory import CPU, MemoryPlan, Need, nearest, refuse_if_short
from editor_engine.store.catalogue import CatalogueModel
from editor_engine.store.installed import installed, write_record
from editor_engine.store.smaller import smaller_models
from tests.support.wheel_index import index_model, use_catalogue

GB = 10**9


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[CatalogueModel]:
    """A catalogue of four models of 1 to 4 GB and one for tests."""
    one = index_model(tmp_path / "wheels", b"x")
    made = [
        replace(
            one, id=f"m{size}", file=f"m{size}.gguf", bytes=size * GB, sha256=f"{size}" * 64, kv_bytes_per_token=10**5
        )
        for size in (1, 2, 3, 4)
    ]
    use_catalogue(monkeypatch, *made, replace(one, id="toy", file="toy.gguf", bytes=10**8, for_tests=True))
    return made


def install(model: CatalogueModel, *, whole: bool = True) -> None:
    path = models_dir() / model.file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        stream.truncate(model.bytes if whole else 1)  # a hole: no disk is taken
    write_record(path, model.sha256)


def plan(free: float) -> MemoryPlan:
    needs = (Need("big", 7 * GB, 10**5), Need("draft", GB, 10**5, drafts=True))
    return MemoryPlan(needs, 8192, True, free={CPU: int(free * GB)})


def test_installed_ones_come_first_and_then_the_largest(models: list[CatalogueModel]) -> None:
    install(models[0])
    install(models[2])
    install(models[3], whole=False)
    assert [entry.id for entry in installed()] == ["m1", "m3", "m4"]
    offered = [(choice.words, choice.plan.needs) for choice in smaller_models(plan(9))]
    assert offered == [
        ("the installed model m3 (--model m3)", (models[2].need,)),
        ("the installed model m1 (--model m1)", (models[0].need,)),
        ("the model m4, which `redraft models pull m4` fetches", (models[3].need,)),
        ("the model m2, which `redraft models pull m2` fetches", (models[1].need,)),
    ]


def test_none_is_offered_that_is_no_smaller(models: list[CatalogueModel]) -> None:
    small = replace(plan(9), needs=(Need("m", 2 * GB, 1),))
    assert [choice.plan.needs[0].name for choice in smaller_models(small)] == ["m1"]
    assert list(smaller_models(replace(small, needs=(Need("m", GB, 1),)))) == []


def test_the_nearest_that_fits_is_named(models: list[CatalogueModel]) -> None:
    install(models[0])
    for free, words in (
        (5, "the installed model m1 (--model m1)"),
        (1.5, "the installed model m1 (--model m1) with a context of"),
    ):
        with pytest.raises(OutOfMemoryError) as caught:
            refuse_if_short(plan(free), partial(smaller_models, plan(free)))
        assert f"the nearest choice that fits is {words}" in str(caught.value)
    assert nearest(plan(0.5), smaller_models(plan(0.5))) is None
