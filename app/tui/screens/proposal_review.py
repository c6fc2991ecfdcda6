"""The review of stored proposals inside the terminal UI: left by escape, back to where it was opened.

Knows `app.tui.screens.review`. Invariant: leaving writes nothing, and what was decided and not applied is not lost
without a word.
"""

from typing import ClassVar

from textual.binding import Binding, BindingType

from app.tui.screens.question import Question
from app.tui.screens.review import ReviewScreen


class ProposalReview(ReviewScreen):
    """A review that can be left."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Close")]

    def action_leave(self) -> None:
        """Go back; ask first where decisions would have to be made again."""
        if not self.decided:
            self.dismiss()
            return
        sentence = f"{self.what_is_lost()} Leave, and keep the proposals undecided?"
        self.app.push_screen(Question(sentence), self._leave)

    def _leave(self, agreed: bool | None) -> None:
        if agreed:
            self.dismiss()
