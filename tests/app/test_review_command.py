"""`redraft review`: patches and stored proposals, in plain lines and for programs."""

import io
import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.editing.document import open_document
from app.editing.proposals import ProposalStore
from app.editing.result import make_result
from app.errors import ExitCode
from app.paths import proposals_dir

SOURCE = "".join(f"line {number}\n" for number in range(40))
PATCH = """--- a/one.txt
+++ b/one.txt
@@ -3 +3 @@
-line 2
+two
@@ -31 +31 @@
-line 30
+thirty
--- a/two.txt
+++ b/two.txt
@@ -1 +1 @@
-line 0
+zero
"""
CONFLICT = PATCH.replace("-line 30", "-line thirty")


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line, with what is typed."""

    def command(*arguments: str, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Done(code, captured.out, captured.err)

    return command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.txt").write_text(SOURCE)
    (tmp_path / "two.txt").write_text(SOURCE)
    (tmp_path / "p.diff").write_text(PATCH)
    (tmp_path / "c.diff").write_text(CONFLICT)
    return tmp_path


def texts(folder: Path) -> tuple[str, str]:
    return (folder / "one.txt").read_text(), (folder / "two.txt").read_text()


def json_lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def store_with(folder: Path, new: str = SOURCE.replace("line 5\n", "five\n")) -> ProposalStore:
    store = ProposalStore(proposals_dir())
    result = make_result(open_document(folder / "one.txt"), new)
    store.put(result, "Spell five.", "scripted", hunks=1)
    return store


def test_a_patch_is_reviewed_in_plain_lines(run: Run, folder: Path) -> None:
    done = run("review", "p.diff", "--plain", stdin="y\nn\ny\ny\n")
    assert done.code == ExitCode.OK
    assert texts(folder) == (SOURCE.replace("line 2\n", "two\n", 1), SOURCE.replace("line 0\n", "zero\n", 1))
    assert "Apply 2 hunks to 2 files? [y,n]" in done.out


@pytest.mark.parametrize("typed", ["", "y\n", "y\ny\ny\nn\n", "n\nn\nn\n", "q\nq\n"])
def test_nothing_is_written_without_a_yes(run: Run, folder: Path, typed: str) -> None:
    done = run("review", "p.diff", "--plain", stdin=typed)
    assert done.code == ExitCode.OK
    assert texts(folder) == (SOURCE, SOURCE)


def test_a_conflict_is_said_and_ends_with_its_code(run: Run, folder: Path) -> None:
    done = run("review", "c.diff", "--plain", stdin="a\na\ny\n")
    assert done.code == ExitCode.CONFLICT
    assert "Conflict: Hunk 2 of one.txt does not fit" in done.out
    assert texts(folder)[0] == SOURCE.replace("line 2\n", "two\n", 1)


def test_programs_get_json_and_may_apply(run: Run, folder: Path) -> None:
    lines = json_lines(run("review", "p.diff", "--json").out)
    assert [line["type"] for line in lines] == ["item", "hunk", "hunk", "item", "hunk", "result"]
    assert lines[-1]["outcome"] == "changed" and lines[-1]["hunks"] == 3
    assert lines[1]["path"] == "one.txt" and "-line 2\n" in lines[1]["lines"]
    assert texts(folder) == (SOURCE, SOURCE)
    done = run("review", "p.diff", "--json", "--apply")
    result = json_lines(done.out)[-1]
    assert (done.code, result["outcome"], len(result["receipts"])) == (ExitCode.OK, "applied", 2)
    assert all(receipt["outside_identical"] for receipt in result["receipts"])
    assert "thirty" in texts(folder)[0] and "zero" in texts(folder)[1]


def test_a_patch_may_come_from_stdin(run: Run, folder: Path) -> None:
    done = run("review", "-", "--json", "--apply", stdin=PATCH)
    assert (done.code, json_lines(done.out)[-1]["outcome"]) == (ExitCode.OK, "applied")
    assert "thirty" in texts(folder)[0]
    assert run("review", "-", "--plain", stdin=PATCH).code == ExitCode.USAGE


def test_programs_apply_nothing_of_a_patch_that_does_not_fit(run: Run, folder: Path) -> None:
    done = run("review", "c.diff", "--json", "--apply")
    result = json_lines(done.out)[-1]
    assert (done.code, result["outcome"], result["receipts"]) == (ExitCode.CONFLICT, "conflict", [])
    assert texts(folder) == (SOURCE, SOURCE)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("p.diff",), ExitCode.USAGE),
        (("p.diff", "--plain", "--json"), ExitCode.USAGE),
        (("p.diff", "--apply"), ExitCode.USAGE),
        (("gone.diff", "--plain"), ExitCode.FILE),
        (("one.txt", "--plain"), ExitCode.USAGE),
        ((".", "--json"), ExitCode.FILE),
    ],
)
def test_what_cannot_be_reviewed_is_said(run: Run, folder: Path, arguments: tuple[str, ...], code: ExitCode) -> None:
    done = run("review", *arguments)
    assert done.code == code
    if "--json" in arguments and "--plain" not in arguments:
        assert json_lines(done.out)[-1]["exit_code"] == code
    else:
        assert done.out == "" and done.err.startswith("redraft: ") and "Traceback" not in done.err
    assert texts(folder) == (SOURCE, SOURCE)


def test_a_folder_in_place_of_a_patch_is_said_to_be_one(run: Run, folder: Path) -> None:
    (folder / "sub").mkdir()
    assert run("review", "./sub", "--plain").err == "redraft: ./sub is a folder; name a patch in it.\n"


def test_a_pipe_without_a_writer_and_a_device_are_refused_at_once(run: Run, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    done = run("review", "./pipe", "--plain")
    assert (done.code, done.err) == (ExitCode.FILE, "redraft: ./pipe is a pipe that nobody writes to.\n")
    assert run("review", "/dev/zero", "--plain").err == "redraft: /dev/zero is not a regular file.\n"


def test_a_patch_may_come_through_a_pipe_that_somebody_writes_to(run: Run, folder: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w") as stream:
        writer = threading.Thread(target=lambda: (stream.write(PATCH), stream.close()))
        writer.start()
        done = run("review", f"/dev/fd/{read}", "--json", "--apply")
        writer.join()
    assert (done.code, json_lines(done.out)[-1]["outcome"]) == (ExitCode.OK, "applied")


def test_a_patch_that_reaches_outside_is_refused_as_a_whole(run: Run, folder: Path) -> None:
    (folder / "bad.diff").write_text(PATCH + "--- ../x\n+++ ../x\n@@ -1 +1 @@\n-a\n+b\n")
    done = run("review", "bad.diff", "--plain", stdin="a\na\na\ny\n")
    assert done.code == ExitCode.USAGE and "outside" in done.err
    assert texts(folder) == (SOURCE, SOURCE)


def test_stored_proposals_are_listed_and_reviewed(run: Run, folder: Path) -> None:
    assert "Nothing waits" in run("review", "--list").err
    assert "Nothing waits" in run("review", "--plain").err
    store = store_with(folder)
    (stored,) = store.entries()
    listed = run("review", "--list").out
    assert stored.id in listed and "one.txt" in listed and "Spell five." in listed and "current" in listed
    item, result = json_lines(run("review", "--list", "--json").out)
    assert (item["type"], item["id"], item["standing"]) == ("item", stored.id, "current")
    assert result["exit_code"] == 0
    done = run("review", stored.id[:6], "--plain", stdin="y\ny\n")
    assert done.code == ExitCode.OK
    assert texts(folder)[0] == SOURCE.replace("line 5\n", "five\n")
    assert store.count() == 0


def test_a_proposal_stays_while_it_is_undecided_and_goes_when_it_is_rejected(run: Run, folder: Path) -> None:
    store = store_with(folder)
    run("review", "--plain", stdin="q\n")
    assert store.count() == 1
    run("review", "one.txt", "--plain", stdin="n\n")
    assert texts(folder)[0] == SOURCE
    assert store.count() == 0


def test_a_stale_proposal_is_a_conflict(run: Run, folder: Path) -> None:
    store_with(folder)
    (folder / "one.txt").write_text(SOURCE.replace("line 5\n", "other\n"))
    done = run("review", "--json", "--apply")
    assert done.code == ExitCode.CONFLICT
    assert "other" in texts(folder)[0]
