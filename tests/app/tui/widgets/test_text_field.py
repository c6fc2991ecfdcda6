"""Text fields: what a terminal would obey is drawn as a box, and the text stays what it is."""

from pathlib import Path

from app.tui.widgets.instruction_box import InstructionBox
from tests.support.headless_edit import CHANGED
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session, drive

WILD = "a\x1b[31mb\x07\u202ec [bold]d[/] é日"


def test_control_characters_are_boxes_and_markup_is_text(file: Path) -> None:
    client = ScriptedClient(fenced(CHANGED))

    async def steps(session: Session) -> None:
        box = session.workspace.query_one(InstructionBox)
        box.put(WILD)
        await session.settle()
        assert "a\ufffd[31mb\ufffd\ufffdc [bold]d[/] é日" in session.shown()
        assert all(char.isprintable() or char == "\n" for char in session.shown())
        assert box.text == WILD
        session.workspace.show_pane("instruction")
        await session.press("enter")
        assert WILD in client.requests[-1].messages[-1].content

    drive(client, steps, file=file)
