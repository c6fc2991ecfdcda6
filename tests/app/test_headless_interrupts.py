"""What can come in between: ctrl-C, other programs, faults of ours, readers that leave, a kill."""

import gc
import io
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app import headless
from app.editing import pipeline, replace
from app.errors import ExitCode
from app.headless import EditOptions, Streams, edit
from tests.support.headless_edit import CHANGED, SOURCE, Terminal, assert_untouched, run_edit, said_error
from tests.support.scripted_client import ScriptedClient, fenced, unending


class InterruptedInput(io.BytesIO):
    """Someone presses ctrl-C instead of answering."""

    def readline(self, size: int | None = -1, /) -> bytes:
        signal.raise_signal(signal.SIGINT)
        return b"y\n"


def test_ctrl_c_at_the_question_is_seen_at_once_and_writes_nothing(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, err = (Terminal(io.BytesIO(), encoding="utf-8") for _ in range(2))
    streams = Streams(InterruptedInput(), out, io.BytesIO(), err, True)
    client = ScriptedClient(fenced(CHANGED))
    code = edit(EditOptions(str(file), "Do."), lambda given: (given, client), streams)
    assert code == ExitCode.INTERRUPTED
    assert_untouched(file)


@pytest.mark.parametrize("json", [False, True])
@pytest.mark.parametrize("apply", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_its_like_while_decoding(file: Path, json: bool, apply: bool, number: signal.Signals) -> None:
    client = ScriptedClient(fenced(CHANGED), at_token={9: lambda: signal.raise_signal(number)})
    outcome = run_edit(client, file, json=json, apply=apply)
    assert outcome.code == ExitCode.INTERRUPTED
    assert client.closed
    if json:
        assert outcome.result["outcome"] == "cancelled"
        assert outcome.result["error"]["code"] == "interrupted"
    else:
        assert said_error(outcome) == "redraft: Interrupted; nothing was written."
    assert_untouched(file)


def test_ctrl_c_after_the_reply_and_before_the_apply_writes_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any, **named: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return checks(*given, **named)

    checks = pipeline.check_result
    monkeypatch.setattr(pipeline, "check_result", interrupted)
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file, apply=True)
    assert outcome.code == ExitCode.INTERRUPTED
    assert_untouched(file)


def test_ctrl_c_before_the_loop_has_begun_leaves_nothing_unawaited(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(work: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(headless.asyncio, "run", interrupted)
    outcome = run_edit(ScriptedClient(fenced(CHANGED)), file)  # Python warns of what is never awaited
    gc.collect()
    assert outcome.code == ExitCode.INTERRUPTED
    assert_untouched(file)


def edited(path: Path, old: str, new: str) -> Callable[[], object]:
    """Another program's change."""
    return lambda: path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("json", [False, True])
def test_a_change_in_the_same_place_is_a_conflict(file: Path, json: bool) -> None:
    client = ScriptedClient(fenced(CHANGED), at_token={20: edited(file, "return 0\n", "return None\n")})
    outcome = run_edit(client, file, apply=True, json=json)
    assert outcome.code == ExitCode.CONFLICT
    if json:
        assert outcome.result["outcome"] == "conflict"
        assert outcome.result["receipt"] is None
    assert file.read_text() == SOURCE.replace("return 0\n", "return None\n")


def test_a_change_elsewhere_is_kept(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED), at_token={20: edited(file, '"""Sums."""', '"""Totals."""')})
    outcome = run_edit(client, file, apply=True, json=True)
    assert outcome.code == ExitCode.OK
    assert outcome.result["receipt"]["outside_identical"] is True
    assert file.read_text() == CHANGED.replace('"""Sums."""', '"""Totals."""')


def test_a_file_removed_meanwhile_is_a_conflict(file: Path) -> None:
    outcome = run_edit(ScriptedClient(fenced(CHANGED), at_token={20: file.unlink}), file, apply=True)
    assert outcome.code == ExitCode.CONFLICT
    assert "removed or renamed" in said_error(outcome)


def test_an_internal_fault_still_ends_in_a_result(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    streams = Streams(io.BytesIO(), out, io.BytesIO(), io.StringIO(), False)

    def broken() -> None:
        raise RuntimeError("not foreseen")

    client = ScriptedClient(fenced(CHANGED), at_token={3: broken})
    with pytest.raises(RuntimeError):
        edit(EditOptions(str(file), "Do.", json=True), lambda given: (given, client), streams)
    last = out.getvalue().splitlines()[-1]
    assert '"type": "result"' in last and '"internal"' in last and "not foreseen" in last
    assert client.closed and client.open_calls == 0


class Gone(io.TextIOWrapper):
    """A pipe whose reader has left."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError


def test_a_reader_that_leaves_stops_the_engine(file: Path) -> None:
    out = Gone(io.BytesIO(), encoding="utf-8")
    streams = Streams(io.BytesIO(), out, io.BytesIO(), io.StringIO(), False)
    client = ScriptedClient(unending())
    with pytest.raises(BrokenPipeError):
        edit(EditOptions(str(file), "Do.", json=True), lambda given: (given, client), streams)
    assert client.open_calls == 0 and client.closed


def test_what_a_killed_run_left_is_settled_and_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> Any:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(replace, "settle", killed)
        with pytest.raises(KilledError):
            run_edit(ScriptedClient(fenced(CHANGED)), file, apply=True)
    again = run_edit(ScriptedClient(fenced(CHANGED)), file, apply=True)
    assert again.code == ExitCode.UNCHANGED
    assert "cut short is complete" in again.err
    assert file.read_text() == CHANGED
