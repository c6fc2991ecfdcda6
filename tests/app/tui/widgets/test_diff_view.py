"""The review in the right pane: what its keys decide and do, with a scripted engine."""

from pathlib import Path

import pytest

from app.editing.review import Decision
from app.errors import InterruptedByUserError
from app.tui.actions import ACTIONS, Place
from app.tui.screens.hunk_editor import HunkEditor, can_edit_in_place
from app.tui.widgets.diff_view import DiffView
from tests.support.reviewed import LINES, NEW, SOURCE, review, reviewed, view
from tests.support.scripted_client import ScriptedClient, fenced, tokens_of
from tests.support.tui import Session, drive

A, R, U = Decision.ACCEPTED, Decision.REJECTED, Decision.UNDECIDED


def test_every_action_of_the_pane_has_its_method() -> None:
    names = [action.id for action in ACTIONS if action.place is Place.DIFF]
    assert len(names) > 30
    assert [name for name in names if not hasattr(DiffView, f"action_{name}")] == []


def test_deciding_goes_to_the_next_undecided_hunk(path: Path) -> None:
    async def steps(session: Session) -> None:
        assert review(session).decisions == (U, U, U)
        await session.press("y")
        assert (review(session).decisions, view(session).current_hunk()) == ((A, U, U), 2)
        await session.press("n")
        assert (review(session).decisions, view(session).current_hunk()) == ((A, R, U), 3)
        assert "1 undecided" in session.shown() and "2 of 3 decided" in session.shown()
        await session.press("u")
        assert review(session).decisions == (A, U, U)
        await session.press("ctrl+r")
        assert review(session).decisions == (A, R, U)
        await session.press("u", "u", "u")
        assert review(session).decisions == (U, U, U)
        await session.press("a")
        assert review(session).decisions == (A, A, A)
        await session.press("u", "d")
        assert review(session).decisions == (R, R, R)
        await session.press("space")
        assert review(session).decisions.count(A) == 1

    reviewed(path, steps)
    assert path.read_text() == SOURCE


def test_moving_among_lines_and_hunks(path: Path) -> None:
    async def steps(session: Session) -> None:
        diff = view(session)
        await session.press("right_square_bracket")
        assert diff.current_hunk() == 2
        await session.press("j", "j")
        assert diff.row is not None and diff.row.kind == " "
        await session.press("left_square_bracket")
        assert diff.row.hunk == 2 and diff.row.kind == "hunk"
        await session.press("left_square_bracket")
        assert diff.current_hunk() == 1
        await session.press("k", "home")
        assert diff.cursor == 0
        await session.press("end")
        assert diff.cursor == len(diff.rows) - 1
        await session.press("pageup", "pagedown", "g", "G", "up", "down")
        assert diff.cursor == len(diff.rows) - 1

    reviewed(path, steps)


def test_a_hunk_is_split_and_decided_in_parts(path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("s")
        assert len(review(session).hunks) == 4
        await session.press("y", "d")
        assert review(session).decisions == (A, R, R, R)
        await session.press("left_square_bracket", "home", "s")
        assert any("one change" in said for said in session.said())
        await session.press("ctrl+s")

    reviewed(path, steps)
    assert path.read_text() == SOURCE.replace("value_3 = 3\n", "three = 3\n")


def test_single_lines_are_chosen(path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("s", "right_square_bracket", "v")
        assert "choosing lines" in session.shown()
        row = view(session).row
        assert row is not None and (row.kind, row.text) == ("-", "value_6 = 6")
        await session.press("j", "j", "space")
        assert review(session).items[1].decision is A
        assert "□" in session.shown() and "accepted, 2 of 3 lines" in session.shown()
        await session.press("v", "d", "ctrl+s")

    reviewed(path, steps)
    assert path.read_text() == SOURCE.replace("value_6 = 6\n", "six = 6\n")


def test_a_hunk_is_edited_in_place(path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("right_square_bracket", "e")
        editor = session.app.screen
        assert isinstance(editor, HunkEditor)
        await session.press(*"own", "enter", "ctrl+s")
        assert review(session).items[1].decision is A
        await session.press("e", *"x", "escape")
        await session.press("d", "ctrl+s")

    reviewed(path, steps)
    expected = SOURCE.replace("value_30 = 30\n", "thirty = 30\n").replace("value_27 = 27\n", "own\nvalue_27 = 27\n")
    assert path.read_text() == expected


def test_lines_that_a_widget_would_break_are_for_the_editor(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_edit_in_place(["a\tb", "日本"])
    assert not can_edit_in_place(["a\x0cb"])
    assert not can_edit_in_place(["a\u2028b"])
    assert not can_edit_in_place(["a\rb"])
    given: list[str] = []

    async def steps(session: Session) -> None:
        def edit_outside(text: str, suffix: str) -> str:
            given.append(text + suffix)
            return text.replace("thirty = 30", "thirty = '\u2028'")

        monkeypatch.setattr(session.app, "edit_outside", edit_outside)
        await session.press("right_square_bracket", "E", "e")
        assert any("only $EDITOR" in said for said in session.said())
        await session.press("d", "ctrl+s")

    reviewed(path, steps)
    assert "thirty = 30" in given[0] and given[0].endswith(".py")
    assert path.read_text(encoding="utf-8") == SOURCE.replace("value_30 = 30", "thirty = '\u2028'")


def test_a_hunk_is_done_anew(path: Path) -> None:
    async def steps(session: Session) -> None:
        session.client.reply = lambda request: tokens_of("dreissig = 30\n" + request.anchor[0] + "\n")
        await session.press("right_square_bracket", "r", *"german", "enter")
        assert review(session).hunks[1].changes[0].added[0].text == "dreissig = 30"
        assert "german" in session.client.requests[-1].messages[-1].content
        await session.press("u")
        assert review(session).hunks[1].changes[0].added[0].text == "thirty = 30"

    reviewed(path, steps)


def test_a_reply_that_was_cut_cannot_be_decided_and_goes_on(path: Path) -> None:
    client = ScriptedClient(lambda request: (f"more_{number} = {number}\n" for number in range(9_999)))

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        assert "cut at the token limit" in session.shown()
        session.workspace.show_pane("diff")
        await session.press("y")
        assert any("no hunk to decide" in said for said in session.said())

        def reply(request: object) -> list[str]:
            return tokens_of("the_end = 1\n```\n")

        client.reply = reply
        await session.press("c")
        text = "".join(review(session).hunks[-1].spoken_lines())
        assert "+more_9 = 9" in text and "+the_end = 1" in text

    drive(client, steps, file=path)
    assert path.read_text() == SOURCE


def test_hunks_are_decided_while_the_rest_comes(path: Path) -> None:
    seen: list[tuple[int, str]] = []

    async def steps(session: Session) -> None:
        def look() -> None:
            diff = view(session)
            diff.advance()
            if diff.review is not None and diff.review.items:
                diff.action_accept()
                seen.append((len(diff.review.items), str(diff.border_subtitle)))

        session.client.at_token = {150: look}
        await session.ask("Do.")
        assert review(session).decisions == (A, U, U)
        await session.press("u")
        assert review(session).decisions == (U, U, U)

    client = ScriptedClient(fenced(NEW))
    drive(client, steps, file=path)
    assert seen == [(1, "1 of 1 so far, 0 undecided")]


def test_what_keys_say_does_not_pile_up_and_hides_nothing_else_that_was_said(path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("x", "m", "c", "v")
        written, *hints = session.said()
        assert "Written to" in written and hints == ["Choose lines with space; v when done."]

    reviewed(path, steps)


def test_a_patch_is_exported_and_copied(path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("n", "x", "o")
        assert any("Written to" in said for said in session.said())
        assert any("opied" in said for said in session.said())

    reviewed(path, steps)
    patch = (path.parent / "values.py.patch").read_text()
    assert "+thirty = 30" in patch and "+three = 3" not in patch


def test_applied_and_taken_back(path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("a", "ctrl+s")
        assert path.read_text() == NEW
        session.workspace.show_pane("diff")
        await session.press("U")

    reviewed(path, steps)
    assert path.read_text() == SOURCE


def test_a_warning_is_mended_with_its_key(path: Path) -> None:
    new = SOURCE.replace("value_30 = 30\n", "value_30 = 30 \n").replace("value_3 = 3\n", "three = 3\n")

    async def steps(session: Session) -> None:
        assert "white space only" in session.shown() and "m: take back" in session.shown()
        await session.press("m")
        assert review(session).decisions == (U, R)
        await session.press("m")
        assert any("No warning here" in said for said in session.said())
        await session.press("a", "ctrl+s")

    reviewed(path, steps, new)
    assert path.read_text() == SOURCE.replace("value_3 = 3\n", "three = 3\n")


def test_a_warning_goes_when_it_is_mended_and_comes_back_when_that_is_undone(path: Path) -> None:
    new = SOURCE.replace("".join(f"{line}\n" for line in LINES[10:15]), "ten = 10\n").replace("value_3 ", "three ")

    async def steps(session: Session) -> None:
        assert "are gone and nothing" in " ".join(session.shown().split())
        await session.press("m")
        assert review(session).undecided and "are gone and nothing" not in " ".join(session.shown().split())
        await session.press("u")
        assert "are gone and nothing" in " ".join(session.shown().split())

    reviewed(path, steps, new)


def test_what_a_blocking_check_is_about_is_decided_by_hand(path: Path) -> None:
    new = "".join(f"{line}\n" for line in [*LINES[:2], "changed = 1", *LINES[3:20], "# ... rest unchanged ..."])

    async def steps(session: Session) -> None:
        assert "Blocking: decide the hunk by hand" in session.shown()
        await session.press("a")
        assert review(session).decisions == (A, U)
        assert any("decide by hand" in said for said in session.said())
        await session.press("y")
        assert review(session).undecided == 0

    reviewed(path, steps, new)


def test_keys_say_so_where_there_is_nothing_to_decide(path: Path) -> None:
    async def steps(session: Session) -> None:
        session.workspace.show_pane("diff")
        for key in [*"ynsadvuemEPxor", "c", "space", "ctrl+r"]:
            session.app.clear_notifications()
            await session.press(key)
            assert len(session.said()) == 1, key
        await session.press(*"twWp", "enter", "right_square_bracket", "full_stop")

    drive(ScriptedClient(fenced(NEW)), steps, file=path)
    assert path.read_text() == SOURCE


def test_a_run_that_was_stopped_leaves_what_came_to_look_at(path: Path) -> None:
    async def steps(session: Session) -> None:
        session.client.at_token = {300: session.workspace.worker.cancel}
        await session.ask("Do.")
        assert "cancelled" in session.shown() and "three = 3" in session.shown()
        last = session.workspace.turns.current if session.workspace.turns is not None else None
        assert last is not None and last.review is None

    drive(ScriptedClient(fenced(NEW)), steps, file=path)
    assert InterruptedByUserError.exit_code == 130


def test_a_file_that_needs_no_change_leaves_one_sentence(path: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        shown = " ".join(session.shown().split())
        assert "No change needed" in shown and "choose a larger model (f2)" in shown
        assert [row.kind for row in view(session).rows] == ["said"]
        assert "⚠" not in shown

    drive(ScriptedClient(fenced(SOURCE)), steps, file=path, size=(100, 30))
