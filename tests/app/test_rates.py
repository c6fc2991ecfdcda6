"""The rates of the last edit: kept per model, device and threads; never an error."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.editing.prompt import Budget
from app.engine_client import EngineDescription
from app.rates import Rates, last_rates, remember_rates
from editor_engine.events import Stats

ENGINE = EngineDescription("m", "a" * 64, "cpu", 2, "exact", "strict", 4096)
STATS = Stats(100, 0, 50, 0.1, 200.0, 25.0, 1.0, 10, 40, 30)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "redraft" / "rates.json"


def test_unknown_before_the_first_edit(path: Path) -> None:
    assert last_rates(ENGINE) is None


def test_remembered_for_the_same_model_device_and_threads(path: Path) -> None:
    remember_rates(ENGINE, STATS)
    assert last_rates(ENGINE) == Rates(200.0, 25.0)
    assert last_rates(replace(ENGINE, threads=1)) is None
    assert last_rates(replace(ENGINE, sha256="b" * 64)) is None
    assert last_rates(replace(ENGINE, device="cuda")) is None


def test_the_newest_weighs_by_its_tokens_and_others_stay(path: Path) -> None:
    other = replace(ENGINE, threads=8)
    remember_rates(other, STATS)
    remember_rates(ENGINE, STATS)
    remember_rates(ENGINE, replace(STATS, decode_tok_s=50.0, output_tokens=600, prefill_tok_s=100.0))
    found = last_rates(ENGINE)
    assert found is not None
    assert found.decode_tok_s == pytest.approx(800 / (200 / 25 + 600 / 50))
    assert found.prefill_tok_s == pytest.approx(300 / (200 / 200 + 100 / 100))
    assert last_rates(other) == Rates(200.0, 25.0)
    assert [entry.name for entry in path.parent.iterdir()] == ["rates.json"]


def test_a_reply_of_a_line_hardly_moves_what_is_expected_of_a_file(path: Path) -> None:
    remember_rates(ENGINE, replace(STATS, output_tokens=1000, decode_tok_s=100.0))
    remember_rates(ENGINE, replace(STATS, output_tokens=12, decode_tok_s=8.0, prompt_tokens=90, cached_tokens=90))
    found = last_rates(ENGINE)
    assert found is not None and found.decode_tok_s > 50.0 and found.prefill_tok_s == pytest.approx(200.0)


@pytest.mark.parametrize("stats", [replace(STATS, prefill_tok_s=None), replace(STATS, decode_tok_s=None)])
def test_an_edit_that_did_not_measure_both_changes_nothing(path: Path, stats: Stats) -> None:
    remember_rates(ENGINE, STATS)
    remember_rates(ENGINE, stats)
    assert last_rates(ENGINE) == Rates(200.0, 25.0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"null",
        b"[" * 200_000,
        b"9" * 5000,
        b'{"%s/cpu/2": {"prefill_tok_s": %s, "decode_tok_s": 1}}' % (b"a" * 64, b"9" * 400),
        b'{"%s/cpu/2": {"prefill_tok_s": 1e999, "decode_tok_s": 1}}' % (b"a" * 64),
        json.dumps({f"{'a' * 64}/cpu/2": 3}).encode(),
        json.dumps({f"{'a' * 64}/cpu/2": {"prefill_tok_s": "fast", "decode_tok_s": 1}}).encode(),
        json.dumps({f"{'a' * 64}/cpu/2": {"prefill_tok_s": 0, "decode_tok_s": 1}}).encode(),
        json.dumps({f"{'a' * 64}/cpu/2": {"prefill_tok_s": float("nan"), "decode_tok_s": 1}}).encode(),
        json.dumps({f"{'a' * 64}/cpu/2": {"prefill_tok_s": 1}}).encode(),
    ],
)
def test_a_damaged_file_means_unknown_and_heals(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    assert last_rates(ENGINE) is None
    remember_rates(ENGINE, STATS)
    assert last_rates(ENGINE) == Rates(200.0, 25.0)


@pytest.mark.timeout(20)
def test_a_pipe_in_its_place_is_not_waited_for(path: Path) -> None:
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert last_rates(ENGINE) is None
    remember_rates(ENGINE, STATS)
    assert last_rates(ENGINE) == Rates(200.0, 25.0)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_rates(ENGINE, STATS)

    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    remember_rates(ENGINE, replace(STATS, decode_tok_s=50.0))
    assert last_rates(ENGINE) == Rates(200.0, 25.0)
    assert [entry.name for entry in path.parent.iterdir()] == ["rates.json"]


def test_a_cache_that_cannot_be_written_is_no_loss(path: Path) -> None:
    path.parent.parent.mkdir(parents=True)
    path.parent.write_text("a file where the folder should be")
    remember_rates(ENGINE, STATS)
    assert last_rates(ENGINE) is None


def test_the_expected_time_of_an_edit() -> None:
    assert Rates(200.0, 25.0).seconds(Budget(prompt=400, expected=100, context=4096)) == 6.0
