"""An edit with a draft model from the command line: what programs and people are told of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.errors import ExitCode
from tests.support.tiny_gguf import TinyShape, tiny_source

SHAPE = TinyShape(context=4096)


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    sources = [tiny_source("qwen2", shape=SHAPE, seed=5), tiny_source("llama", shape=SHAPE, seed=6)]
    return [str(source.write(tmp_path / f"{number}.gguf")) for number, source in enumerate(sources)]


def edit(tmp_path: Path, models: list[str], *options: str) -> int:
    file = tmp_path / "calc.py"
    file.write_text("def add(a, b):\n    return a + b\n" * 3)
    chosen = ["--model", models[0], "--draft-model", models[1], "--threads", "1"]
    return main(["edit", str(file), "-i", "Rename add.", *chosen, *options])


def test_programs_are_told_who_may_draft_and_what_was_decided(
    tmp_path: Path, models: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    edit(tmp_path, models, "--json")
    lines: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    start = next(line for line in lines if line["type"] == "start")
    assert start["model"]["draft_model"] == "Tiny llama"
    assert all(line["draft_ms"] >= 0 for line in lines if line["type"] == "pass")
    told = lines[-1]["stats"]["draft_model"]
    assert told["name"] == "Tiny llama" and told["weights_bytes"] > 0
    assert told["decision"].startswith("The draft model Tiny llama was ")


def test_people_are_told_too_and_a_proof_holds_with_a_draft_model(
    tmp_path: Path, models: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    edit(tmp_path, models, "--prove", "--verbose")
    said = capsys.readouterr().err
    assert "Tiny llama drafts for Tiny qwen2 while that pays" in said
    assert "The draft model Tiny llama was" in said and "draft model's memory: weights" in said
    assert "came out the same with drafting on" in said


def test_an_edit_is_greedy_and_stays_exact_whatever_the_rule(
    tmp_path: Path, models: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    edit(tmp_path, models, "--draft-rule", "rejection", "--prove", "--json")
    lines: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    start = next(line for line in lines if line["type"] == "start")
    assert start["model"]["exactness"] == "exact" and lines[-1]["proof"]["exactness"] == "checked"


def test_another_vocabulary_is_refused_before_anything_is_read(
    tmp_path: Path, models: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    other = tiny_source("llama", shape=SHAPE, seed=6)
    tokens = other.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    tokens[tokens.index("<|im_start|>")] = "<|turn|>"
    models[1] = str(other.write(tmp_path / "other.gguf"))
    assert edit(tmp_path, models) == ExitCode.ENGINE
    said = capsys.readouterr().err
    assert "Tiny llama cannot draft for Tiny qwen2: their vocabularies differ." in said and "'<|turn|>'" in said
