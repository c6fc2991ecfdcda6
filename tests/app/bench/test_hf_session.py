"""`redraft bench hf` over a tiny random checkpoint, beside transformers' own decoding of the same weights."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli import main
from app.errors import ExitCode
from editor_engine.bench.hf import DRAFTED, LOOKUP, PLAIN, THEIRS

TASK = {"id": "one", "before": "a = 1\nb = 2\n", "instruction": "Swap.", "after": "b = 2\na = 1\n"}


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(TASK) + "\n")
    return str(path)


def test_every_way_gives_the_same_ids(
    folder_of: Callable[..., Path], tasks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--model", str(folder_of("Llama")), "--threads", "1", "--repeats", "2", "--tasks", tasks]
    assert main(["bench", "hf", *options, "--json"]) == ExitCode.OK
    line = json.loads(capsys.readouterr().out)
    figures = line["figures"]
    assert list(figures) == [PLAIN, DRAFTED, THEIRS, LOOKUP]
    for way in figures.values():
        assert way["edit_tok_s"]["runs"] == 2 and way["edit_tok_s"]["min"] > 0
    assert (figures[DRAFTED]["same_ids"], figures[DRAFTED]["first_differences"]) == (1, [None])
    assert figures[THEIRS]["output_tokens"][0] > 0
    assert figures[PLAIN]["tokens_per_pass"] == 1.0
    assert line["ratios"]["native_vs_drafted"] is None and line["ratios"]["drafted_vs_plain"]["runs"] == 2
    assert line["conditions"]["isa"] == "float32 sdpa" and line["conditions"]["transformers"]
    assert 0 <= line["rerun_share"] < 1


def test_a_file_is_not_a_folder(tasks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    assert main(["bench", "hf", "--model", str(file), "--tasks", tasks]) == ExitCode.USAGE
    assert "no folder with a Hugging Face checkpoint" in capsys.readouterr().err
