"""Every command with `--json`, ended by what nobody foresaw: the last line is a result, and of one shape."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.errors import ConflictError, ExitCode, UnchangedError, foreseen
from app.paths import journal_dir, proposals_dir

SHAPE = {"schema_version", "type", "t_ms", "outcome", "exit_code", "error", "hunks", "stats", "warnings", "receipt"}

COMMANDS: dict[str, tuple[list[str], str]] = {
    "undo": (["undo"], "app.history_command.journal_dir"),
    "redo": (["redo", "a.py"], "app.history_command.journal_dir"),
    "history": (["history"], "app.history_command.entries"),
    "review": (["review", "a.patch"], "app.review_command.from_patch"),
    "review --list": (["review", "--list"], "app.editing.proposals.ProposalStore.entries"),
    "models list": (["models", "list"], "app.settings.load_settings"),
    "models info": (["models", "info", "smollm2-135m"], "app.models_command.see_model"),
    "models pull": (["models", "pull", "smollm2-135m"], "editor_engine.store.fetch.already_here"),
    "models verify": (["models", "verify"], "editor_engine.store.installed.installed"),
    "models rm": (["models", "rm", "smollm2-135m"], "app.models_command.find"),
    "models import": (["models", "import", "a.gguf"], "editor_engine.store.importing.import_file"),
    "models export-hf": (["models", "export-hf", "a.gguf", "b"], "editor_engine.store.installed.locate"),
    "watch": (["watch", "."], "app.settings.load_settings"),
    "serve": (["serve"], "app.serve_command.load_settings"),
    "verify": (["verify"], "app.settings.load_settings"),
    "bench plain": (["bench", "plain"], "app.settings.load_settings"),
    "bench replay": (["bench", "replay", "--tasks", "a.jsonl"], "editor_engine.bench.replay.load_tasks"),
}
"""What is typed, and what it calls that fails."""

FAULTS: dict[str, tuple[Callable[[], BaseException], ExitCode, str, str]] = {
    "a fault of ours": (lambda: RuntimeError("not foreseen"), ExitCode.REFUSED, "refused", "internal"),
    "the system": (lambda: OSError(5, "Input/output error"), ExitCode.FILE, "failed", "file"),
    "ctrl-C": (KeyboardInterrupt, ExitCode.INTERRUPTED, "cancelled", "interrupted"),
    "a conflict": (lambda: ConflictError("Changed meanwhile."), ExitCode.CONFLICT, "conflict", "conflict"),
    "nothing to do": (lambda: UnchangedError("No change."), ExitCode.UNCHANGED, "unchanged", "unchanged"),
}
"""What is raised, and the exit code, outcome and error code it comes to."""


def answer(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_last_line_is_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, fault: str
) -> None:
    arguments, called = COMMANDS[command]
    error, code, outcome, word = FAULTS[fault]

    def fail(*_: object, **__: object) -> None:
        raise error()

    for name in ("a.py", "a.patch", "a.gguf", "a.jsonl"):
        (tmp_path / name).write_text("x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(called, fail)
    assert main([*arguments, "--json"]) == code
    (*_, last) = lines = answer(capsys)
    assert [line["type"] for line in lines].count("result") == 1
    assert (last["type"], last["outcome"], last["exit_code"]) == ("result", outcome, code)
    assert last["error"]["code"] == word and last["error"]["message"]
    assert set(last) >= SHAPE
    assert (last["stats"], last["warnings"], last["receipt"]) == (None, [], None)


@pytest.mark.parametrize("arguments", [["history"], ["review"], ["review", "--list"], ["models", "list"]])
def test_an_answer_of_nothing_has_the_shape_of_every_result(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main([*arguments, "--json"]) == ExitCode.OK
    last = answer(capsys)[-1]
    assert set(last) >= SHAPE
    assert (last["outcome"], last["error"], last["receipt"]) == ("unchanged", None, None)


@pytest.mark.parametrize("arguments", [["history"], ["undo"], ["redo"], ["review"], ["review", "--list"]])
def test_a_file_where_a_folder_of_ours_should_be_is_not_called_empty(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    for folder in (journal_dir(), proposals_dir()):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_text("in the way")
    assert main([*arguments, "--json"]) == ExitCode.FILE
    last = answer(capsys)[-1]
    assert (last["outcome"], last["exit_code"]) == ("failed", ExitCode.FILE)
    assert "cannot be read: Not a directory" in last["error"]["message"]


def test_what_stands_for_an_error_ends_with_the_code_the_command_line_ends_with() -> None:
    own = ConflictError("Changed meanwhile.")
    assert foreseen(own) is own
    assert (
        str(foreseen(OSError(28, "No space left on device")))
        == "The output cannot be written: No space left on device."
    )
    assert str(foreseen(ValueError("no"))) == "An internal error, ValueError: no."
