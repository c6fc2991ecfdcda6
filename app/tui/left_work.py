"""How a sitting ends with work that is left, and how the next start takes it up.

Knows the dialogs about it, which are imported when they are opened. Invariant: the program ends with nothing lost that
the user was not asked about, and what cannot be kept keeps the program.
"""

import asyncio
import os
from typing import TYPE_CHECKING

from textual import work
from textual.screen import ModalScreen

from app.editing.review import Decision
from app.editing.session_store import LeftSession, SessionKeeper, left_sessions
from app.errors import AppError
from app.paths import shown
from app.recall import remember_instruction
from app.tui.shell import Shell
from app.tui.widgets.instruction_box import InstructionBox

if TYPE_CHECKING:
    from app.tui.screens.quit_dialog import Leaving
    from app.tui.screens.resume_offer import Resuming
    from app.tui.screens.workspace import WorkspaceScreen


class LeftWork(Shell):
    """Quitting, and going on."""

    workspace: "WorkspaceScreen"

    async def let_go(self) -> None:
        """End what works beside the screen; the app does it."""
        raise NotImplementedError

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
            await self.let_go()
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
