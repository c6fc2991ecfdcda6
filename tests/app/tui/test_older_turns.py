"""Work of an older turn that was not decided: no newer turn drops it, and the list of turns leads back to it."""

from pathlib import Path

import pytest
from textual.widgets._toast import Toast

from app.editing.review import Decision
from app.editing.session_store import left_sessions
from app.tui.screens.question import Question
from app.tui.screens.quit_dialog import QuitDialog
from app.tui.screens.resume_offer import ResumeOffer
from app.tui.screens.turns import TurnsScreen
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from tests.support.headless_edit import SOURCE
from tests.support.scripted_client import ScriptedClient, endless, fenced
from tests.support.tui import Session, drive

FLOAT = SOURCE.replace("return 0\n", "return 0.0\n")
ABSOLUTE = SOURCE.replace("high - low", "abs(high - low)")
BOTH = FLOAT.replace("high - low", "abs(high - low)")


async def leave_one_and_apply_another(session: Session) -> None:
    """Turn 1 is not decided, turn 2 is accepted and written."""
    await session.ask("One.")
    session.client.reply = fenced(ABSOLUTE)
    await session.ask(" Two.")
    assert session.said()[-1] == "1 hunk is left undecided in turn 1; f7 leads there."
    await session.accept_all()
    await session.press("ctrl+s")


def client() -> ScriptedClient:
    return ScriptedClient(fenced(FLOAT))


def test_an_older_turn_is_reached_and_applied_after_a_newer_one(file: Path) -> None:
    async def steps(session: Session) -> None:
        await leave_one_and_apply_another(session)
        assert file.read_text() == ABSOLUTE
        assert session.workspace.elsewhere() == " 1 hunk is left in turn 1; f7 leads there."
        assert "f7 leads there." in session.shown()
        assert session.workspace.status.state == "ready" and session.focused() == "instruction"
        await session.press("f7")
        assert isinstance(session.app.screen, TurnsScreen)
        await session.press("home", "down", "v")
        assert session.last_turn().number == 1 and session.workspace.query_one(DiffView).has_focus
        assert session.workspace.status.state == "review" and session.workspace.status.decided == (0, 1)
        await session.press("y", "ctrl+s")
        assert file.read_text() == BOTH
        await session.press("f10")
        assert file.read_text() == ABSOLUTE
        await session.press("f10")
        assert file.read_text() == SOURCE and session.workspace.turns is not None
        assert [turn.number for turn in session.workspace.turns.waiting] == [1, 2]

    drive(client(), steps, file=file)


@pytest.mark.parametrize("agreed", [False, True])
def test_an_older_result_as_the_base_undoes_newer_changes_only_after_a_yes(file: Path, agreed: bool) -> None:
    async def steps(session: Session) -> None:
        await session.ask("One.")
        await session.press("y", "ctrl+s")
        session.client.reply = fenced(BOTH)
        await session.ask("Two.")
        await session.press("y", "ctrl+s")
        assert file.read_text() == BOTH
        await session.press("f7", "home", "down", "enter")
        assert "lacks 1 newer change of the file" in session.said()[-1]
        third = FLOAT.replace('"""Sums."""', '"""Sums of all kinds."""')
        session.client.reply = fenced(third)
        await session.ask("Three.")
        await session.press("y", "ctrl+s")
        assert isinstance(session.app.screen, Question) and "undo 1 newer change" in session.app.screen.sentence
        assert file.read_text() == BOTH
        await session.press("y" if agreed else "escape")
        assert file.read_text() == (third if agreed else BOTH)
        if agreed:
            await session.press("f10")
            assert file.read_text() == BOTH

    drive(client(), steps, file=file)


def test_the_same_lines_may_change_when_it_is_asked_again_of_a_file_that_has_moved(file: Path) -> None:
    async def steps(session: Session) -> None:
        session.workspace.show_pane("source")
        await session.press(*["down"] * 3, "s")
        await session.ask("One.")
        assert session.client.requests[-1].source_line == 4
        file.write_text(f"import sys\n\n{SOURCE}")
        await session.look()
        await session.press("f8", "f5")
        assert session.client.requests[-1].source_line == 6
        await session.press("f7", "home", "down", "r")
        assert session.client.requests[-1].source_line == 6

    drive(client(), steps, file=file)


def test_it_is_kept_at_the_end_and_offered_at_the_next_start(file: Path) -> None:
    async def first(session: Session) -> None:
        await leave_one_and_apply_another(session)
        await session.press("ctrl+q")
        assert isinstance(session.app.screen, QuitDialog)
        assert "1 hunk is undecided" in " ".join(session.shown().split())
        await session.press("k")

    async def second(session: Session) -> None:
        assert isinstance(session.app.screen, ResumeOffer)
        await session.press("enter")
        assert session.last_turn().instruction == "One."
        await session.press("y", "ctrl+s")

    drive(client(), first, file=file)
    drive(client(), second, file=file)
    assert file.read_text() == BOTH and not left_sessions().sessions


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_newer_turn_that_fails_drops_nothing(file: Path, cancelled: bool) -> None:
    async def steps(session: Session) -> None:
        await session.ask("One.")
        if cancelled:
            session.client.at_token = {5: session.workspace.action_cancel}
        else:
            session.client.reply = endless("spam ")
        await session.ask(" Two.")
        assert session.last_turn().failure is not None
        session.workspace._keeper.close()  # as if the program had been killed
        (left,) = left_sessions().sessions
        assert [turn.instruction for turn in left.session.turns] == ["One.", "One. Two."]
        session.client.at_token = {}
        session.workspace.review_turn(1)
        await session.settle()
        await session.press("y", "ctrl+s")
        assert file.read_text() == FLOAT

    drive(client(), steps, file=file)


def test_a_newer_turn_whose_hunks_are_all_rejected_drops_nothing(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("One.")
        await session.accept_all()  # and not applied
        session.client.reply = fenced(BOTH)
        await session.ask(" Two.")
        await session.decide(1, Decision.REJECTED)
        assert len(left_sessions().sessions) == 0  # ours is locked
        session.workspace._keeper.close()
        assert len(left_sessions().sessions) == 1
        session.workspace.review_turn(1)
        await session.settle()
        await session.press("ctrl+s")
        assert file.read_text() == FLOAT

    drive(client(), steps, file=file)


def test_what_does_not_fit_the_file_any_more_is_shown_exported_and_thrown_away_by_its_own_keys(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("One.")
        theirs = SOURCE.replace("return 0\n", "return None\n")
        file.write_text(theirs)
        session.client.reply = fenced(ABSOLUTE)
        await session.press("f8")
        assert "1 hunk does not fit it now. f7 leads there" in session.said()[-1]
        await session.press("f7")
        assert "1 undecided, 1 stale" in session.shown()
        await session.press("end", "v")
        assert session.said()[-1].startswith("The file has changed; 1 hunk does not fit it now.")
        await session.press("f7", "end", "ctrl+x")
        assert session.said()[-1].startswith("Written to ")
        file.write_text(SOURCE)
        await session.press("f8", "f7", "end", "v")
        assert session.last_turn().left and session.workspace.status.decided == (0, 1)
        file.write_text(theirs)
        await session.press("f8", "f7", "end", "delete")
        assert session.said()[-1] == "Nothing of turn 3 is left to decide."
        await session.press("f7", "end", "v", "ctrl+q")  # and so nothing keeps it from ending
        assert session.client.closed

    drive(client(), steps, file=file)
    assert b"+        return 0.0" in (file.parent / "sums.py.patch").read_bytes()
    assert not left_sessions().sessions


def test_what_was_asked_after_an_apply_stays_when_that_is_taken_back(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("One.")
        await session.accept_all()
        await session.press("ctrl+s")
        session.client.reply = fenced(BOTH)
        await session.ask("Two.")
        await session.press("f10")
        assert file.read_text() == SOURCE and session.last_turn().number == 1
        await session.press("f7", "end", "v", "y", "ctrl+s")
        assert file.read_text() == ABSOLUTE

    drive(client(), steps, file=file)


def test_nothing_is_changed_while_the_model_is_at_work(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("One.")
        before = session.workspace.turns
        session.workspace.at_work = True
        session.workspace.review_turn(1)
        session.workspace.throw_away(1)
        await session.settle()
        assert session.workspace.turns is before and "escape stops it" in session.said()[-1]
        session.workspace.at_work = False

    drive(client(), steps, file=file)


def test_what_is_said_does_not_cover_what_is_typed(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("One.")
        await session.ask(" Two.")
        assert session.said()[-1] == "1 hunk is left undecided in turn 1; f7 leads there."
        box = session.app.screen.query_one(InstructionBox)
        for lines in (1, 8):
            box.put("\n".join("say it" for _ in range(lines)))
            await session.pilot.pause()
            toasts = list(session.app.screen.query(Toast))
            assert toasts and not any(toast.region.overlaps(box.region) for toast in toasts)

    drive(client(), steps, file=file)


def test_what_is_said_is_on_the_screen_once_also_under_a_dialog(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("f7")
        assert session.shown().count("There is no turn yet.") == 1
        await session.press("f1")
        assert session.shown().count("There is no turn yet.") == 1
        await session.press("escape")
        assert session.shown().count("There is no turn yet.") == 1

    drive(client(), steps, file=file)


def test_what_is_said_hides_only_what_is_under_its_words(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("f1", "escape", "f7")
        said = next(line for line in session.shown().splitlines() if "There is no turn yet." in line)
        assert said.startswith("│"), "the pane beside it goes on"

    drive(client(), steps, file=file)
