"""The terminal UI of `redraft review`: one screen, no engine.

Invariant: leaving it writes nothing, and loses no decision without a word; the hunks are where they were, in the patch
or the store.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import BindingType

from app.editing.proposals import ProposalStore
from app.editing.under_review import UnderReview
from app.tui.actions import Place, bindings, keymap
from app.tui.help_text import help_sections
from app.tui.screens.help import HelpScreen
from app.tui.screens.question import Question
from app.tui.screens.review import ReviewScreen
from app.tui.shell import Shell

_HERE = {"help", "quit"}
"""Actions that work anywhere and make sense here."""


class ReviewApp(Shell):
    """Review a patch or stored proposals."""

    CSS_PATH = ["redraft.tcss", "screens.tcss"]  # noqa: RUF012  # Textual declares it without ClassVar
    TITLE = "Redraft review"
    KEPT = "Nothing was written; what was to be reviewed is where it was."
    BINDINGS: ClassVar[list[BindingType]] = [binding for binding in bindings(Place.APP) if binding.action in _HERE]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        files: Sequence[UnderReview],
        store: ProposalStore | None,
        keys: Mapping[str, str],
        theme: str = "redraft-dark",
    ) -> None:
        super().__init__(theme)
        self.keys = keymap(keys)
        self.review_screen = ReviewScreen(files, store)

    def on_mount(self) -> None:
        self.set_keymap(self.keys)
        self.push_screen(self.review_screen)

    def action_help(self) -> None:
        self.push_screen(HelpScreen(help_sections(Place.DIFF, self.keys)))

    async def action_quit(self) -> None:
        """Leave; ask first where something would have to be done again, and take a second ctrl+q for the answer."""
        from app.tui.screens.hunk_editor import NOT_TAKEN, HunkEditor  # 25 ms that the first picture need not wait for

        if isinstance(self.screen, HunkEditor) and self.screen.is_changed:
            sentence = f"{NOT_TAKEN} Quit without it?"
        elif self.review_screen.decided and not isinstance(self.screen, Question):
            sentence = f"{self.review_screen.what_is_lost()} Quit, and leave everything undecided?"
        else:
            self.exit()
            return
        self.push_screen(Question(sentence, "Quit", "Stay"), self._leave)

    def _leave(self, agreed: bool | None) -> None:
        if agreed:
            self.exit()
