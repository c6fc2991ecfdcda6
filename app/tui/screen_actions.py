"""What the keys that work anywhere do: the screens around the workspace, and what follows from their answers.

The half of the app that knows screens; `app.tui.app` is the half that knows the engine. A screen and what works for it
are imported when it is opened: together 100 ms that the first picture need not wait for. Invariant: no screen is opened
over another one, and leaving one by escape changes nothing.
"""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported
from textual.message import Message
from textual.screen import ModalScreen

from app.errors import AppError, UsageError
from app.paths import shown
from app.settings import load_settings
from app.tui.actions import Action, Place, keymap
from app.tui.left_work import LeftWork
from app.tui.look import choose_look
from app.tui.messages import ModelJobDone, WatchesSeen, WatchMark, WatchSaid
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from app.tui.widgets.source_view import SourceView

if TYPE_CHECKING:
    from app.recipes import Recipe
    from app.tui.model_worker import ModelWorker
    from app.tui.screens.model_picker import UseModel
    from app.tui.screens.turns import TurnChoice
    from app.tui.watch_worker import WatchWorker

_ALONE = {"left", "open_file", "models", "settings", "turns", "recipes", "watches", "palette", "help"}
"""Actions that open a screen, which they do not do over another one."""


class ScreenActions(LeftWork):
    """The screens around the workspace."""

    @cached_property
    def models(self) -> "ModelWorker":
        """What fetches and verifies models."""
        from app.tui.model_worker import ModelWorker

        return ModelWorker(self._model_said, self.load_options())

    @cached_property
    def watches(self) -> "WatchWorker":
        """What knows of watches."""
        from app.tui.watch_worker import WatchWorker

        return WatchWorker(self._watch_said)

    @property
    def _reviewing(self) -> bool:
        """A review of proposals is open: the only screen that is neither the workspace nor a dialog."""
        return self.screen is not self.workspace and not isinstance(self.screen, ModalScreen)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Screens are not piled up."""
        if self._reviewing:
            return action not in _ALONE or action == "help"
        return not (action in _ALONE and isinstance(self.screen, ModalScreen))

    async def let_go(self) -> None:
        self.models.stop()
        await self.watches.close()
        await self.workspace.worker.close()

    # --- help and palette ---------------------------------------------------------------------------------------------

    def _place(self) -> Place:
        """Where the user is."""
        if self._reviewing:
            return Place.DIFF
        focused = self.workspace.focused
        for kind, place in ((SourceView, Place.SOURCE), (InstructionBox, Place.INSTRUCTION), (DiffView, Place.DIFF)):
            if isinstance(focused, kind):
                return place
        return Place.WORKSPACE

    def action_help(self) -> None:
        from app.tui.help_text import help_sections
        from app.tui.screens.help import HelpScreen

        self.push_screen(HelpScreen(help_sections(self._place(), self.keys)))

    def action_palette(self) -> None:
        from app.tui.palette import palette_rows
        from app.tui.screens.choice import ChoiceScreen

        place = self._place()
        rows = ChoiceScreen[Action]("What to do", lambda query: palette_rows(query, place, self.keys))
        self.push_screen(rows, self._run_chosen)

    async def _run_chosen(self, action: Action | None) -> None:
        if action is None:
            return
        focused = self.workspace.focused
        target = {Place.APP: self, Place.WORKSPACE: self.workspace}.get(action.place, focused)
        await self.run_action(action.id, target)

    # --- files, turns, recipes ----------------------------------------------------------------------------------------

    def open_path(self, path: str) -> None:
        """Open a file in the workspace, or say why not; the app does it."""
        raise NotImplementedError

    def action_open_file(self) -> None:
        from app.tui.screens.file_picker import FilePicker

        if self.workspace.at_work:
            self.tell("The model is at work; escape stops it.", "warning")
        else:
            self.push_screen(FilePicker(), self._open_chosen)

    def _open_chosen(self, path: str | None) -> None:
        if path is not None:
            self.open_path(path)

    def action_turns(self) -> None:
        turns = self.workspace.turns
        if turns is None or not turns.turns:
            self.tell("There is no turn yet.", "warning")
        else:
            from app.tui.screens.turns import TurnsScreen

            self.push_screen(TurnsScreen(turns), self._turn_chosen)

    def _turn_chosen(self, choice: "TurnChoice | None") -> None:
        from app.tui.screens.turns import Chosen

        if choice is None or self.workspace.turns is None:
            return
        workspace, number = self.workspace, choice.number
        match choice.what:
            case Chosen.BASE:
                workspace.switch_base(number)
            case Chosen.REVIEW:
                workspace.review_turn(number)
            case Chosen.EXPORT:
                workspace.export_turn(number)
            case Chosen.THROW_AWAY:
                workspace.throw_away(number)
            case Chosen.RETRY:
                workspace.retry(number)

    def action_recipes(self) -> None:
        from app.recipes import load_recipes
        from app.tui.screens.recipe_picker import RecipePicker

        try:
            recipes = load_recipes()
        except AppError as error:
            self.tell(str(error), "error")
        else:
            typed = self.workspace.query_one(InstructionBox).text.strip()
            self.push_screen(RecipePicker(recipes, typed), self._recipe_chosen)

    def _recipe_chosen(self, recipe: "Recipe | None") -> None:
        if recipe is None:
            return
        if recipe.name:
            self.workspace.query_one(InstructionBox).put(recipe.instruction)
            self.workspace.show_pane("instruction")
        else:
            from app.tui.screens.question import Ask

            self.push_screen(Ask("Name of the recipe"), lambda name: self._save_recipe(name, recipe.instruction))

    def _save_recipe(self, name: str | None, instruction: str) -> None:
        if name is None:
            return
        from app.recipes import save_recipe

        try:
            save_recipe(name, instruction)
        except AppError as error:
            self.tell(str(error), "error")
        else:
            self.tell(f"Saved as {name.strip()}.")

    # --- models -------------------------------------------------------------------------------------------------------

    def load_options(self) -> tuple[str, ...]:
        """Options of the command line for every load, whichever model is picked; the app knows them."""
        raise NotImplementedError

    def use_model(self, model: str | None) -> None:
        """Edit with another model from now on; the app does it."""
        raise NotImplementedError

    def action_models(self) -> None:
        from app.tui.screens.model_picker import ModelPicker

        engine = self.workspace.status.engine
        self.push_screen(ModelPicker(self.models, None if engine is None else engine.model_id), self._model_chosen)

    def _model_chosen(self, choice: "UseModel | None") -> None:
        if choice is None:
            return
        if self.workspace.at_work:
            self.tell("The model is at work; escape stops it.", "warning")
        else:
            self.use_model(choice.model_id)

    def _model_said(self, message: Message) -> None:
        """To the picker where it is open; how a job ended is said anywhere."""
        from app.tui.screens.model_picker import ModelPicker

        if self.on_top is None:
            return  # the program is ending
        if isinstance(self.on_top, ModelPicker):
            self.on_top.post_message(message)
        elif isinstance(message, ModelJobDone):
            self.tell(message.sentence, "error" if message.failed else "information")

    # --- watches ------------------------------------------------------------------------------------------------------

    def watch_options(self) -> tuple[str, ...]:
        """Options of the command line that make a watch edit as it is done here; the app knows them."""
        raise NotImplementedError

    def action_watches(self) -> None:
        from app.tui.screens.watches import WatchesScreen

        self.push_screen(WatchesScreen(self.watches, self.watch_options()))

    def look_at_watches(self) -> None:
        """See what watches do, and what waits."""
        if self.on_top is None:
            return  # the program is ending
        whole = self._watches_are_open()
        self.run_worker(self.watches.look(whole=whole), group="watches", exit_on_error=False)

    def _watches_are_open(self) -> bool:
        if not isinstance(self.on_top, ModalScreen):
            return False
        from app.tui.screens.watches import WatchesScreen

        return isinstance(self.on_top, WatchesScreen)

    def _watch_said(self, message: Message) -> None:
        """To the list where it is open; a sentence is said anywhere."""
        if self.on_top is None:
            return  # the program is ending
        if isinstance(message, WatchMark):
            self.workspace.show_status(watch=message.mark)
        elif self._watches_are_open():
            self.screen.post_message(message)
        elif isinstance(message, WatchSaid):
            self.tell(message.said.sentence, "error" if message.said.failed else "information")
        elif isinstance(message, WatchesSeen) and message.error is not None:
            self.workspace.show_status(watch="proposals unreadable")

    # --- settings -----------------------------------------------------------------------------------------------------

    def action_settings(self) -> None:
        from app.tui.screens.settings import SettingsScreen

        self.push_screen(SettingsScreen(self._edit_file, self.copy, self.settings_changed, self.given()))

    def given(self) -> Mapping[str, tuple[object, str]]:
        """Settings key -> value and option, of what the command line said; the app knows them."""
        raise NotImplementedError

    def _edit_file(self, path: Path) -> None:
        from app.external_editor import edit_file

        try:
            with self.suspend():
                edit_file(path)
        except SuspendNotSupported as error:
            raise UsageError(f"This terminal cannot be handed to an editor; edit {shown(path)} elsewhere.") from error

    def settings_changed(self) -> None:
        """Take theme and keys from the settings as they are now. Raises SettingsError; nothing has changed then."""
        settings = load_settings()
        keys = keymap(settings.keys)
        self.keys = keys
        self.set_keymap(keys)
        self.theme = choose_look(settings, os.environ).theme
