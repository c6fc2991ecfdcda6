"""The right pane: the reply as it comes, then the hunks of the proposal.

Knows text and hunks; decides nothing. Invariant: what comes from the model is shown as text, never as markup.
"""

from rich.text import Text as Words
from textual.containers import VerticalScroll
from textual.widgets import Static

from app.editing.again import redone
from app.editing.live import LiveDiff
from app.editing.pipeline import EditPlan, Proposal
from app.editing.review import Review
from app.terminal_text import diff_lines
from app.tui.messages import ReviewChanged


class DiffView(VerticalScroll, can_focus=True):
    """Hunks, or what is on the way to them."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(Static(id="diff-text"), id=id)
        self.review: Review | None = None
        self._live: LiveDiff | None = None

    def show_empty(self, sentence: str) -> None:
        """Nothing to show but a sentence."""
        self.review = None
        self._show(sentence)

    def show_live(self, plan: EditPlan, live: LiveDiff) -> None:
        """A run begins."""
        self._live = live
        self.show_empty("")

    def advance(self) -> None:
        """There is more of the reply."""
        if self._live is not None:
            self._show("\n".join(diff_lines(self._live.hunks, colour=False)))

    def show_proposal(self, proposal: Proposal) -> None:
        """The reply is whole."""
        self.show_review(Review.start(proposal.plan.document, proposal.hunks), proposal)
        assert self.review is not None
        self.post_message(ReviewChanged(self.review))

    def show_review(self, review: Review, proposal: Proposal) -> None:
        """A review that was begun already."""
        self.review = review
        self._show("\n".join(diff_lines(review.hunks, colour=False)))

    def hunk_redone(self, index: int, proposal: Proposal) -> None:
        """A hunk was done anew."""
        assert self.review is not None
        self.review = redone(self.review, index, proposal)
        self._show("\n".join(diff_lines(self.review.hunks, colour=False)))
        self.post_message(ReviewChanged(self.review))

    def stop(self, sentence: str) -> None:
        """The run ended without a proposal."""
        self._show(sentence)

    def _show(self, text: str) -> None:
        self.query_one("#diff-text", Static).update(Words(text))
