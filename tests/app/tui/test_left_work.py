"""Quitting with work undecided, and coming back to it: offered once, gone on with, thrown away or left."""

from pathlib import Path

from textual.events import Key

from app.editing.session_store import SessionKeeper, left_sessions
from app.paths import sessions_dir
from app.tui.screens.quit_dialog import QuitDialog
from app.tui.screens.resume_offer import ResumeOffer
from app.tui.screens.workspace import WorkspaceScreen
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session, drive

OTHER = CHANGED.replace("max(items)", "max(items, default=0)")


def client() -> ScriptedClient:
    return ScriptedClient(fenced(CHANGED))


def test_quit_with_nothing_undecided_just_leaves(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("ctrl+q")
        assert session.client.closed

    drive(client(), steps, file=file)
    assert not left_sessions().sessions


def leave(file: Path, *keys: str) -> None:
    """Ask for an edit, decide what `keys` decide, and press ctrl+q."""

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        session.workspace.query_one(DiffView).focus()
        await session.press(*keys, "ctrl+q")
        assert isinstance(session.app.screen, QuitDialog)
        assert "1 hunk is" in " ".join(session.shown().split())
        await session.press("ctrl+q")

    drive(client(), steps, file=file)


def test_what_is_undecided_is_offered_at_the_next_start_and_goes_on(file: Path) -> None:
    leave(file, "y")
    assert file.read_text() == SOURCE

    async def steps(session: Session) -> None:
        assert isinstance(session.app.screen, ResumeOffer)
        assert "is as it was" in " ".join(session.shown().split())
        await session.press("enter")
        turns = session.workspace.turns
        assert turns is not None and turns.current is not None and turns.current.review is not None
        assert turns.current.review.data().decode() == CHANGED
        assert session.workspace.query_one(DiffView).has_focus
        await session.press("ctrl+s")

    drive(client(), steps, file=file)
    assert file.read_text() == CHANGED
    assert not left_sessions().sessions


def test_what_was_left_can_be_thrown_away_exported_or_left_for_later(file: Path) -> None:
    leave(file)

    async def export(session: Session) -> None:
        await session.press("ctrl+x")
        assert "Written to" in session.said()[-1]

    async def later(session: Session) -> None:
        await session.press("escape")

    async def discard(session: Session) -> None:
        await session.press("delete")

    for steps in (export, later):
        drive(client(), steps, file=file)
        assert len(left_sessions().sessions) == 1
    assert (file.parent / "sums.py.patch").read_bytes().count(b"\n+") >= 1
    drive(client(), discard, file=file)
    assert not left_sessions().sessions and file.read_text() == SOURCE


def test_throwing_away_at_quit_leaves_nothing(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.press("ctrl+q", "d")

    drive(client(), steps, file=file)
    assert not left_sessions().sessions


def test_staying_stays(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.press("ctrl+q", "escape")
        assert isinstance(session.app.screen, WorkspaceScreen) and not session.client.closed

    drive(client(), steps, file=file)


def test_whoever_types_already_is_not_interrupted(file: Path) -> None:
    leave(file)

    async def steps(session: Session) -> None:
        await session.press("escape")
        await session.type("Do")
        session.app.offer_left(str(file))
        await session.settle()
        assert isinstance(session.app.screen, WorkspaceScreen) and "f11 offers it" in session.said()[-1]
        await session.press("f11")
        assert isinstance(session.app.screen, ResumeOffer)
        await session.press("escape")
        assert session.workspace.query_one(InstructionBox).text == "Do"

    drive(client(), steps, file=file)


def test_what_is_typed_over_the_offer_goes_to_the_instruction(file: Path) -> None:
    leave(file)

    async def steps(session: Session) -> None:
        assert isinstance(session.app.screen, ResumeOffer)
        for key, character in zip(["d", "o", "space", "x"], "do x", strict=True):
            session.app.post_message(Key(key, character))  # faster than the offer closes
        await session.settle()
        assert isinstance(session.app.screen, WorkspaceScreen) and session.focused() == "instruction"
        assert session.workspace.query_one(InstructionBox).text == "do x"
        assert "f11 offers it" in session.said()[-1]

    drive(client(), steps, file=file)
    assert len(left_sessions().sessions) == 1


def test_a_left_session_does_not_come_into_a_run(file: Path) -> None:
    leave(file)

    async def steps(session: Session) -> None:
        await session.press("escape")
        before = session.workspace.turns
        session.workspace.at_work = True
        await session.press("f11", "enter")
        assert session.workspace.turns is before and "escape stops it" in session.said()[-1]
        session.workspace.at_work = False

    drive(client(), steps, file=file)
    assert len(left_sessions().sessions) == 1


def test_a_session_of_another_file_is_not_offered_with_a_file_and_is_without(file: Path) -> None:
    leave(file)
    (file.parent / "other.py").write_text("x = 1\n")

    async def other(session: Session) -> None:
        assert isinstance(session.app.screen, WorkspaceScreen)

    async def none(session: Session) -> None:
        assert isinstance(session.app.screen, ResumeOffer)

    drive(client(), other, file=file.parent / "other.py")
    drive(client(), none)


def test_a_file_that_is_gone_is_said_and_its_changes_can_be_looked_at(file: Path) -> None:
    leave(file)
    file.unlink()

    async def steps(session: Session) -> None:
        assert "is gone" in " ".join(session.shown().split())
        await session.press("enter")
        turns = session.workspace.turns
        assert turns is not None and turns.current is not None and turns.current.review is not None

    drive(client(), steps)


def test_a_damaged_session_is_said_and_one_taken_meanwhile_too(file: Path) -> None:
    leave(file)
    (path,) = sessions_dir().glob("*.json")
    whole = path.read_bytes()

    async def taken(session: Session) -> None:
        keeper = SessionKeeper(path.stem)
        assert keeper.take_over()
        await session.press("enter")
        assert "opened that session meanwhile" in session.said()[-1]
        keeper.close()

    drive(client(), taken, file=file)
    path.write_bytes(whole[:-9])

    async def damaged(session: Session) -> None:
        assert any("damaged" in said for said in session.said())

    drive(client(), damaged, file=file)
