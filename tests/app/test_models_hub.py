"""`redraft models` on folders: pulled from a hub on the loopback interface, listed, verified, removed, exported."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest

from app import models_talk
from app.cli import main
from app.errors import ExitCode
from editor_engine.store.hub_folders import hub_dir
from tests.support.fake_hub import COMMIT, FakeHub, serving
from tests.support.light_checkpoints import light_checkpoint
from tests.support.tiny_gguf import write_tiny

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    hub = FakeHub()
    hub.files = {path.name: path.read_bytes() for path in light_checkpoint(tmp_path / "source").iterdir()}
    with serving(hub):
        # What the variable HF_ENDPOINT sets when the library is imported.
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.endpoint)
        template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield hub


def lines(capsys: Captured) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_folder_is_pulled_listed_verified_and_removed(hub: FakeHub, capsys: Captured) -> None:
    assert main(["models", "pull", "owner/tiny"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert out == ""
    assert f"commit {COMMIT[:12]}, licence apache-2.0. It is not in the catalogue: owner vouches for it" in err
    assert f"owner/tiny is installed and its files are what the model hub describes: {hub_dir() / 'owner--tiny'}" in err

    assert main(["models", "pull", "owner/tiny", "--json"]) == ExitCode.OK
    item, result = lines(capsys)
    assert (item["type"], item["id"], item["installed"], item["whole"]) == ("item", "owner/tiny", True, True)
    assert (result["type"], result["outcome"]) == ("result", "unchanged")

    assert main(["models", "list"]) == ExitCode.OK
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("owner/tiny")]
    assert "not in catalogue" in row and row.endswith("yes")

    assert main(["models", "verify", "owner/tiny"]) == ExitCode.OK
    assert "owner/tiny: " in capsys.readouterr().out
    config = hub_dir() / "owner--tiny" / "config.json"
    config.write_text(config.read_text("utf-8") + " ", "utf-8")
    assert main(["models", "verify", "owner/tiny"]) == ExitCode.ENGINE
    assert "owner/tiny: damaged" in capsys.readouterr().out

    assert main(["models", "rm", "owner/tiny", "--yes", "--json"]) == ExitCode.OK
    item, result = lines(capsys)
    assert item["freed_bytes"] > 0 and result["outcome"] == "changed"
    assert not (hub_dir() / "owner--tiny").exists()
    assert main(["models", "rm", "owner/tiny", "--yes"]) == ExitCode.ENGINE
    assert "owner/tiny is not installed; installed: none" in capsys.readouterr().err


def test_progress_and_change_are_lines(hub: FakeHub, capsys: Captured) -> None:
    assert main(["models", "pull", "owner/tiny", "--json"]) == ExitCode.OK
    found = lines(capsys)
    progress = [line for line in found if line["type"] == "progress"]
    assert progress and progress[-1]["done"] == progress[-1]["total"]
    assert found[-1]["outcome"] == "changed"


def test_a_licence_that_is_not_free_is_agreed_to(
    hub: FakeHub, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.facts["cardData"] = {"license": "gemma"}
    assert main(["models", "pull", "owner/tiny"]) == ExitCode.USAGE
    assert "comes under the licence 'gemma'. `--accept-licence` agrees to its terms" in capsys.readouterr().err
    assert hub.downloads() == []
    monkeypatch.setattr(models_talk, "at_a_terminal", lambda: True)
    asked: list[str] = []
    monkeypatch.setattr(models_talk.click, "confirm", lambda text, **_: asked.append(text) or True)
    assert main(["models", "pull", "owner/tiny"]) == ExitCode.OK
    assert len(asked) == 1
    assert main(["models", "rm", "owner/tiny", "--yes"]) == ExitCode.OK
    assert main(["models", "pull", "owner/tiny", "--accept-licence"]) == ExitCode.OK
    assert len(asked) == 1


def test_what_cannot_be_pulled_is_one_sentence(hub: FakeHub, capsys: Captured) -> None:
    assert main(["models", "pull", "owner/absent", "--json"]) == ExitCode.ENGINE
    (result,) = lines(capsys)
    assert result["error"]["message"].startswith("The model hub has no owner/absent")
    hub.missing = {"model.safetensors"}
    assert main(["models", "pull", "owner/tiny"]) == ExitCode.ENGINE
    assert "What has arrived is kept; pull again." in capsys.readouterr().err
    assert main(["models", "rm", "owner/tiny", "--yes", "--json"]) == ExitCode.OK  # what the stopped pull left
    assert lines(capsys)[0]["freed_bytes"] > 0


def test_a_file_is_exported_as_a_folder(tmp_path: Path, capsys: Captured) -> None:
    source, target = write_tiny(tmp_path / "tiny.gguf"), tmp_path / "out" / "tiny"
    assert main(["models", "export-hf", str(source), str(target), "--dtype", "bfloat16", "--json"]) == ExitCode.OK
    item, result = lines(capsys)
    assert (item["dtype"], item["files"], result["outcome"]) == ("bfloat16", ["model.safetensors"], "changed")
    assert main(["models", "export-hf", str(source), str(target)]) != ExitCode.OK
    assert "is there already and not an empty folder" in capsys.readouterr().err
    assert main(["models", "export-hf", str(target), str(tmp_path / "again")]) == ExitCode.USAGE
    assert "is a folder already" in capsys.readouterr().err
