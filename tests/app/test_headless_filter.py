"""Filter mode: a whole file comes back whatever happens, the original one on any failure."""

import io
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.errors import ExitCode, ModelError, SettingsError
from app.headless import EditOptions, Streams, edit
from tests.support.headless_edit import CHANGED, SOURCE, run_edit, said_error
from tests.support.scripted_client import Reply, ScriptedClient, endless, fenced, unending

ELIDED = SOURCE[: SOURCE.index("def spread")] + "# ... rest of the file unchanged ...\n"


def test_the_new_file_is_printed() -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), "-", stdin=SOURCE.encode(), name="sums.py")
    assert (outcome.code, outcome.out) == (ExitCode.OK, CHANGED.encode())


def test_no_change_is_success() -> None:
    outcome = run_edit(ScriptedClient(fenced(SOURCE)), "-", stdin=SOURCE.encode())
    assert (outcome.code, outcome.out) == (ExitCode.OK, SOURCE.encode())


REFUSED: dict[str, Reply] = {
    "cut": unending(),
    "endless": endless("y = 2\n"),
    "empty": fenced(""),
    "not code": fenced("Sorry, no.\n"),
    "elided": fenced(ELIDED),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refused_reply_gives_the_original_back(kind: str) -> None:
    outcome = run_edit(ScriptedClient(REFUSED[kind]), "-", stdin=SOURCE.encode(), name="sums.py")
    assert (outcome.code, outcome.out) == (ExitCode.REFUSED, SOURCE.encode())
    said_error(outcome)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"lines": "7:999"}, ExitCode.USAGE),
        ({"symbol": "median", "name": "sums.py"}, ExitCode.USAGE),
        ({"encoding": "klingon"}, ExitCode.USAGE),
        ({"instruction": ""}, ExitCode.USAGE),
        ({"apply": True}, ExitCode.USAGE),
        ({"dry_run": True}, ExitCode.USAGE),
        ({"context": ("none.py",)}, ExitCode.FILE),
        ({"patch": "no/folder/out.diff"}, ExitCode.FILE),
    ],
)
def test_wrong_options_give_the_original_back(options: dict[str, Any], code: ExitCode) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), "-", stdin=SOURCE.encode(), **options)
    assert (outcome.code, outcome.out) == (code, SOURCE.encode())
    said_error(outcome)


@pytest.mark.parametrize(
    "data", [b"", b"\0\1\2", b"caf\xe9\n", b"\xef\xbb\xbf"], ids=["empty", "binary", "latin-1", "mark"]
)
def test_what_is_no_text_comes_back_as_it_was(data: bytes) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), "-", stdin=data)
    assert (outcome.code, outcome.out) == (ExitCode.FILE, data)


def test_other_failures_give_the_original_back() -> None:
    for client, code in (
        (ScriptedClient("", failures={"describe": ModelError("There is no model.")}), ExitCode.ENGINE),
        (ScriptedClient(fenced(CHANGED), context_length=300), ExitCode.FILE),
        (
            ScriptedClient(fenced(CHANGED), at_token={5: lambda: signal.raise_signal(signal.SIGINT)}),
            ExitCode.INTERRUPTED,
        ),
    ):
        outcome = run_edit(client, "-", stdin=SOURCE.encode())
        assert (outcome.code, outcome.out) == (code, SOURCE.encode())
        said_error(outcome)


def test_settings_that_make_no_sense_give_the_original_back() -> None:
    def connect(options: EditOptions) -> Any:
        raise SettingsError("Unknown variable REDRAFT_MODLE.")

    out = io.BytesIO()
    text = io.TextIOWrapper(out, encoding="utf-8")
    streams = Streams(io.BytesIO(SOURCE.encode()), text, out, io.StringIO(), False)
    assert edit(EditOptions("-", "Do.", json=True), connect, streams) == ExitCode.USAGE
    assert edit(EditOptions("-", "Do."), connect, replace(streams, stdin=io.BytesIO(b"x"))) == ExitCode.USAGE
    assert out.getvalue() == SOURCE.encode() + b"x"


def test_a_fault_of_ours_gives_the_original_back() -> None:
    def broken() -> None:
        raise RuntimeError("not foreseen")

    out = io.BytesIO()
    text = io.TextIOWrapper(out, encoding="utf-8")
    streams = Streams(io.BytesIO(SOURCE.encode()), text, out, io.StringIO(), False)
    client = ScriptedClient(fenced(CHANGED), at_token={5: broken})
    with pytest.raises(RuntimeError):
        edit(EditOptions("-", "Do."), lambda given: (given, client), streams)
    assert out.getvalue() == SOURCE.encode()


def test_a_name_chooses_the_language() -> None:
    client = ScriptedClient(fenced(SOURCE))
    run_edit(client, "-", stdin=SOURCE.encode(), name="sums.py")
    run_edit(client, "-", stdin=SOURCE.encode(), name="sums.rs")
    assert [request.prefill for request in client.requests] == ["```python\n", "```rust\n"]


def test_bytes_that_no_change_touches_come_back_as_they_were() -> None:
    mixed = SOURCE.replace("\n", "\r\n", 5).removesuffix("\n").encode("utf-8-sig")
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), "-", stdin=mixed, name="sums.py")
    assert outcome.out == mixed.replace(b"return 0\n", b"return 0.0\n")
    assert outcome.out != mixed


def test_a_patch_is_written_beside(tmp_path: Path) -> None:
    patch = tmp_path / "out.diff"
    outcome = run_edit(
        ScriptedClient(fenced(CHANGED)), "-", stdin=SOURCE.encode(), name="lib/sums.py", patch=str(patch)
    )
    assert outcome.out == CHANGED.encode()
    assert patch.read_bytes().startswith(b"--- a/lib/sums.py\n+++ b/lib/sums.py\n")
