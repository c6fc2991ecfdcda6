"""What is refused before or without a reply: options, files, engines; each with its code and one sentence."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.errors import ExitCode, MemoryLimitError, ModelError, UsageError
from app.paths import journal_dir
from tests.support.headless_edit import CHANGED, SOURCE, assert_untouched, run_edit, said_error
from tests.support.scripted_client import ScriptedClient, fenced

NOBODY = 65534


@pytest.mark.parametrize(
    "region",
    [
        {"lines": "0:3"},
        {"lines": "5:4"},
        {"lines": "1:999"},
        {"lines": "all"},
        {"lines": "3"},
        {"symbol": "median"},
        {"symbol": ""},
        {"lines": "1:2", "symbol": "mean"},
    ],
)
@pytest.mark.parametrize("json", [False, True])
def test_a_wrong_region_is_a_usage_error(file: Path, region: dict[str, Any], json: bool) -> None:
    client = ScriptedClient(fenced(CHANGED))
    outcome = run_edit(client, file, json=json, **region)
    assert outcome.code == ExitCode.USAGE
    assert client.requests == []
    if not json:
        said_error(outcome)
    assert_untouched(file)


def test_an_ambiguous_symbol_lists_the_candidates(file: Path) -> None:
    file.write_text("class A:\n    def go(self):\n        pass\n\n\nclass B:\n    def go(self):\n        pass\n")
    sentence = said_error(run_edit(ScriptedClient(""), file, symbol="go"))
    assert "A.go" in sentence and "B.go" in sentence


@pytest.mark.parametrize("instruction", ["", "  \n"])
def test_an_empty_instruction_is_a_usage_error(file: Path, instruction: str) -> None:
    assert run_edit(ScriptedClient(""), file, instruction=instruction).code == ExitCode.USAGE


def missing(folder: Path) -> str:
    return "gone.py"


def empty(folder: Path) -> str:
    (folder / "empty.py").touch()
    return "empty.py"


def binary(folder: Path) -> str:
    (folder / "data.bin").write_bytes(b"\x7fELF\0\0\1")
    return "data.bin"


def undecodable(folder: Path) -> str:
    (folder / "latin.py").write_bytes(b"name = 'Andr\xe9'\n")
    return "latin.py"


def subfolder(folder: Path) -> str:
    (folder / "sub").mkdir()
    return "sub"


def dangling(folder: Path) -> str:
    (folder / "link.py").symlink_to("nowhere.py")
    return "link.py"


def loop(folder: Path) -> str:
    (folder / "loop.py").symlink_to("loop.py")
    return "loop.py"


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe.py")
    return "pipe.py"


FILES: dict[Callable[[Path], str], str] = {
    missing: "file_missing",
    empty: "file_empty",
    binary: "file_binary",
    undecodable: "file_undecodable",
    subfolder: "not_a_file",
    dangling: "file_missing",
    loop: "not_a_file",
    pipe: "not_a_file",
}


@pytest.mark.parametrize("make", FILES)
def test_a_file_that_cannot_be_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = make(tmp_path)
    client = ScriptedClient(fenced(CHANGED))
    human = run_edit(client, name)
    assert human.code == ExitCode.FILE
    assert name in said_error(human)
    machine = run_edit(client, name, json=True)
    assert machine.result["outcome"] == "failed"
    assert machine.result["error"]["code"] == FILES[make]
    assert machine.result["stats"] is None
    assert client.requests == []


def test_a_context_file_that_cannot_be_read(file: Path) -> None:
    outcome = run_edit(ScriptedClient(""), file, context=("none.py",))
    assert outcome.code == ExitCode.FILE
    assert "none.py" in said_error(outcome)


def test_a_hard_linked_file_is_refused_before_the_model_runs(file: Path) -> None:
    os.link(file, file.parent / "twin.py")
    client = ScriptedClient(fenced(CHANGED))
    outcome = run_edit(client, file, apply=True, json=True)
    assert outcome.code == ExitCode.FILE
    assert outcome.result["error"]["code"] == "file_hard_linked"
    assert client.requests == []
    assert run_edit(client, file).code == ExitCode.OK  # looking costs nothing


def test_a_hard_linked_file_is_only_shown_to_a_person(file: Path) -> None:
    os.link(file, file.parent / "twin.py")
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, terminal=True, stdin=b"y\n")
    assert outcome.code == ExitCode.OK
    assert "Diff only" in outcome.err and "[y/N]" not in outcome.err
    assert file.read_text() == SOURCE


@pytest.fixture
def open_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that any user may reach, with a file and with a home for our state; root is dropped inside."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sums.py").write_text(SOURCE)
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        (folder / "state").mkdir(mode=0o700)
        is_root = os.geteuid() == 0
        if is_root:
            for path in (folder, folder / "sums.py", folder / "state"):
                os.chown(path, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, 0)  # root's rights can be taken up again
        yield folder
        if is_root:
            os.setresuid(0, 0, 0)
        folder.chmod(0o700)
        (folder / "state").chmod(0o700)


@pytest.mark.parametrize("json", [False, True])
@pytest.mark.parametrize("which", ["file", "folder"])
def test_an_unwritable_file_is_refused_before_the_model_runs(open_folder: Path, which: str, json: bool) -> None:
    file = open_folder / "sums.py"
    if which == "file":
        file.chmod(0o444)
    else:
        open_folder.chmod(0o555)
    client = ScriptedClient(fenced(CHANGED))
    outcome = run_edit(client, file, apply=True, json=json)
    assert outcome.code == ExitCode.FILE
    assert client.requests == []
    if json:
        assert outcome.result["error"]["code"] == "file_unwritable"
    else:
        assert "not writable" in said_error(outcome)


def test_an_unreadable_file(open_folder: Path) -> None:
    (open_folder / "sums.py").chmod(0)
    outcome = run_edit(ScriptedClient(""), open_folder / "sums.py", json=True)
    assert outcome.code == ExitCode.FILE
    assert outcome.result["error"]["code"] == "file_unreadable"


def test_a_journal_out_of_reach_stops_an_apply_and_nothing_else(open_folder: Path) -> None:
    (open_folder / "state").chmod(0)
    client = ScriptedClient(fenced(CHANGED))
    outcome = run_edit(client, open_folder / "sums.py", apply=True)
    assert outcome.code == ExitCode.FILE
    assert "journal" in said_error(outcome)
    assert client.requests == []
    assert run_edit(client, open_folder / "sums.py").code == ExitCode.OK


FAILURES = {
    "missing": ModelError("There is no model; `redraft models pull` fetches one."),
    "memory": MemoryLimitError("The model needs 2.0 GB and 1.0 GB is free."),
}


@pytest.mark.parametrize("json", [False, True])
def test_a_journal_that_cannot_be_written_is_told_before_the_model_runs(file: Path, json: bool) -> None:
    journal_dir().parent.mkdir(parents=True, exist_ok=True)
    journal_dir().write_text("in the way")
    client = ScriptedClient(fenced(CHANGED))
    outcome = run_edit(client, file, apply=True, json=json)
    assert outcome.code == ExitCode.FILE and client.requests == []
    assert "Not a directory" in (outcome.result["error"]["message"] if json else said_error(outcome))
    assert file.read_text() == SOURCE
    assert run_edit(ScriptedClient(fenced(CHANGED)), file, json=json).code == ExitCode.OK


@pytest.mark.parametrize("call", ["describe", "count", "complete"])
@pytest.mark.parametrize("kind", FAILURES)
def test_an_engine_that_fails(file: Path, kind: str, call: str) -> None:
    client = ScriptedClient(fenced(CHANGED), failures={call: FAILURES[kind]})
    human = run_edit(client, file, apply=True)
    assert human.code == ExitCode.ENGINE
    assert said_error(human) == f"redraft: {FAILURES[kind]}"
    machine = run_edit(client, file, apply=True, json=True)
    assert machine.result["outcome"] == "failed"
    assert machine.result["error"] == {"code": FAILURES[kind].code, "message": str(FAILURES[kind])}
    assert client.closed
    assert_untouched(file)


def test_a_file_too_long_for_the_context_is_refused_with_the_numbers(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED), context_length=600)
    sentence = said_error(run_edit(client, file))
    assert "600" in sentence and "--lines" in sentence
    assert run_edit(client, file, json=True).result["error"]["code"] == "file_too_long"
    narrow = ScriptedClient(fenced(CHANGED), context_length=500)
    sentence = said_error(run_edit(narrow, file))
    assert "500" in sentence and "--lines" not in sentence  # the prompt alone leaves no room for a part of it
    assert client.requests == narrow.requests == []


def test_a_character_the_encoding_lacks_is_named(file: Path) -> None:
    file.write_bytes("name = 'André'\nplace = 'Köln'\n".encode("latin-1"))
    reply = fenced("name = 'André'\nplace = 'Köln 漢'\n")
    human = run_edit(ScriptedClient(reply), file, encoding="latin-1", apply=True)
    assert human.code == ExitCode.REFUSED
    sentence = said_error(human)
    assert "Line 2" in sentence and "U+6F22" in sentence
    machine = run_edit(ScriptedClient(reply), file, encoding="latin-1", apply=True, json=True)
    assert machine.result["error"]["code"] == "unencodable"


def test_two_kinds_of_data_on_stdout_are_a_usage_error(file: Path) -> None:
    with pytest.raises(UsageError, match="one kind"):
        run_edit(ScriptedClient(""), file, json=True, stdout=True)


def test_a_name_for_stdin_without_stdin_is_a_usage_error(file: Path) -> None:
    assert run_edit(ScriptedClient(""), file, name="x.py").code == ExitCode.USAGE
