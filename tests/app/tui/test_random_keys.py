"""Hundreds of random keys: whatever is pressed whenever, the UI stays, and only an apply changes the file."""

import random
from pathlib import Path

import pytest
from textual import events
from textual.screen import ModalScreen

from app.editing.journal import Journal
from app.paths import journal_dir
from app.tui.actions import ACTIONS
from app.tui.widgets.instruction_box import InstructionBox
from tests.support.headless_edit import SOURCE
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import NARROW, WIDE, Session, at_once, drive

LEFT_OUT = {"quit", "models", "watches", "edit_outside", "settings", "edit_hunk_outside", "open_file"}
"""What ends the program or starts others."""
KEYS = [key for action in ACTIONS if action.id not in LEFT_OUT for key in action.keys]
REPLIES = [
    SOURCE.replace("return 0\n", "return 0.0\n").replace('"""Sums."""', '"""Sums and more."""'),
    SOURCE.replace("high - low", "abs(high - low)"),
    SOURCE,
    "no code at all\n",
    SOURCE[: len(SOURCE) // 2],
]


def journal() -> list[tuple[str, str]]:
    """What was applied and undone."""
    return [(entry.id, entry.state) for entry in Journal(journal_dir()).entries()]


async def press_many(session: Session, seed: int, count: int, file: Path) -> None:
    chance = random.Random(seed)
    applied = journal()
    before = file.read_bytes()
    for _ in range(count):
        session.client.reply = fenced(chance.choice(REPLIES))
        kind = chance.random()
        if kind < 0.08:
            await session.type("Do.")
            keys = ["enter"]
        elif kind < 0.12:
            keys = ["escape"]
        elif kind < 0.14:
            file.write_text(f"# {chance.random()}\n{SOURCE}")
            before = file.read_bytes()
            keys = ["f8"]
        else:
            keys = [chance.choice(KEYS) for _ in range(chance.randint(1, 4))]
        await session.pilot.press(*keys)
        if chance.random() < 0.3:
            await session.settle()
        while isinstance(session.app.screen, ModalScreen) and chance.random() < 0.7:
            await session.press("escape")
        if file.read_bytes() != before:
            await session.settle()  # an apply or its undo is written before it is in the journal
        if journal() != applied:
            applied, before = journal(), file.read_bytes()
        assert file.read_bytes() == before
    await session.settle()


async def burst_many(session: Session, seed: int, count: int, file: Path) -> None:
    """Bursts that come faster than the screen follows, with a paste and another size among them."""
    chance = random.Random(seed)
    applied = journal()
    before = file.read_bytes()
    for _ in range(count):
        session.client.reply = fenced(chance.choice(REPLIES))
        for _ in range(chance.randint(5, 40)):
            kind = chance.random()
            if kind < 0.05:
                session.app.post_message(events.Paste("Do it.\r\nNow."))
            elif kind < 0.08:
                await session.pilot.resize_terminal(*chance.choice([NARROW, WIDE, (200, 50)]))
            else:
                at_once(session, chance.choice(KEYS) if kind < 0.9 else chance.choice(["enter", "escape"]))
        await session.settle()
        if journal() != applied:
            applied, before = journal(), file.read_bytes()
        assert file.read_bytes() == before
        while isinstance(session.app.screen, ModalScreen):
            await session.press("escape")
        session.workspace.show_pane("instruction")
        await session.press("z")
        assert "z" in session.workspace.query_one(InstructionBox).text  # every key still arrives
        session.workspace.query_one(InstructionBox).put("")


@pytest.mark.parametrize("seed", range(3))
def test_bursts_of_random_keys(file: Path, seed: int) -> None:
    async def steps(session: Session) -> None:
        await burst_many(session, seed, 6, file)

    drive(ScriptedClient(""), steps, file=file)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 220))
def test_many_bursts_of_random_keys(file: Path, seed: int) -> None:
    async def steps(session: Session) -> None:
        await burst_many(session, seed, 30, file)

    drive(ScriptedClient(""), steps, file=file)


@pytest.mark.parametrize("seed", range(3))
def test_random_keys(file: Path, seed: int) -> None:
    async def steps(session: Session) -> None:
        await press_many(session, seed, 25, file)

    drive(ScriptedClient(""), steps, file=file, size=WIDE if seed % 2 else NARROW)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_keys(file: Path, seed: int) -> None:
    async def steps(session: Session) -> None:
        await press_many(session, seed, 80, file)

    drive(ScriptedClient(""), steps, file=file, size=WIDE if seed % 2 else NARROW)
