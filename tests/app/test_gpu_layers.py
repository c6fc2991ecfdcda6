"""`--gpu-layers` beyond what a model has: the same sentence and exit code wherever a model is loaded or looked at."""

import json
from pathlib import Path

import pytest

from app.cli import main
from app.errors import ExitCode
from app.paths import settings_file
from tests.support.bare_checkpoint import LAYERS, write_bare

TOO_MANY = str(LAYERS + 1)
SENTENCE = f"--gpu-layers {TOO_MANY} cannot be had: the model has {LAYERS} layers."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_bare(tmp_path / "bare")


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "a.py").write_text("x = 1\n")
    return str(tmp_path / "a.py")


@pytest.mark.parametrize(
    "command",
    [
        ("edit", "FILE", "-i", "x"),
        ("edit", "FILE", "-i", "x", "--device", "cuda"),
        ("watch", "FILE", "-i", "x", "--once"),
        ("serve", "--port", "0"),
        ("verify",),
        ("bench", "edit"),
        ("models", "info", "FOLDER"),
    ],
)
def test_every_command_refuses_more_layers_than_there_are(
    folder: Path, file: str, capfd: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    words = [{"FILE": file, "FOLDER": str(folder)}.get(word, word) for word in command]
    model = [] if command[0] == "models" else ["--model", str(folder)]
    assert main([*words, *model, "--gpu-layers", TOO_MANY]) == ExitCode.USAGE
    out, err = capfd.readouterr()
    assert SENTENCE in err and out == "" and "Traceback" not in err


@pytest.mark.parametrize("place", ["settings", "environment"])
def test_settings_and_environment_are_refused_likewise(
    folder: Path, file: str, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if place == "environment":
        monkeypatch.setenv("REDRAFT_GPU_LAYERS", TOO_MANY)
    else:
        settings_file().parent.mkdir(parents=True)
        settings_file().write_text(f"[load]\ngpu_layers = {TOO_MANY}\n")
    assert main(["edit", file, "-i", "x", "--model", str(folder), "--json"]) == ExitCode.USAGE
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["error"] == {"code": "usage", "message": SENTENCE}
