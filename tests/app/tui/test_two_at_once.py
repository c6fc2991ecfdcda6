"""Another redraft applies to the same file meanwhile: what both wrote stays, and each apply is taken back by itself."""

from pathlib import Path

from app.editing.apply import apply_hunks
from app.editing.diff import make_hunks
from app.editing.document import open_document
from app.editing.journal import Journal
from app.editing.result import make_result
from app.paths import journal_dir
from app.tui.screens.hunk_editor import HunkEditor
from tests.support.headless_edit import SOURCE
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.stepped_client import SteppedClient
from tests.support.tui import Session, drive

FLOAT = SOURCE.replace("return 0\n", "return 0.0\n")
THEIRS = SOURCE.replace('"""Sums."""', '"""Sums of all."""')
BOTH = THEIRS.replace("return 0\n", "return 0.0\n")


def other_applies(file: Path, new: str) -> None:
    """As the other's apply does."""
    document = open_document(file)
    apply_hunks(document, make_hunks(make_result(document, new)), Journal(journal_dir()), note="theirs")


def test_while_the_reply_streams(file: Path) -> None:
    client = SteppedClient(fenced(FLOAT))

    async def steps(session: Session) -> None:
        await session.type("Do.")
        await session.pilot.press("enter")
        client.more.put_nowait(20)
        await session.until(lambda: session.workspace.status.figures.passes > 0)
        other_applies(file, THEIRS)
        await session.workspace.look_again()
        await session.pilot.pause()
        assert "Press f8 to read it again" in session.shown()
        client.more.put_nowait(100_000)
        await session.settle()
        await session.press("y", "ctrl+s")
        assert file.read_text() == BOTH and "hunks were carried over" in session.said()[-1]
        await session.press("f10")
        assert file.read_text() == THEIRS
        await session.press("f10")
        assert file.read_text() == SOURCE
        await session.press("f10")
        assert "There is no applied edit" in session.said()[-1]
        assert len(session.last_turn().left) == 1

    drive(client, steps, file=file)


def test_while_a_hunk_is_edited(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.press("e", "end", "X")
        other_applies(file, THEIRS)
        await session.look()
        await session.press("f8")
        assert isinstance(session.app.screen, HunkEditor)  # what is typed there is not read over
        await session.press("ctrl+s")
        assert file.read_text() == THEIRS
        edited = session.last_turn().review
        assert edited is not None and any("X" in line.text for hunk in edited.accepted for line in hunk.lines)
        await session.press("f8", "ctrl+s")
        text = file.read_text()
        assert '"""Sums of all."""' in text and "X\n" in text and "return 0.0" in text

    drive(ScriptedClient(fenced(FLOAT)), steps, file=file)


def test_after_our_own_apply_theirs_is_taken_back_first(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.press("y", "ctrl+s")
        assert file.read_text() == FLOAT
        other_applies(file, BOTH)
        await session.press("f10")
        assert file.read_text() == FLOAT
        await session.press("f10")
        assert file.read_text() == SOURCE and len(session.last_turn().left) == 1

    drive(ScriptedClient(fenced(FLOAT)), steps, file=file)
