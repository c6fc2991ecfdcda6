"""The measuring of a watch, over a real watch process with a scripted engine."""

import dataclasses
import sys
from pathlib import Path

import pytest

from app.bench.watch_session import WatchFigures, make_tree, measure_watch
from app.errors import EngineUnreachableError
from tests.support.watch_program import PROGRAM


def measure(root: Path, source: str) -> WatchFigures:
    command = [sys.executable, "-c", PROGRAM, "watch"]
    state = {"XDG_STATE_HOME": str(root.parent / "state")}
    return measure_watch(command, state, root, source, saves=2, repeats=2, idle_s=0.1, progress=lambda words: None)


def test_every_figure_has_its_runs(tmp_path: Path) -> None:
    make_tree(tmp_path / "tree", 250)
    assert len(list((tmp_path / "tree").rglob("*.py"))) == 250
    figures = measure(tmp_path / "tree", "x = 1\n")
    runs = {field.name: len(getattr(figures, field.name).runs) for field in dataclasses.fields(figures)}
    assert runs.pop("start_s") == runs.pop("idle_cpu_share") == runs.pop("resident_mb") == runs.pop("stop_s") == 2
    assert set(runs.values()) == {4}
    assert min(figures.settle_s.runs) >= 0.25 and min(figures.resident_mb.runs) > 1
    assert all(total >= settle for total, settle in zip(figures.total_s.runs, figures.settle_s.runs, strict=True))
    assert len(figures.table().splitlines()) == len(figures.fields()) == 9


def test_a_watch_that_ends_by_itself_gives_no_figures(tmp_path: Path) -> None:
    with pytest.raises(EngineUnreachableError):
        measure(tmp_path / "nowhere", "x = 1\n")
