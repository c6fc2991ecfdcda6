"""An edit in the workspace, from opening a file to its review, with a scripted engine."""

from pathlib import Path

from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.source_view import SourceView
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session, drive


def test_a_file_is_shown_read_and_counted_before_anything_is_asked(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        shown = session.shown()
        assert "def total(items):" in shown and "20 lines, utf-8, lf" in shown
        assert [request.max_tokens for request in client.requests] == [0]
        assert "ready" in shown and "file: about" in shown and "exact" in shown
        assert session.workspace.focused is not None and session.workspace.focused.id == "instruction"

    drive(client, steps, file=file)


def test_an_edit_ends_in_its_review_and_writes_nothing(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        await session.ask("Return a float.")
        turns = session.workspace.turns
        assert turns is not None and turns.last is not None and turns.last.proposal is not None
        assert turns.last.instruction == "Return a float."
        assert len(turns.last.proposal.hunks) == 1
        shown = session.shown()
        assert "return 0.0" in shown and "0 of 1 decided" in shown and "review" in shown
        assert isinstance(session.workspace.focused, DiffView)
        assert session.workspace.query_one(SourceView).acceptance

    drive(client, steps, file=file)
    assert file.read_text() == SOURCE
    assert client.open_calls == 0
