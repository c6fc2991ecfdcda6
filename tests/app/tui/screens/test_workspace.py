"""An edit in the workspace, from opening a file to its review and the turns after it."""

import asyncio
import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from textual import events

from app.editing.region import Region
from app.recall import load_recall
from app.tui.messages import ContinueReply, RedoHunk
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from app.tui.widgets.source_view import SourceView
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.scripted_client import ScriptedClient, endless, fenced, tokens_of
from tests.support.tui import NARROW, Session, drive


def test_a_file_is_shown_read_and_counted_before_anything_is_asked(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        shown = session.shown()
        assert "def total(items):" in shown and "20 lines, utf-8, lf" in shown
        assert [request.max_tokens for request in client.requests] == [0]
        assert "ready" in shown and "file: about" in shown and "exact" in shown
        assert session.focused() == "instruction"

    drive(client, steps, file=file)


def test_an_edit_ends_in_its_review_and_writes_nothing(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        await session.ask("Return a float.")
        turns = session.workspace.turns
        assert turns is not None and turns.current is not None and turns.current.proposal is not None
        assert turns.current.instruction == "Return a float."
        assert len(turns.current.proposal.hunks) == 1
        shown = session.shown()
        assert "return 0.0" in shown and "0 of 1 decided" in shown and "review" in shown
        assert session.focused() == "diff"
        assert session.workspace.query_one(SourceView).acceptance

    drive(client, steps, file=file)
    assert file.read_text() == SOURCE
    assert client.open_calls == 0


def test_a_selection_is_the_region_of_the_edit(file: Path) -> None:
    changed = SOURCE.splitlines(keepends=True)[10:14]
    changed[2] = "        return 0.0\n"
    client = ScriptedClient(lambda request: tokens_of("".join(changed) + "\n\n" + request.anchor[0] + "\n"))

    async def steps(session: Session) -> None:
        session.workspace.show_pane("source")
        await session.press(*["down"] * 11, "s")
        assert session.workspace.query_one(SourceView).selected_lines == Region(11, 14)
        assert "lines 11-14: about" in session.shown()
        await session.ask("Return a float.")
        last = session.last_turn()
        assert last.region == Region(11, 14) and last.proposal is not None
        assert last.proposal.result.data.decode() == CHANGED

    drive(client, steps, file=file)


def test_the_forecast_follows_what_is_typed(file: Path) -> None:
    async def steps(session: Session) -> None:
        before = session.workspace.status.forecast
        assert before.startswith("file: about ")
        await session.type("x" * 12)
        await session.settle()
        assert session.workspace.status.forecast.startswith("file: about ")

    drive(ScriptedClient(""), steps, file=file)


@pytest.mark.parametrize("instruction", ["", "   "])
def test_an_empty_instruction_runs_nothing(file: Path, instruction: str) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        await session.ask(instruction)
        assert session.said() == ["The instruction is empty; say what to change."]
        assert len(client.requests) == 1  # the reading ahead

    drive(client, steps, file=file)


def test_without_a_file_there_is_nothing_to_run(tmp_path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        assert session.said() == ["Open a file first."]
        await session.press("f5", "f8", "escape")

    drive(ScriptedClient(""), steps)


def test_a_cut_reply_goes_on(file: Path) -> None:
    replies = iter([fenced(CHANGED), fenced(CHANGED[len(SOURCE) // 2 :])])
    looked = asyncio.Event()
    client = ScriptedClient(lambda request: next(replies)(request), at_token={60: looked.wait})

    async def steps(session: Session) -> None:
        session.workspace.post_message(ContinueReply())
        await session.settle()
        assert session.said()[-1] == "There is no reply that ended too early."
        await session.type("Do.")
        await session.pilot.press("enter")
        await session.until(lambda: session.workspace.status.figures.passes > 40)
        await session.pilot.press("escape")
        looked.set()
        await session.settle()
        carried = client.requests[-1].prefill
        client.at_token.clear()
        client.reply = lambda request: tokens_of(CHANGED[len(request.prefill.partition("\n")[2]) :] + request.stop_line)
        session.workspace.post_message(ContinueReply())
        await session.settle()
        assert len(client.requests[-1].prefill) > len(carried)
        last = session.last_turn()
        assert last.number == 1 and last.failure is None and last.proposal is not None
        assert last.proposal.result.data.decode() == CHANGED

    drive(client, steps, file=file)


def test_a_hunk_is_done_anew_with_a_note(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        hunk = session.last_turn().review.hunks[0]  # type: ignore[union-attr]
        client.reply = lambda request: tokens_of("        return None\n" + request.anchor[0] + "\n")
        session.workspace.post_message(RedoHunk(1, hunk, "return None"))
        await session.settle()
        review = session.last_turn().review
        assert review is not None and len(review.hunks) == 1
        assert [line.text for line in review.hunks[0].lines if line.kind == "+"] == ["        return None"]
        client.reply = endless("spam ")
        session.workspace.post_message(RedoHunk(1, review.hunks[0], "again"))
        await session.settle()
        assert session.last_turn().review == review and session.last_turn().failure is None

    drive(client, steps, file=file)


def test_turns_work_on_the_base_that_is_chosen(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        await session.ask("One.")
        await session.accept_all()
        session.workspace.switch_base(1)
        await session.settle()
        assert "as turn 1 left it" in session.shown()
        client.reply = fenced(CHANGED.replace("high - low", "low - high"))
        await session.ask("x Two.")
        last = session.last_turn()
        assert last.based_on == 1 and last.base.data.decode() == CHANGED
        await session.accept_all()
        await session.press("ctrl+s")
        assert file.read_text() == CHANGED.replace("high - low", "low - high")

    drive(client, steps, file=file)


def test_what_was_accepted_is_part_of_the_next_turn_and_applied_with_it(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        await session.ask("One.")
        await session.accept_all()
        client.reply = fenced(CHANGED.replace("high - low", "low - high"))
        await session.ask(" Two.")
        assert session.said()[-1] == "This works on what you accepted of turn 1."
        assert session.last_turn().based_on == 1 and session.last_turn().base.data.decode() == CHANGED
        await session.accept_all()
        await session.press("ctrl+s")
        assert file.read_text() == CHANGED.replace("high - low", "low - high")
        await session.ask("Three.")
        assert session.last_turn().based_on == 0

    drive(client, steps, file=file)


def test_panes_take_turns_where_there_is_room_for_one(file: Path) -> None:
    async def steps(session: Session) -> None:
        source, diff = session.workspace.query_one(SourceView), session.workspace.query_one(DiffView)
        assert source.region.width and not diff.region.width
        await session.ask("Do.")
        assert diff.region.width and not source.region.width
        await session.press("f6")
        assert session.focused() == "instruction" and diff.region.width
        await session.press("f6")
        assert session.focused() == "source" and source.region.width and not diff.region.width

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file, size=NARROW)


def test_older_instructions_come_back_and_the_draft_is_kept(file: Path) -> None:
    async def steps(session: Session) -> None:
        box = session.workspace.query_one(InstructionBox)
        await session.ask("One.")
        box.put("")
        await session.ask("Two.")
        assert load_recall().instructions == ("Two.", "One.")
        box.put("")
        await session.type("draft")
        await session.pilot.press("ctrl+up")
        assert box.text == "Two."
        await session.pilot.press("ctrl+up", "ctrl+up")
        assert box.text == "One."
        await session.pilot.press("ctrl+down", "ctrl+down")
        assert box.text == "draft"

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)


def test_a_new_line_is_no_run(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.type("a\nb")
        assert session.workspace.query_one(InstructionBox).text == "a\nb"
        assert not session.workspace.at_work

    drive(ScriptedClient(""), steps, file=file)


def test_the_instruction_may_be_written_in_an_editor(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s, said the editor\\n" "$(cat "$1")" > "$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o700)

    async def steps(session: Session) -> None:
        monkeypatch.setattr(type(session.app), "suspend", lambda self: nullcontext())
        box = session.workspace.query_one(InstructionBox)
        await session.type("Do")
        monkeypatch.setenv("EDITOR", os.fspath(editor))
        await session.press("f4")
        assert box.text == "Do, said the editor"
        monkeypatch.setenv("EDITOR", "false")
        await session.press("f4")
        assert box.text == "Do, said the editor" and "ended with" in session.said()[-1]
        monkeypatch.undo()
        await session.press("f4")
        assert session.said()[-1] == "This terminal cannot be handed to an editor."

    monkeypatch.delenv("VISUAL", raising=False)
    drive(ScriptedClient(""), steps, file=file)


@pytest.mark.parametrize(
    "line",
    [
        "x = '[bold red]not markup[/] [@click=app.quit]no link[/]'",
        "y = '\x1b[2J\x1b]0;title\x07 \x9b31m'",
        "z = '日本語 é\u0301 👍🏽 \u200b\u202e'",
        "\tw = 1\t# tab",
    ],
    ids=["markup", "escapes", "wide", "tabs"],
)
def test_text_of_file_and_reply_is_shown_as_text(file: Path, line: str) -> None:
    source = f"{line}\n{SOURCE}"
    file.write_text(source, newline="")

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        assert session.last_turn().proposal is not None, session.said()
        shown = session.shown()
        assert all(char.isprintable() or char == "\n" for char in shown)
        assert "not markup[/]" in shown or "not markup" not in line
        assert "\\x1b[2J" in shown or "\x1b" not in line

    drive(ScriptedClient(fenced(f"{line} {line}\n{CHANGED}")), steps, file=file)
    assert file.read_text() == source


def test_what_the_engine_says_of_itself_is_shown(file: Path) -> None:
    async def steps(session: Session) -> None:
        session.workspace.show_status(engine=None)
        session.app.engine_note("Loading the model.")
        await session.settle()
        assert "Loading the model" in session.shown()
        session.workspace.engine_replaced()
        await session.settle()
        session.app.engine_note("The engine's process stopped: signal 9. It was started again.")
        await session.settle()
        assert session.said() == ["The engine's process stopped: signal 9. It was started again."]

    drive(ScriptedClient(""), steps, file=file)


def test_another_model_is_another_engine(file: Path) -> None:
    first, second = ScriptedClient(fenced(CHANGED)), ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        session.app.use_model("other")
        await session.settle()
        assert first.closed and not second.closed
        await session.ask("Do.")
        assert session.last_turn().proposal is not None and len(second.requests) == 2

    drive(first, steps, file=file, clients=[second])
    assert second.closed


def test_enter_does_not_overtake_what_was_typed_before_it(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        for key, char in [*((char, char) for char in "Fast!"), ("enter", "\r")]:
            session.app.post_message(events.Key(key, char))  # as they come from a terminal: no wait between them
        await session.until(lambda: len(client.requests) == 2)
        await session.settle()
        assert session.last_turn().instruction == "Fast!"

    drive(client, steps, file=file)


def test_an_edit_that_is_ready_does_not_take_the_keys_of_the_next_instruction(file: Path) -> None:
    looked = asyncio.Event()
    client = ScriptedClient(fenced(CHANGED), at_token={20: looked.wait})

    async def steps(session: Session) -> None:
        await session.type("Do.")
        await session.pilot.press("enter")
        await session.until(lambda: session.workspace.status.figures.passes > 0)
        await session.type(" And")
        looked.set()
        await session.settle()
        assert session.focused() == "instruction" and "f6 leads to its pane" in session.said()[-1]
        await session.press("a", "d", "d")
        assert session.workspace.query_one(InstructionBox).text == "Do. Andadd"
        assert session.last_turn().review is not None and session.last_turn().review.undecided == 1  # type: ignore[union-attr]

    drive(client, steps, file=file)
