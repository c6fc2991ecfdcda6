"""`redraft undo`, `redo` and `history` as a person and as a program meet them."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.editing.apply import apply_hunks
from app.editing.journal import Journal
from app.errors import ExitCode
from app.paths import journal_dir
from tests.support.edits import NEW, OLD, edit_of


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An edited file in the current folder, with the journal in a state folder of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = folder / "f [1].py"
    path.write_bytes(OLD)
    apply_hunks(*edit_of(path), Journal(journal_dir()), note="number\nthe lines")
    return path


def json_lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("named", [True, False])
def test_undo_and_redo_in_words(path: Path, capsys: pytest.CaptureFixture[str], named: bool) -> None:
    file = [path.name] if named else []
    assert main(["undo", *file]) == ExitCode.OK
    assert path.read_bytes() == OLD
    assert main(["redo", *file]) == ExitCode.OK
    assert path.read_bytes() == NEW
    said = capsys.readouterr()
    assert said.out == ""
    assert f"Undone: {path}" in said.err and f"Redone: {path}" in said.err


def test_undo_as_json_has_a_receipt(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (entry,) = Journal(journal_dir()).entries()
    assert main(["undo", "--json"]) == ExitCode.OK
    (result,) = json_lines(capsys)
    assert (result["type"], result["outcome"], result["exit_code"], result["error"]) == ("result", "applied", 0, None)
    assert result["receipt"] == {
        "path": str(path),
        "before_sha256": entry.after_sha256,
        "after_sha256": entry.before_sha256,
        "outside_identical": True,
        "guarded": True,
        "journal_id": entry.id,
    }


def test_nothing_to_undo(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redo"]) == ExitCode.UNCHANGED
    assert "no undone edit" in capsys.readouterr().err
    assert main(["undo", "other.py", "--json"]) == ExitCode.UNCHANGED
    (result,) = json_lines(capsys)
    assert (result["outcome"], result["error"]["code"], result["receipt"]) == ("unchanged", "nothing_to_undo", None)


def test_conflict(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_bytes(b"theirs\n")
    assert main(["undo"]) == ExitCode.CONFLICT
    assert "no longer what the edit wrote" in capsys.readouterr().err
    assert main(["undo", "--json"]) == ExitCode.CONFLICT
    (result,) = json_lines(capsys)
    assert (result["outcome"], result["error"]["code"]) == ("conflict", "conflict")
    assert path.read_bytes() == b"theirs\n"


def test_history_as_a_table(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history"]) == ExitCode.OK
    (line,) = capsys.readouterr().out.splitlines()
    (entry,) = Journal(journal_dir()).entries()
    assert line.split()[0] == entry.id
    assert "applied" in line and str(path) in line and line.endswith("number")


def test_history_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["undo"])
    capsys.readouterr()
    assert main(["history", "--json"]) == ExitCode.OK
    item, result = json_lines(capsys)
    assert (item["type"], item["state"], item["path"]) == ("item", "undone", str(path))
    assert item["note"] == "number\nthe lines"
    assert (result["type"], result["exit_code"]) == ("result", 0)


def test_empty_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["history"]) == ExitCode.OK
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "redraft").exists()
