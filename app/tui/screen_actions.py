"""What the keys that work anywhere do: the screens around the workspace, and what follows from their answers.

The half of the app that knows screens; `app.tui.app` is the half that knows the engine. A screen and what works for it
are imported when it is opened: together 100 ms that the first picture need not wait for. Invariant: no screen is opened
over another one, and leaving one by escape changes nothing.
"""

import asyncio
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import SuspendNotSupported
from textual.message import Message
from textual.screen import ModalScreen

from app.editing.review import Decision
from app.editing.session_store import LeftSession, SessionKeeper, left_sessions
from app.errors import AppError, UsageError
from app.paths import shown
from app.recall import remember_instruction
from app.settings import load_settings
from app.tui.actions import Action, Place, keymap
from app.tui.look import choose_look
from app.tui.messages import ModelJobDone, WatchesSeen, WatchMark, WatchSaid
from app.tui.shell import Shell
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from app.tui.widgets.source_view import SourceView

if TYPE_CHECKING:
    from app.recipes import Recipe
    from app.tui.model_worker import ModelWorker
    from app.tui.screens.model_picker import UseModel
    from app.tui.screens.quit_dialog import Leaving
    from app.tui.screens.resume_offer import Resuming
    from app.tui.screens.turns import TurnChoice
    from app.tui.screens.workspace import WorkspaceScreen
    from app.tui.watch_worker import WatchWorker

_ALONE = {"left", "open_file", "models", "settings", "turns", "recipes", "watches", "palette", "help"}
"""Actions that open a screen, which they do not do over another one."""


class ScreenActions(Shell):
    """The screens around the workspace."""

    workspace: "WorkspaceScreen"

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

        if isinstance(self.screen, ModelPicker):
            self.screen.post_message(message)
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
        whole = self._watches_are_open()
        self.run_worker(self.watches.look(whole=whole), group="watches", exit_on_error=False)

    def _watches_are_open(self) -> bool:
        if not isinstance(self.screen, ModalScreen):
            return False
        from app.tui.screens.watches import WatchesScreen

        return isinstance(self.screen, WatchesScreen)

    def _watch_said(self, message: Message) -> None:
        """To the list where it is open; a sentence is said anywhere."""
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

    # --- the end ------------------------------------------------------------------------------------------------------

    async def action_quit(self) -> None:
        """Leave; ask first where something would be lost or is to be kept. The same key again is a yes."""
        from app.tui.screens.question import Question
        from app.tui.screens.quit_dialog import Leaving, QuitDialog

        lost = self._what_is_lost()
        if isinstance(self.screen, QuitDialog):
            self.screen.action_choose(Leaving.KEEP.value)
        elif not lost or (isinstance(self.screen, Question) and self.screen.sentence == lost):
            await self._leave_workspace(True)
        else:
            self.push_screen(Question(lost, "Quit", "Stay"), self._leave_workspace)

    def _what_is_lost(self) -> str:
        """What leaving would lose because it is not finished, as a question; empty where that is nothing."""
        from app.tui.screens.hunk_editor import NOT_TAKEN, HunkEditor
        from app.tui.screens.review import ReviewScreen

        for screen in reversed(self.screen_stack):
            if isinstance(screen, HunkEditor) and screen.is_changed:
                return f"{NOT_TAKEN} Quit without it?"
            if isinstance(screen, ReviewScreen) and screen.decided:
                return f"{screen.what_is_lost()} Quit, and leave the proposals undecided?"
        if self.workspace.is_partly_written:
            return "The reply is not whole yet, and the hunks it has so far cannot be kept. Quit without them?"
        return ""

    async def _leave_workspace(self, agreed: bool | None) -> None:
        from app.tui.screens.quit_dialog import Leaving, QuitDialog

        turns = self.workspace.turns
        if not agreed:
            return
        # What there is of a reply that is still written cannot be kept.
        left = [] if turns is None else [item.decision for turn in turns.waiting if turn.proposal for item in turn.left]
        if not left:
            await self._leave(Leaving.KEEP)
        else:
            dialog = QuitDialog(left.count(Decision.UNDECIDED), left.count(Decision.ACCEPTED))
            self.push_screen(dialog, self._leave)

    async def _leave(self, leaving: "Leaving | None") -> None:
        from app.tui.screens.quit_dialog import Leaving

        if leaving is Leaving.DISCARD:
            self.workspace.discard()
        if leaving is Leaving.KEEP and not self.workspace.keep():
            return  # it has said why; whoever cannot keep it may export it, or throw it away
        if leaving in (Leaving.KEEP, Leaving.DISCARD):
            self.models.stop()
            await self.watches.close()
            await self.workspace.worker.close()
            remember_instruction(self.workspace.query_one(InstructionBox).text)  # it may not have been run yet
            self.exit()

    # --- what was left at the last end --------------------------------------------------------------------------------

    @work(group="resume", exit_on_error=False)
    async def offer_left(self, path: str | None, *, asked: bool = False) -> None:
        """Offer what was left undecided: of the file at `path`, or, without one, all of it; at once when `asked`."""
        found = await asyncio.to_thread(left_sessions)
        wanted = [left for left in found.sessions if path is None or left.session.path == os.path.realpath(path)]
        if not wanted:
            for note in found.notes or (("Nothing was left undecided.",) if asked else ()):
                self.tell(note, "warning")
            return
        from app.editing.resume import standing
        from app.tui.screens.resume_offer import Offer, ResumeOffer

        offers = [Offer(left, (await asyncio.to_thread(standing, left.session))[1]) for left in wanted]
        busy = bool(self.workspace.query_one(InstructionBox).text) or isinstance(self.screen, ModalScreen)
        if busy and not asked:
            self.tell("Something was left undecided the last time; f11 offers it.")  # whoever types is not interrupted
        else:
            self.push_screen(ResumeOffer(offers, found.notes, self._typed_over_offer), self._left_chosen)

    def action_left(self) -> None:
        self.offer_left(None, asked=True)

    def _typed_over_offer(self, text: str) -> None:
        box = self.workspace.query_one(InstructionBox)
        box.insert(text)
        box.focus()
        self.hint("What was left undecided waits; f11 offers it.")

    def _left_chosen(self, answer: "tuple[Resuming, LeftSession] | None") -> None:
        if answer is not None:
            try:
                self._resume(*answer)
            except AppError as error:
                self.tell(str(error), "error")

    def _resume(self, what: "Resuming", left: LeftSession) -> None:
        from app.editing.export import export_patch
        from app.editing.resume import resumed_turns
        from app.tui.screens.resume_offer import Resuming

        if what is Resuming.GO_ON and not self.workspace.may_change_file():
            return
        keeper = SessionKeeper(left.id)
        if not keeper.take_over():
            self.tell("Another redraft has opened that session meanwhile.", "warning")
        elif what is Resuming.DISCARD:
            keeper.forget()
        elif what is Resuming.GO_ON:
            self.workspace.resume(resumed_turns(left.session), keeper)
            self.workspace.show_pane("diff")
        else:
            keeper.close()
            waiting = resumed_turns(left.session).waiting
            if not waiting:
                self.tell("Nothing in it can be exported.", "warning")
            for turn in waiting:
                self.tell(f"Written to {shown(export_patch(turn.base, turn.rest.wanted))}.")
