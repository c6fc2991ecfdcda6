"""An edit of a file of sixty lines, brought to its review in the terminal UI."""

from pathlib import Path

from app.editing.review import Review
from app.tui.widgets.diff_view import DiffView
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session, Steps, drive

LINES = [f"value_{number} = {number}" for number in range(60)]
SOURCE = "".join(f"{line}\n" for line in LINES)
NEW = (
    SOURCE.replace("value_3 = 3\n", "three = 3\n")
    .replace("value_6 = 6\n", "six = 6\nseven = 7\n")
    .replace("value_30 = 30\n", "thirty = 30\n")
    .replace("value_50 = 50\n", "")
)


def view(session: Session) -> DiffView:
    """The pane."""
    return session.workspace.query_one(DiffView)


def review(session: Session) -> Review:
    """What it shows."""
    found = view(session).review
    assert found is not None
    return found


def reviewed(path: Path, steps: Steps, new: str = NEW, *, size: tuple[int, int] = (120, 40)) -> ScriptedClient:
    """Ask for an edit of `path` that turns it into `new`, and take the steps in its review."""
    client = ScriptedClient(fenced(new))

    async def all_steps(session: Session) -> None:
        await session.ask("Do.")
        assert isinstance(session.workspace.focused, DiffView)
        await steps(session)

    drive(client, all_steps, file=path, size=size)
    return client
