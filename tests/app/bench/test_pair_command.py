"""`redraft bench pair` as a person and as a program meet it, over tiny random models."""

import json
from pathlib import Path

import pytest

from app.cli import main
from app.errors import ExitCode
from tests.support.tiny_gguf import TinyShape, tiny_source


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = tiny_source(shape=TinyShape(context=8192), seed=5)
    return str(source.write(tmp_path_factory.mktemp("tiny") / "tiny.gguf"))


def test_a_pair_from_options_to_figures(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", tiny, "--draft-model", tiny, "--threads", "1", "--repeats", "1", "--tokens", "12"]
    assert main(["bench", "pair", *options, "--json"]) == ExitCode.OK
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["workload"], line["tasks"].keys()) == ("pair", {"free text", "edit"})
    assert line["conditions"]["draft_model_id"] == line["conditions"]["model_id"]
    weights = line["conditions"]["weights_bytes"]
    assert weights[0] == weights[1] > 0
    for task in line["tasks"].values():
        assert task["first_difference"] is None
        assert task["ways"]["draft model"]["draft_model"]["read_tokens"] > 0
        assert task["over_plain"]["both"]["runs"] == 1
    assert main(["bench", "pair", *options]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert "same ids in every run" in out and "run 1 of 1, draft model" in err


def test_a_pair_without_a_draft_model_is_refused(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "pair", "--model", tiny, "--json"]) == ExitCode.USAGE
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert line["outcome"] == "failed" and "--draft-model" in line["error"]["message"]


def test_a_draft_model_that_is_not_there_is_said(tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "none.gguf")
    assert main(["bench", "pair", "--model", tiny, "--draft-model", missing]) == ExitCode.ENGINE
    assert "none.gguf" in capsys.readouterr().err
