"""`redraft --plain FILE`: a session in plain lines, with a scripted engine."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from app.editing.session_store import left_sessions
from app.engine_client import EngineClient
from app.errors import ExitCode
from app.headless import Streams
from app.plain_session import PlainOptions, plain_session
from editor_engine.requests import CompletionRequest
from tests.support.headless_edit import CHANGED, SOURCE, Terminal
from tests.support.scripted_client import ScriptedClient, fenced, tokens_of, unending


def session(client: ScriptedClient, file: Path, typed: str) -> tuple[ExitCode, str, str]:
    out_bytes, err_bytes = io.BytesIO(), io.BytesIO()
    out = io.TextIOWrapper(out_bytes, encoding="utf-8", newline="")
    err = Terminal(err_bytes, encoding="utf-8", newline="")
    streams = Streams(io.BytesIO(typed.encode()), out, out_bytes, err, False)
    code = plain_session(PlainOptions(str(file)), cast(EngineClient, client), streams)
    out.flush()
    err.flush()
    assert client.closed and client.open_calls == 0
    return code, out_bytes.getvalue().decode(), err_bytes.getvalue().decode()


def test_an_edit_is_asked_reviewed_and_applied(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))
    code, out, err = session(client, file, "Return a float.\ny\ny\n\n")
    assert code == ExitCode.OK
    assert file.read_text() == CHANGED
    assert out.startswith("sums.py: 20 lines, utf-8, lf.\n") or "20 lines, utf-8, lf." in out
    assert "Apply 1 hunk to" in out and "Applied to" in err
    # Nothing is drawn over, also where stderr is a terminal.
    assert "\r" not in out + err and "\x1b" not in out + err


def test_nothing_is_written_without_a_yes(file: Path) -> None:
    for typed in ("Do.\ny\nn\n", "Do.\nn\n", "Do.\n", "Do.\ny\n", ""):
        code, _, _ = session(ScriptedClient(fenced(CHANGED)), file, typed)
        assert code == ExitCode.OK
        assert file.read_text() == SOURCE


def test_a_failed_edit_is_one_sentence_and_the_next_question(file: Path) -> None:
    client = ScriptedClient(unending())
    code, out, err = session(client, file, "Do.\n")
    assert code == ExitCode.REFUSED
    assert err.count("redraft: ") == 1 and "cut at the token limit" in err
    assert out.count("Instruction") == 2


def test_turns_follow_one_another(file: Path) -> None:
    replies = iter([CHANGED, CHANGED.replace("high - low", "abs(high - low)")])
    client = ScriptedClient(lambda request: fenced(next(replies))(request))
    code, _, _ = session(client, file, "One.\na\ny\nTwo.\na\ny\n")
    assert code == ExitCode.OK
    assert file.read_text() == CHANGED.replace("high - low", "abs(high - low)")
    assert "return 0.0" in client.requests[1].source


def test_an_interrupt_ends_the_edit_and_not_the_session(file: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    client = ScriptedClient(fenced(CHANGED), at_token={5: interrupt})
    code, out, err = session(client, file, "Do.\n")
    assert code == ExitCode.INTERRUPTED
    assert "Interrupted" in err and out.count("Instruction") == 2
    assert file.read_text() == SOURCE


def test_a_hunk_is_done_anew_with_a_note(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))
    whole = client.reply

    def reply(request: CompletionRequest) -> Iterable[str]:
        assert callable(whole)
        if not request.anchor:
            return whole(request)
        return tokens_of("        return None\n" + request.anchor[0] + "\n")

    client.reply = reply
    code, _, _ = session(client, file, "Do.\nr\nNo float.\ny\ny\n")
    assert code == ExitCode.OK
    assert file.read_text() == SOURCE.replace("return 0\n", "return None\n")
    assert "No float." in client.requests[-1].messages[-1].content


def test_a_cut_reply_goes_on_when_it_is_wanted(file: Path) -> None:
    replies = iter([unending(), fenced(CHANGED)])
    client = ScriptedClient(lambda request: next(replies)(request))
    code, out, err = session(client, file, "Do.\ny\na\ny\n")
    carried = client.requests[1].prefill.partition("\n")[2]
    assert code == ExitCode.OK and err.count("cut at the token limit") == 1 and "Go on where it was cut?" in out
    assert carried.startswith("value_0 = 0\n") and file.read_text() == carried + CHANGED


def test_a_cut_reply_ends_there_when_it_is_not(file: Path) -> None:
    client = ScriptedClient(unending())
    code, _, _ = session(client, file, "Do.\nn\n")
    assert code == ExitCode.REFUSED and len(client.requests) == 1 and file.read_text() == SOURCE


def test_a_mistyped_answer_is_asked_again_and_yes_is_a_yes(file: Path) -> None:
    code, out, _ = session(ScriptedClient(fenced(CHANGED)), file, "Do.\ny\nmaybe\nYES\n")
    assert code == ExitCode.OK and file.read_text() == CHANGED
    assert out.count("Apply 1 hunk to") == 2 and "Say y or n." in out


FIRST = SOURCE.replace("Sums.", "Sums of numbers.")
TWICE = FIRST.replace("high - low", "abs(high - low)")
"""A reply with two hunks; FIRST is the file with the first one."""


def test_what_is_left_undecided_is_gone_on_with_in_the_same_session(file: Path) -> None:
    code, out, _ = session(ScriptedClient(fenced(TWICE)), file, "Do.\ny\nq\nn\nl\ny\ny\n\n")
    assert code == ExitCode.OK
    assert "What is left is kept" in out and "l goes on with what was left" in out
    assert file.read_text() == TWICE
    assert not left_sessions().sessions


def test_what_is_left_undecided_is_gone_on_with_at_the_next_start(file: Path) -> None:
    session(ScriptedClient(fenced(TWICE)), file, "Do.\ny\nq\nn\n")
    assert file.read_text() == SOURCE and len(left_sessions().sessions) == 1
    code, out, _ = session(ScriptedClient(unending()), file, "l\ny\ny\n")
    assert code == ExitCode.OK
    assert "Something was left undecided: Do." in out and "Hunk 2 of 2, 1 undecided" in out
    assert file.read_text() == TWICE
    assert not left_sessions().sessions


def test_what_is_left_after_an_apply_is_kept_for_the_file_as_it_is_then(file: Path) -> None:
    session(ScriptedClient(fenced(TWICE)), file, "Do.\ny\nq\ny\n")
    assert file.read_text() == FIRST and len(left_sessions().sessions) == 1
    session(ScriptedClient(unending()), file, "l\ny\ny\n")
    assert file.read_text() == TWICE and not left_sessions().sessions


def test_what_no_longer_fits_the_file_is_said_and_kept_until_it_is_thrown_away(file: Path) -> None:
    session(ScriptedClient(fenced(CHANGED)), file, "Do.\nq\n")
    file.write_text(SOURCE.replace("return 0", "return None"))
    _, out, _ = session(ScriptedClient(unending()), file, "l\nn\n")
    assert out.count("1 hunk does not fit it now") == 2 and len(left_sessions().sessions) == 1
    file.write_text(SOURCE)
    _, out, _ = session(ScriptedClient(unending()), file, "l\nq\n")  # it fits again
    assert "Hunk 1 of 1, 1 undecided" in out
    file.write_text(SOURCE.replace("return 0", "return None"))
    _, out, _ = session(ScriptedClient(unending()), file, "l\ny\n")
    assert "l goes on" not in out.splitlines()[-1] and not left_sessions().sessions


def test_an_older_turn_is_not_dropped_by_a_newer_one_that_is_applied(file: Path) -> None:
    replies = iter([TWICE, SOURCE.replace("return 0\n", "return 0.0\n")])
    client = ScriptedClient(lambda request: fenced(next(replies))(request))
    _, out, _ = session(client, file, "One.\nq\nTwo.\na\ny\n")
    assert "return 0.0" in file.read_text() and "What is left is kept" in out.rpartition("Apply 1 hunk")[2]
    _, out, _ = session(ScriptedClient(unending()), file, "l\na\ny\n")
    assert "Something was left undecided: One." in out and "Hunk 1 of 2, 2 undecided" in out
    assert file.read_text() == TWICE.replace("return 0\n", "return 0.0\n") and not left_sessions().sessions


def test_where_several_turns_wait_the_user_says_which_is_gone_on_with(file: Path) -> None:
    replies = iter([FIRST, SOURCE.replace("return 0\n", "return 0.0\n")])
    client = ScriptedClient(lambda request: fenced(next(replies))(request))
    _, out, _ = session(client, file, "One.\nq\nTwo.\nq\nl\n7\nl\n1\ny\ny\nl\nn\n")
    assert "1: One. (1 hunk is left)" in out and "2: Two. (1 hunk is left)" in out and "Say one of 1, 2." in out
    assert file.read_text() == FIRST and not left_sessions().sessions


def test_a_failed_instruction_drops_nothing_of_an_older_turn(file: Path) -> None:
    replies = iter([fenced(FIRST), unending()])
    session(ScriptedClient(lambda request: next(replies)(request)), file, "One.\nq\nTwo.\nn\n")
    _, out, _ = session(ScriptedClient(unending()), file, "l\ny\ny\n")
    assert "Something was left undecided: One." in out and file.read_text() == FIRST


def test_an_interrupt_in_the_review_loses_no_proposal(file: Path) -> None:
    class Interrupted(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            line = super().readline(-1)
            if line == b"^C\n":
                raise KeyboardInterrupt
            return line

    client = ScriptedClient(fenced(CHANGED))
    out = io.StringIO()
    streams = Streams(Interrupted(b"Do.\n^C\nl\ny\ny\n"), out, io.BytesIO(), io.StringIO(), False)
    plain_session(PlainOptions(str(file)), cast(EngineClient, client), streams)
    assert file.read_text() == CHANGED


def test_a_session_of_another_file_is_left_alone(file: Path) -> None:
    session(ScriptedClient(fenced(CHANGED)), file, "Do.\nq\n")
    other = file.with_name("other.py")
    other.write_text(SOURCE)
    _, out, _ = session(ScriptedClient(unending()), other, "")
    assert "left undecided" not in out and len(left_sessions().sessions) == 1


def test_a_letter_is_an_instruction_where_nothing_is_left(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))
    session(client, file, "l\ny\ny\n")
    assert file.read_text() == CHANGED and "l" in client.requests[0].messages[-1].content
