"""Pass costs survive a restart, are parted by what they depend on, and never get in the way."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from editor_engine.decode.cost_memory import CostMemory, costs_file, read_costs
from editor_engine.draft.pass_cost import PassCost
from editor_engine.models.target import ModelInfo

INFO = ModelInfo("m", "qwen2", "0" * 64, 64, 4096, "cpu", 2, "avx2", 1)


def learned(folder: Path) -> CostMemory:
    memory = CostMemory(INFO, folder)
    for _ in range(9):
        memory.cost.observe(1, 100, 1.0)
        memory.cost.observe(8, 100, 7.0)
    memory.save()
    return memory


def test_what_was_learned_is_there_after_a_restart(tmp_path: Path) -> None:
    kept = learned(tmp_path / "new" / "folder").cost.costs(100)
    again = CostMemory(INFO, tmp_path / "new" / "folder").cost
    assert again.costs(100)[8] == kept[8] > PassCost.shipped("avx2").costs(100)[8]
    assert again.snapshot() == learned(tmp_path / "other").cost.snapshot()


@pytest.mark.parametrize("change", [{"threads": 1}, {"isa": "avxvnni"}, {"contract_version": 2}, {"device": "cuda:0"}])
def test_other_conditions_have_their_own_memory(tmp_path: Path, change: dict[str, object]) -> None:
    learned(tmp_path)
    other = replace(INFO, **change)  # type: ignore[arg-type]
    table = PassCost.shipped(other.isa) if other.device == "cpu" else PassCost.flat()
    assert list(CostMemory(other, tmp_path).cost.costs(100)) == list(table.costs(100))


def test_ratios_to_another_table_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new version of the program ships other tables; what was learned against the old ones means nothing there."""
    learned(tmp_path)
    other = PassCost.avx2()
    monkeypatch.setattr(PassCost, "shipped", lambda isa: PassCost.avx2())
    assert list(CostMemory(INFO, tmp_path).cost.costs(100)) == list(other.costs(100))


DAMAGE = ["", "[]", "{", '{"1": 3}', '{"x": {"1": [1]}}', '{"1": {"99": [1]}}', "\x00", "[" * 200_000]
FAR = ['{"0": {"1": [%s]}}' % ("9" * 400), '{"0": {"1": [1e308], "64": [1e-308]}}', '{"0": {"1": [1e7]}}', "9" * 5000]


@pytest.mark.parametrize("damage", [*DAMAGE, *FAR], ids=lambda text: text[:30])
def test_a_damaged_memory_means_the_shipped_table(tmp_path: Path, damage: str) -> None:
    learned(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(damage)
    memory = CostMemory(INFO, tmp_path)
    assert list(memory.cost.costs(100)) == list(PassCost.shipped("avx2").costs(100))
    memory.save()
    assert json.loads(file.read_text()) == {}


@pytest.mark.timeout(20)
def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    learned(tmp_path)
    (file,) = tmp_path.iterdir()
    file.unlink()
    os.mkfifo(file)
    memory = CostMemory(INFO, tmp_path)
    assert list(memory.cost.costs(100)) == list(PassCost.shipped("avx2").costs(100))
    memory.save()
    assert file.is_file()


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    CostMemory(INFO, tmp_path / "file" / "folder").save()
    CostMemory(INFO, None).save()


def test_what_was_kept_can_be_read_alone_and_is_nothing_until_a_pass_was_seen(tmp_path: Path) -> None:
    file = costs_file(tmp_path, 1, 2, "avx2", PassCost.shipped("avx2"))
    assert read_costs(file, PassCost.shipped("avx2")) is None
    CostMemory(INFO, tmp_path).save()
    assert file.exists() and read_costs(file, PassCost.shipped("avx2")) is None
    memory = learned(tmp_path)
    found = read_costs(file, PassCost.shipped("avx2"))
    assert found is not None and list(found.costs(100)) == list(memory.cost.costs(100))
