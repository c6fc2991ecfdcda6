"""Panes that paint only what changed show what they would show painted from scratch."""

from pathlib import Path
from random import Random

import pytest
from textual.strip import Strip

from app.editing.figures import LineAcceptance
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.source_view import SourceView
from tests.support.scripted_client import fenced
from tests.support.stepped_client import SteppedClient
from tests.support.tui import Session, drive

LINES = [f"{'    ' * (number % 3)}value_{number} = 'ü{number}'" + " # long" * (number % 7) for number in range(70)]
OLD = "".join(f"{line}\n" for line in LINES)


def on_screen(session: Session) -> list[Strip]:
    """What is painted of the panes; in the box below, a cursor blinks."""
    return session.app.screen._compositor.render_strips()[: session.workspace.query_one("#panes").region.bottom]


async def from_scratch(session: Session) -> list[Strip]:
    """What is painted when nothing is kept from before."""
    for view in (session.workspace.query_one(SourceView), session.workspace.query_one(DiffView)):
        view.notify_style_update()
        view._strips.clear()
        view.vertical_scrollbar.refresh()
        view.refresh(layout=True)
    await session.pilot.pause()
    return on_screen(session)


def changed(seed: int) -> str:
    """The file with some lines left out, some said otherwise, some added."""
    random = Random(seed)
    lines: list[str] = []
    for line in LINES:
        lines += random.choices([[line], [], [f"{line} + 1"], [line, "new = 'x'"]], [12, 1, 1, 1])[0]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [(80, 24), (130, 30)])
def test_what_is_painted_bit_by_bit_is_what_is_painted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, size: tuple[int, int]
) -> None:
    for least_or_most in ("UPDATE_S", "SLOWEST_UPDATE_S"):  # updates come when the test says so
        monkeypatch.setattr(f"app.tui.edit_run.{least_or_most}", 3600.0)
    path = tmp_path / "a.py"
    path.write_text(OLD)
    random = Random(seed)

    async def steps(session: Session) -> None:
        assert isinstance(session.client, SteppedClient)
        source, diff = session.workspace.query_one(SourceView), session.workspace.query_one(DiffView)
        session.workspace.run_edit("Change it", None)
        for _ in range(20):
            session.client.more.put_nowait(random.randrange(1, 60))
            await session.pilot.pause()
            diff.advance()
            match random.randrange(6):
                case 0:
                    lines = {
                        random.randrange(1, 70): LineAcceptance(random.randrange(20), random.randrange(2))
                        for _ in range(5)
                    }
                    source.show_acceptance(lines, random.randrange(1, 70))
                case 1:
                    session.workspace.show_pane(random.choice(["source", "diff"]))
                    await session.pilot.press(*random.choices(["up", "down", "pagedown", "home", "end", "right"], k=3))
                case 2:
                    source.scroll_to(y=random.randrange(60), animate=False)
                    diff.scroll_to(y=random.randrange(60), animate=False)
                case 3:
                    session.workspace.show_pane("diff")
                    await session.pilot.press(random.choice(["p", "w", "s", "t", "G"]))
            await session.pilot.pause()
            await session.pilot.pause()
            painted = on_screen(session)
            assert painted == await from_scratch(session)
        session.app.workers.cancel_all()

    drive(SteppedClient(fenced(changed(seed))), steps, file=path, size=size)
