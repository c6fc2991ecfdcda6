"""The screens in the whole program: each key opens its screen, and what is answered there is done."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from app.engine_client import EngineClient
from app.model_rows import ModelRow
from app.paths import settings_file, state_dir
from app.private_files import write_private
from app.recall import load_recall, remember_file
from app.recipes import load_recipes
from app.tui.app import RedraftApp, UiOptions
from app.tui.messages import ModelJobDone, WatchMark
from app.tui.screens.choice import ChoiceScreen
from app.tui.screens.help import HelpScreen
from app.tui.screens.model_picker import ModelPicker
from app.tui.screens.settings import SettingsScreen
from app.tui.screens.turns import TurnsScreen
from app.tui.screens.workspace import WorkspaceScreen
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from app.tui.widgets.source_view import SourceView
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session, drive

OTHER = CHANGED.replace("max(items)", "max(items, default=0)")


def client() -> ScriptedClient:
    return ScriptedClient(fenced(CHANGED))


# --- opening and closing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("ctrl+o", ChoiceScreen),
        ("f1", HelpScreen),
        ("f2", ModelPicker),
        ("f3", SettingsScreen),
        ("f9", ChoiceScreen),
        ("ctrl+p", ChoiceScreen),
    ],
)
def test_each_key_opens_its_screen_once_and_escape_leaves_it(file: Path, key: str, kind: type) -> None:
    async def steps(session: Session) -> None:
        await session.press(key)
        assert isinstance(session.app.screen, kind)
        await session.press("f1", "f2", "ctrl+o")
        assert len(session.app.screen_stack) <= 3  # the default screen, the workspace, and one more
        while not isinstance(session.app.screen, WorkspaceScreen):
            await session.press("escape")
        assert session.workspace.turns is not None and session.workspace.turns.document.name == str(file)

    drive(client(), steps, file=file)


def test_the_picker_counts_memory_for_the_options_of_the_start(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    async def listed(options: Sequence[str]) -> tuple[ModelRow, ...]:
        asked.append(options)
        return ()

    monkeypatch.setattr("app.tui.model_worker.list_models", listed)
    given = ("--draft-model", "small", "--max-memory", "6000000000")

    async def run() -> None:
        app = RedraftApp(UiOptions(file=str(file), load_options=given), lambda _: cast(EngineClient, client()))
        async with app.run_test() as pilot:
            await pilot.press("f2")
            await app.workers.wait_for_complete()

    asyncio.run(run())
    assert asked == [given]


def test_a_question_mark_is_text_in_the_instruction_and_help_elsewhere(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.type("why?")
        assert session.workspace.query_one(InstructionBox).text == "why?"
        session.workspace.show_pane("source")
        await session.press("question_mark")
        assert isinstance(session.app.screen, HelpScreen)
        assert "in the source" in session.shown().split("Keys (escape closes)")[1].split("\n")[2]

    drive(client(), steps, file=file)


# --- files ------------------------------------------------------------------------------------------------------------


def test_another_file_is_opened_and_remembered(file: Path) -> None:
    (file.parent / "other.py").write_text("x = 1\n")

    async def steps(session: Session) -> None:
        await session.press("ctrl+o")
        await session.press(*"other", "enter")
        assert session.workspace.turns is not None and session.workspace.turns.document.name == "other.py"

    drive(client(), steps, file=file)
    assert load_recall().files == (str(file.parent / "other.py"), str(file))


def test_a_file_that_cannot_be_opened_is_said_and_the_old_one_stays(file: Path) -> None:
    (file.parent / "empty.py").write_text("")
    remember_file(file.parent / "empty.py")

    async def steps(session: Session) -> None:
        await session.press("ctrl+o")
        await session.press(*"empty", "enter")
        assert any("empty.py is empty" in said for said in session.said())
        assert session.workspace.turns is not None and session.workspace.turns.document.name == str(file)

    drive(client(), steps, file=file)


# --- palette and recipes ----------------------------------------------------------------------------------------------


def test_the_palette_runs_an_action_where_it_belongs(file: Path) -> None:
    async def steps(session: Session) -> None:
        session.workspace.show_pane("source")
        await session.press("ctrl+p")
        await session.press(*"last", "enter")
        await session.press("K")
        region = session.workspace.query_one(SourceView).selected_lines
        assert region is not None and region.last == SOURCE.count("\n")
        await session.press("ctrl+p")
        await session.press(*"setting", "enter")
        assert isinstance(session.app.screen, SettingsScreen)

    drive(client(), steps, file=file)


def test_a_recipe_fills_the_instruction_and_one_can_be_saved(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("f9")
        await session.press(*"dead", "enter")
        box = session.workspace.query_one(InstructionBox)
        assert box.text == "Remove unused imports, variables and functions."
        await session.press("f9", "pagedown", "enter")
        await session.press(*"mine", "enter")
        await session.press("f9")
        await session.press(*"mine", "enter")
        assert box.text == "Remove unused imports, variables and functions."

    drive(client(), steps, file=file)
    assert load_recipes()[0].name == "mine"


def test_a_wrong_recipe_file_is_said(file: Path) -> None:
    write_private(settings_file().with_name("recipes.toml"), b"a = 1\n")

    async def steps(session: Session) -> None:
        await session.press("f9")
        assert any("must be an instruction" in said for said in session.said())

    drive(client(), steps, file=file)


# --- turns ------------------------------------------------------------------------------------------------------------


def test_the_base_is_switched_and_a_turn_asked_again(file: Path) -> None:
    engine = client()

    async def steps(session: Session) -> None:
        await session.press("f7")
        assert isinstance(session.app.screen, WorkspaceScreen) and "no turn yet" in session.said()[-1]
        await session.ask("One.")
        assert session.workspace.turns is not None and session.workspace.turns.current is not None
        session.workspace.query_one(DiffView).focus()
        await session.press("a")
        await session.press("f7")
        assert isinstance(session.app.screen, TurnsScreen)
        await session.press("down", "enter")
        assert session.workspace.turns.base == 1
        session.client.reply = fenced(OTHER)
        await session.ask("Two.")
        turn = session.workspace.turns.current
        assert turn is not None and turn.based_on == 1 and turn.base.data.decode() == CHANGED
        await session.press("f7", "r")
        turn = session.workspace.turns.current
        assert turn is not None and (turn.instruction, turn.based_on) == ("One.", 0)

    drive(engine, steps, file=file)


# --- settings ---------------------------------------------------------------------------------------------------------


def test_changed_settings_count_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(session: Session) -> None:
        assert session.app.theme == "redraft-dark"
        write_private(settings_file(), b"[ui]\ntheme = 'light'\ncolours = 'truecolor'\n[keys]\nhelp = 'f12'\n")
        session.app.settings_changed()
        await session.settle()
        assert session.app.theme == "redraft-light"
        await session.press("f12")
        assert isinstance(session.app.screen, HelpScreen)

    drive(client(), steps, file=file)


def test_without_a_terminal_to_hand_over_the_editor_is_not_started(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("f3", "e")
        assert "cannot be handed to an editor" in " ".join(session.shown().split())

    drive(client(), steps, file=file)


# --- faults of ours ---------------------------------------------------------------------------------------------------


def test_a_crash_report_can_be_copied(file: Path) -> None:
    broken = client()
    broken.at_token[3] = lambda: json.loads("{")

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        assert "Something in Redraft went wrong" in session.shown()
        await session.press("enter")
        assert "copied.txt" in session.said()[-1]
        await session.press("escape")

    drive(broken, steps, file=file)
    assert "JSONDecodeError" in (state_dir() / "copied.txt").read_text()


def test_what_comes_after_the_end_changes_nothing(file: Path) -> None:
    seen: list[Session] = []

    async def steps(session: Session) -> None:
        seen.append(session)

    drive(client(), steps, file=file)
    app = seen[0].app
    assert app.on_top is None
    app.look_at_watches()  # a timer
    app.watches._post(WatchMark("1 watch"))  # and workers, which are not done when the screens go
    app.models._post(ModelJobDone("small", "It is there.", failed=False))
