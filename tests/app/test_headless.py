"""Every reply an edit can get: outcome, exit code, both streams, and the file, for people and for programs."""

import os
from pathlib import Path
from typing import Any

import pytest

from app.editing.journal import Journal
from app.engine_client import Capabilities
from app.errors import ExitCode, UsageError
from app.paths import journal_dir
from tests.support.headless_edit import CHANGED, SOURCE, assert_untouched, run_edit, said_error
from tests.support.scripted_client import Reply, ScriptedClient, endless, fenced, tokens_of, unending

LONG = "".join(f"def step_{n}(value):\n    doubled = value * {n}\n    return doubled\n\n\n" for n in range(12))
ELIDED = SOURCE[: SOURCE.index("def spread")] + "# ... rest of the file unchanged ...\n"
ESCAPES = SOURCE.replace("return 0\n", 'return "\x1b[2J\x1b]0;owned\x07\u202e"\n')


REFUSED: dict[str, tuple[Reply, str, str]] = {
    "cut": (unending(), "reply_cut", "cut at the token limit"),
    "endless": (endless("x = 1\n"), "reply_endless", "loop"),
    "empty": (fenced(""), "reply_empty", "empty"),
    "nothing at all": ("", "reply_empty", "empty"),
    "blank": (fenced("\n\n \n"), "reply_empty", "empty"),
    "not code": (fenced("I am sorry, I cannot do that!\n"), "reply_not_code", "something other than the file"),
    "elided": (fenced(ELIDED), "check_failed", "elision"),
}


@pytest.mark.parametrize("apply", [False, True])
@pytest.mark.parametrize("kind", REFUSED)
def test_a_bad_reply_is_refused(file: Path, kind: str, apply: bool) -> None:
    reply, code, words = REFUSED[kind]
    human = run_edit(ScriptedClient(reply), file, apply=apply)
    assert human.code == ExitCode.REFUSED
    assert words in said_error(human)
    assert (human.out == b"") == (kind != "elided")
    machine = run_edit(ScriptedClient(reply), file, apply=apply, json=True)
    assert machine.code == ExitCode.REFUSED
    assert machine.result["outcome"] == "refused"
    assert machine.result["error"]["code"] == code
    assert machine.result["receipt"] is None
    assert machine.result["stats"] is not None
    assert_untouched(file)


def test_an_elided_reply_names_what_is_missing_and_can_only_be_looked_at(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(ELIDED)), file, json=True, apply=True, patch="../out.diff")
    (warning,) = [line for line in outcome.of_type("warning") if line["code"] == "elision"]
    assert warning["blocking"] is True
    assert set(warning["lines"]) <= set(range(17, 21))
    assert (file.parent.parent / "out.diff").read_bytes().startswith(b"--- a/sums.py\n")
    assert run_edit(ScriptedClient(fenced(ELIDED)), file, stdout=True).out == b""
    assert_untouched(file)


def test_a_placeholder_the_file_has_already_is_no_elision(file: Path) -> None:
    source = SOURCE + "\n# ... rest of the file unchanged ...\n"
    file.write_text(source)
    outcome = run_edit(ScriptedClient(fenced(source.replace("return 0", "return 0.0"))), file, apply=True)
    assert outcome.code == ExitCode.OK


@pytest.mark.parametrize("options", [{}, {"apply": True}, {"stdout": True}])
def test_an_identical_reply_needs_no_change(file: Path, options: dict[str, Any]) -> None:
    human = run_edit(ScriptedClient(fenced(SOURCE)), file, **options)
    assert human.code == ExitCode.UNCHANGED
    assert human.out == b""
    assert "No change needed" in said_error(human)
    assert_untouched(file)


def test_an_identical_reply_for_programs(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(SOURCE)), file, json=True, apply=True)
    assert outcome.result["outcome"] == "unchanged"
    assert outcome.result["error"]["code"] == "unchanged"
    assert outcome.result["hunks"] == 0
    assert_untouched(file)


def test_a_good_reply_is_printed_as_a_diff(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file)
    assert outcome.code == ExitCode.OK
    assert outcome.out.startswith(b"--- a/sums.py\n+++ b/sums.py\n@@ -")
    assert b"\n-        return 0\n+        return 0.0\n" in outcome.out
    assert "tok/s" in outcome.err
    assert_untouched(file)


def test_quiet_says_nothing_but_the_diff(file: Path) -> None:
    assert run_edit(ScriptedClient(fenced(CHANGED)), file, quiet=True).err == ""


def test_a_good_reply_for_programs(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, json=True)
    assert outcome.result["outcome"] == "changed"
    assert outcome.result["hunks"] == 1
    assert outcome.result["receipt"] is None
    kinds = [line["type"] for line in outcome.lines]
    assert kinds[:2] == ["start", "prefill"]
    assert kinds[-2:] == ["hunk", "result"]
    assert "".join(line["text"] for line in outcome.of_type("text")) == CHANGED
    assert_untouched(file)


def test_the_new_file_on_stdout(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, stdout=True)
    assert (outcome.code, outcome.out) == (ExitCode.OK, CHANGED.encode())
    assert_untouched(file)


def test_a_patch_file_has_the_diff(file: Path, tmp_path: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, patch="out.diff")
    assert (tmp_path / "out.diff").read_bytes() == outcome.out
    assert file.read_text() == SOURCE


def test_a_patch_for_a_pipe_that_nobody_reads_is_refused(file: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, patch=str(tmp_path / "pipe"))
    assert outcome.code == ExitCode.FILE and "cannot be written" in said_error(outcome)


@pytest.mark.parametrize("json", [False, True])
def test_a_patch_that_cannot_be_written(file: Path, json: bool) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, patch="no/such/folder.diff", json=json, apply=True)
    assert outcome.code == ExitCode.FILE
    assert_untouched(file)


@pytest.mark.parametrize("name", ["sums.py", "./sums.py", "context.py"])
def test_a_patch_never_overwrites_what_is_read(file: Path, name: str) -> None:
    (file.parent / "context.py").write_text("LIMIT = 3\n")
    client = ScriptedClient(fenced(CHANGED))
    outcome = run_edit(client, file, patch=name, context=("context.py",))
    assert outcome.code == ExitCode.USAGE
    assert "overwrite" in said_error(outcome)
    assert client.requests == []
    assert file.read_text() == SOURCE


def test_apply_writes_and_gives_a_receipt(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, json=True, apply=True)
    assert outcome.code == ExitCode.OK
    assert outcome.result["outcome"] == "applied"
    receipt = outcome.result["receipt"]
    assert receipt.keys() >= {
        "path",
        "before_sha256",
        "after_sha256",
        "outside_identical",
        "guarded",
        "journal_id",
    }
    assert receipt["path"] == str(file)
    assert receipt["outside_identical"] is True
    assert receipt["before_sha256"] == outcome.of_type("start")[0]["file"]["sha256"]
    assert file.read_text() == CHANGED
    (entry,) = Journal(journal_dir()).entries()
    assert entry.id == receipt["journal_id"]
    assert Journal(journal_dir()).contents(entry)[0] == SOURCE.encode()
    assert [entry.name for entry in file.parent.iterdir()] == ["sums.py"]


def test_apply_says_what_it_did(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, apply=True)
    assert outcome.code == ExitCode.OK
    assert f"Applied to {file}" in outcome.err
    assert "bytes outside the hunks identical" in outcome.err
    assert file.read_text() == CHANGED


def test_escape_sequences_reach_the_file_as_bytes_and_a_terminal_as_words(file: Path) -> None:
    shown = run_edit(ScriptedClient(fenced(ESCAPES)), file, terminal=True, stdin=b"n\n")
    for stream in (shown.out.decode(), shown.err):
        assert "\x1b[2J" not in stream and "\x07" not in stream and "\u202e" not in stream
    assert r"\x1b[2J\x1b]0;owned\x07\u202e" in shown.out.decode()
    piped = run_edit(ScriptedClient(fenced(ESCAPES)), file)
    assert b'return "\x1b[2J\x1b]0;owned\x07\xe2\x80\xae"\n' in piped.out
    assert run_edit(ScriptedClient(fenced(ESCAPES)), file, apply=True).code == ExitCode.OK
    assert file.read_bytes() == ESCAPES.encode()


def test_escape_sequences_of_a_file_are_not_obeyed_in_a_dry_run(file: Path) -> None:
    file.write_text("title = '\x1b[2J'\n")
    shown = run_edit(ScriptedClient(""), file, terminal=True, dry_run=True)
    assert r"title = '\x1b[2J'" in shown.out.decode()
    assert b"title = '\x1b[2J'\n" in run_edit(ScriptedClient(""), file, dry_run=True).out


@pytest.mark.parametrize(("answer", "written"), [(b"y\n", True), (b"YES\n", True), (b"n\n", False), (b"", False)])
def test_a_person_is_asked(file: Path, answer: bytes, written: bool) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, terminal=True, stdin=answer)
    assert outcome.code == ExitCode.OK
    assert "Apply 1 hunk to sums.py? [y/N]" in outcome.err.replace(str(file), "sums.py")
    assert file.read_text() == (CHANGED if written else SOURCE)
    assert ("Nothing was written." in outcome.err) == (not written)


def test_a_blocked_result_is_never_asked_about(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(ELIDED)), file, terminal=True, stdin=b"y\n")
    assert outcome.code == ExitCode.REFUSED
    assert "[y/N]" not in outcome.err
    assert_untouched(file)


BROKEN = SOURCE.replace("return 0\n", "return (0\n")


def test_a_new_syntax_error_warns(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(BROKEN)), file, json=True, apply=True)
    assert outcome.code == ExitCode.OK
    (warning,) = outcome.result["warnings"]
    assert (warning["code"], warning["blocking"]) == ("syntax", False)
    assert warning.keys() == {"code", "message", "lines", "blocking"}


@pytest.mark.parametrize("apply", [False, True])
def test_a_new_syntax_error_blocks_when_strict(file: Path, apply: bool) -> None:
    outcome = run_edit(ScriptedClient(fenced(BROKEN)), file, strict=True, apply=apply)
    assert outcome.code == ExitCode.REFUSED
    assert "(syntax)" in said_error(outcome)
    assert_untouched(file)


def test_an_error_the_file_had_does_not_block(file: Path) -> None:
    file.write_text(BROKEN)
    reply = fenced(BROKEN.replace("low = min", "least = min").replace("high - low", "high - least"))
    assert run_edit(ScriptedClient(reply), file, strict=True, apply=True).code == ExitCode.OK


def test_max_deletions(file: Path) -> None:
    shorter = SOURCE.replace("    low = min(items)\n    high = max(items)\n    return high - low\n", "    return 0\n")
    assert run_edit(ScriptedClient(fenced(shorter)), file, max_deletions=1).code == ExitCode.REFUSED
    assert "(deletions)" in said_error(run_edit(ScriptedClient(fenced(shorter)), file, max_deletions=0, apply=True))
    assert_untouched(file)
    assert run_edit(ScriptedClient(fenced(shorter)), file, max_deletions=2, apply=True).code == ExitCode.OK


def test_a_huge_deletion_is_refused_unasked(file: Path) -> None:
    file.write_text(LONG)
    outcome = run_edit(ScriptedClient(fenced(LONG[: len(LONG) // 3])), file, apply=True, json=True)
    assert outcome.code == ExitCode.REFUSED
    assert "deletions" in {warning["code"] for warning in outcome.result["warnings"] if warning["blocking"]}
    assert_untouched(file, LONG)


@pytest.mark.parametrize("region", [{"lines": "12:13"}, {"symbol": "mean"}])
def test_a_region_edit_leaves_the_rest_alone(file: Path, region: dict[str, Any]) -> None:
    # The model goes on after the region as it does in life; its anchor ends the reply.
    client = ScriptedClient(lambda request: tokens_of(CHANGED[CHANGED.index(request.source[:20]) :]))
    outcome = run_edit(client, file, apply=True, **region)
    assert outcome.code == ExitCode.OK
    assert client.requests[0].anchor
    assert file.read_text() == CHANGED


def test_a_region_reply_that_never_reaches_its_anchor_is_cut(file: Path) -> None:
    outcome = run_edit(ScriptedClient(unending()), file, apply=True, lines="12:13")
    assert outcome.code == ExitCode.REFUSED
    assert_untouched(file)


def test_a_dry_run_runs_nothing(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))
    human = run_edit(client, file, dry_run=True, instruction="Rename it.")
    assert human.code == ExitCode.OK
    assert SOURCE.encode() in human.out and b"Rename it." in human.out
    assert "tokens" in human.err
    machine = run_edit(client, file, dry_run=True, json=True)
    assert [line["type"] for line in machine.lines] == ["start", "result"]
    start = machine.lines[0]
    assert start["prompt_tokens"] > 0 and start["cached_tokens"] is None
    assert (start["estimated"], start["context_tokens"]) == (False, 100_000)
    assert start["max_tokens"] == start["expected_tokens"] + 256
    assert machine.result["stats"] is None
    guessing = ScriptedClient("", capabilities=Capabilities(tokenise=False))
    assert run_edit(guessing, file, dry_run=True, json=True).lines[0]["estimated"] is True
    assert client.requests == []


@pytest.mark.parametrize("other", [{"apply": True}, {"stdout": True}, {"patch": "../out.diff"}])
def test_a_dry_run_with_what_would_write_is_refused(file: Path, other: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="nothing for --apply, --stdout or --patch"):
        run_edit(ScriptedClient(fenced(CHANGED)), file, dry_run=True, **other)
    assert_untouched(file)


@pytest.mark.parametrize("dry_run", [False, True])
def test_why_this_model_and_what_happened_at_its_load_is_said(file: Path, dry_run: bool) -> None:
    told: dict[str, Any] = {"choice": "Model: small, it fits.", "notes": ("No graphics processor is used.",)}
    human = run_edit(ScriptedClient(fenced(CHANGED), **told), file, dry_run=dry_run)
    lines = human.err.splitlines()
    at = lines.index("Model: small, it fits.")
    assert lines[at + 1] == "No graphics processor is used."
    assert run_edit(ScriptedClient(fenced(CHANGED), **told), file, dry_run=dry_run, quiet=True).err == ""
    model = run_edit(ScriptedClient(fenced(CHANGED), **told), file, dry_run=dry_run, json=True).lines[0]["model"]
    assert (model["choice"], model["notes"]) == ("Model: small, it fits.", ["No graphics processor is used."])


def test_how_far_a_change_reaches_is_said(file: Path) -> None:
    far = fenced(CHANGED.replace("return high - low", "return high + low"))
    human = run_edit(ScriptedClient(far), file, instruction="Let mean return 0.0.")
    assert "Blast radius: 1 line changed far from what the instruction names." in human.err.splitlines()
    machine = run_edit(ScriptedClient(far), file, instruction="Let mean return 0.0.", json=True)
    assert machine.result["blast_radius"] == 1
    near = run_edit(ScriptedClient(fenced(CHANGED)), file, instruction="Let mean return 0.0.", json=True)
    assert near.result["blast_radius"] == 0
    unnamed = run_edit(ScriptedClient(fenced(CHANGED)), file, instruction="Tidy up.", json=True)
    assert unnamed.result["blast_radius"] is None


def test_a_hunk_is_sent_as_soon_as_it_is_final(file: Path) -> None:
    lines = [f"value_{number} = {number}\n" for number in range(40)]
    file.write_text("".join(lines))
    new = "".join(["first = 0\n", *lines[1:38], "last = 39\n"])
    outcome = run_edit(ScriptedClient(fenced(new)), file, json=True)
    kinds = [line["type"] for line in outcome.lines]
    hunks = outcome.of_type("hunk")
    assert [hunk["index"] for hunk in hunks] == [1, 2]
    assert outcome.result["hunks"] == 2
    assert kinds.index("hunk") < len(kinds) - 1 - kinds[::-1].index("text")
