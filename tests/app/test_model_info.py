"""`redraft models info`, and memory in `list`: weights, draft model and cache against what is free, before a load."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.errors import ExitCode
from editor_engine.config import models_dir
from editor_engine.gpus import Gpu
from editor_engine.memory import CHECKED_TOKENS, CPU, WORKSPACE_BYTES
from editor_engine.models.hf.sizes import WORKSPACE_BYTES as HF_WORKSPACE
from editor_engine.store.catalogue import require
from tests.support.bare_checkpoint import CACHE, CONTEXT, EMBEDDING, LAYERS, MATRIX, write_bare
from tests.support.tiny_gguf import write_tiny

WEIGHTS = 2 * (2 * EMBEDDING + LAYERS * MATRIX)
Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Sets what this machine has."""

    def have(free: int | None, *gpus: Gpu) -> None:
        monkeypatch.setattr("editor_engine.machine.available_bytes", lambda: free)
        monkeypatch.setattr("editor_engine.gpus.see_gpus", lambda: gpus)

    have(1 << 40)
    return have


def item(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["models", *arguments, "--json"]) == ExitCode.OK
    first, *_, result = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["type"], result["type"], result["outcome"]) == ("item", "result", "unchanged")
    assert isinstance(first, dict)
    return first


def test_a_folder_with_a_draft_model_at_an_asked_context(
    tmp_path: Path, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    big, small = write_bare(tmp_path / "big"), write_bare(tmp_path / "small", "F32")
    options = ["info", str(big), "--draft-model", str(small), "--context-length", "1000", "--dtype", "float32"]
    found = item(capsys, *options)
    (room,) = found["rooms"]
    cache = 1000 * 2 * 4 * CACHE
    assert (room["device"], room["context"], room["weights"]) == (CPU, 1000, 2 * WEIGHTS)
    assert (room["draft_weights"], room["cache"], room["workspace"]) == (
        2 * WEIGHTS,
        cache,
        HF_WORKSPACE + WORKSPACE_BYTES,
    )
    assert room["needed"] == 4 * WEIGHTS + cache + HF_WORKSPACE + WORKSPACE_BYTES == found["memory_bytes"]
    assert (room["free"], room["fits"], room["nearest"], found["gpus"]) == (1 << 40, True, None, [])
    assert (found["id"], found["installed"], found["fits"]) == ("big", False, True)
    assert main(["models", *options]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "context" not in out.split("on cpu")[0] and "weights" in out and "draft model" in out
    assert "its cache of 1000 tokens" in out and ": fits" in out and "none seen" in out


def test_what_does_not_fit_is_said_with_the_nearest_that_does(
    tmp_path: Path, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_bare(tmp_path / "big", "F32")
    machine(HF_WORKSPACE + 2 * WEIGHTS + 4 * CACHE * 2000)
    room = item(capsys, "info", str(folder))["rooms"][0]
    assert (room["context"], room["fits"]) == (CONTEXT, False)
    assert room["nearest"] == "a context of 2000 tokens (--context-length 2000)"
    assert item(capsys, "info", str(folder), "--context-length", "2000")["rooms"][0]["fits"] is True
    assert item(capsys, "info", str(folder), "--context-length", "2001")["rooms"][0]["fits"] is False
    machine(None)
    assert item(capsys, "info", str(folder))["rooms"][0]["fits"] is None
    capped = item(capsys, "info", str(folder), "--max-memory", str(HF_WORKSPACE))["rooms"][0]
    assert (capped["fits"], capped["nearest"]) == (False, None)


def test_every_device_has_its_room(tmp_path: Path, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_bare(tmp_path / "big")
    machine(1 << 40, Gpu(0, "Small", 1 << 30, 1 << 20), Gpu(1, "Large", 80 << 30, 80 << 30))
    found = item(capsys, "info", str(folder))
    assert [(room["device"], room["fits"]) for room in found["rooms"]] == [
        (CPU, True),
        ("cuda:0", False),
        ("cuda:1", True),
    ]
    assert [gpu["name"] for gpu in found["gpus"]] == ["Small", "Large"]
    split = item(capsys, "info", str(folder), "--device", "cuda:1", "--gpu-layers", "1")["rooms"]
    assert [(room["device"], room["weights"]) for room in split] == [
        ("cuda:1", 2 * MATRIX),
        (CPU, WEIGHTS - 2 * MATRIX),
    ]
    assert main(["models", "info", str(folder)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "Large, 85.89 GB free" in out and "none seen" not in out
    assert main(["models", "info", str(folder), "--device", "cuda:1"]) == ExitCode.OK
    assert capsys.readouterr().err == ""
    only = item(capsys, "info", str(write_tiny(tmp_path / "tiny.gguf")))["rooms"]
    assert [room["device"] for room in only] == [CPU]


@pytest.mark.parametrize(
    ("options", "device"),
    [
        (["--device", "cuda:9"], "cuda:9"),
        (["--device", "cuda:9", "--gpu-layers", "1"], "cuda:9"),
        (["--gpu-layers", "1"], "cuda:0"),
        (["--device", "cuda"], "cuda:0"),
    ],
)
def test_a_device_that_is_not_seen_is_said(
    tmp_path: Path, machine: Machine, capsys: pytest.CaptureFixture[str], options: list[str], device: str
) -> None:
    machine(1 << 40)
    assert main(["models", "info", str(write_bare(tmp_path / "big")), *options]) == ExitCode.OK
    assert capsys.readouterr().err == f"{device} is not seen here, and a load that does not find it is refused.\n"
    assert main(["models", "info", str(write_tiny(tmp_path / "tiny.gguf")), *options]) == ExitCode.OK
    assert "is not seen here" not in capsys.readouterr().err


@pytest.mark.parametrize("device", ["auto", "cuda", "cuda:1"])
def test_more_layers_than_there_are_is_usage_here_too(
    tmp_path: Path, machine: Machine, capsys: pytest.CaptureFixture[str], device: str
) -> None:
    machine(1 << 40, Gpu(0, "G", 80 << 30, 80 << 30), Gpu(1, "G", 80 << 30, 80 << 30))
    folder = write_bare(tmp_path / "big")
    asked = ["models", "info", str(folder), "--device", device, "--gpu-layers"]
    assert main([*asked, str(LAYERS)]) == ExitCode.OK
    assert ": fits" in capsys.readouterr().out
    assert main([*asked, str(LAYERS + 1)]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"--gpu-layers {LAYERS + 1} cannot be had: the model has {LAYERS} layers." in err


def test_a_model_that_is_not_here_is_counted_by_the_catalogue(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    model = require("qwen2.5-coder-7b")
    machine(10**9)
    found = item(capsys, "info", model.id, "--context-length", "5000")
    (room,) = found["rooms"]
    assert room["needed"] == model.bytes + 5000 * model.kv_bytes_per_token + WORKSPACE_BYTES == found["memory_bytes"]
    assert (found["installed"], found["fits"], room["fits"]) == (False, False, False)


def test_a_list_counts_for_the_options_and_settings(
    tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models_dir().mkdir(parents=True)
    draft = write_tiny(models_dir() / "small.gguf")

    def rows(*options: str) -> dict[str, dict[str, Any]]:
        assert main(["models", "list", "--json", *options]) == ExitCode.OK
        lines = map(json.loads, capsys.readouterr().out.splitlines())
        return {line["id"]: line for line in lines if line["type"] == "item"}

    plain = rows()
    model = require("qwen2.5-coder-0.5b")
    assert plain[model.id]["memory_bytes"] == model.memory_bytes
    assert plain[model.id]["room"]["context"] == CHECKED_TOKENS
    weights = plain["small"]["room"]["weights"]
    assert 0 < weights < draft.stat().st_size
    paired = rows("--draft-model", "small", "--context-length", "100")
    assert {row["room"]["draft_weights"] for row in paired.values()} == {weights}
    assert {row["room"]["context"] for row in paired.values()} == {100}
    monkeypatch.setenv("REDRAFT_DRAFT_MODEL", "small")
    assert rows()["small"]["room"]["draft_weights"] == weights
    monkeypatch.setenv("REDRAFT_DRAFT_MODEL", "qwen2.5-coder-0.5b")
    assert main(["models", "list"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert "small" in out and "`redraft models pull qwen2.5-coder-0.5b` fetches it" in err


def test_a_damaged_file_has_no_room_and_says_why(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    models_dir().mkdir(parents=True)
    (models_dir() / "own.gguf").write_bytes(b"GGUF")
    assert main(["models", "info", "own", "--json"]) == ExitCode.OK
    out, err = capsys.readouterr()
    found = json.loads(out.splitlines()[0])
    assert (found["rooms"], found["memory_bytes"], found["fits"]) == ([], None, None)
    assert err.count("\n") == 1 and "own.gguf" in err


@pytest.mark.parametrize(
    ("model", "code"),
    [("/nowhere/model.gguf", ExitCode.ENGINE), ("/nowhere", ExitCode.ENGINE), ("no-such", ExitCode.ENGINE)],
)
def test_what_is_not_there_is_said(model: str, code: ExitCode, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "info", model]) == code
    assert capsys.readouterr().err.count("\n") == 1


def test_an_impossible_context_is_usage(tmp_path: Path, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "info", str(write_bare(tmp_path / "big")), "--context-length", "9999"]) == ExitCode.USAGE
    assert "was made for at most 4096" in capsys.readouterr().err
