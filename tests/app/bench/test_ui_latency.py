"""Workload `ui`: what is reported, the long file, and a real run over the real program."""

import json
import time
from pathlib import Path

import pytest

from app.bench.turns import RENAME, own_session
from app.bench.ui_latency import LONG_LINE, LONG_LINES, UiFigures, long_text, measure_ui


def test_the_long_file_is_what_its_name_says() -> None:
    lines = long_text().splitlines()
    assert len(lines) == LONG_LINES and len(lines[2]) == LONG_LINE
    assert all(len(line) < 30 for number, line in enumerate(lines) if number != 2)
    compile(long_text(), "long.py", "exec")


def test_figures_have_spread_and_tail() -> None:
    figures = UiFigures(visible_s=[0.5, 0.7], keys_ms=[float(number) for number in range(1, 101)])
    fields = figures.fields()
    assert set(fields) == {"visible_s", "keys_ms"}
    assert fields["keys_ms"] == {"median": 50.5, "min": 1.0, "max": 100.0, "runs": 100, "p99": 99.0}
    table = figures.table()
    assert "99th percentile 99, most 100 (100 keys)" in table and "0.60 (0.50-0.70)" in table
    assert "escape" not in table
    json.dumps(fields)


@pytest.mark.slow
def test_the_real_program_is_measured(qwen05_path: Path, tmp_path: Path) -> None:
    session = own_session()
    assert session[0].text is not None
    options = ["--model", str(qwen05_path)]
    figures = measure_ui(
        options, session[0].text, session[RENAME].instruction, tmp_path, 1, time.perf_counter, lambda words: None
    )
    assert len(figures.keys_ms) > 10 and len(figures.long_jumps_ms) > 10
    assert all(values for values in vars(figures).values())
