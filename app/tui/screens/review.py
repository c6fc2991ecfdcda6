"""`redraft review`: files whose hunks wait for a decision, from a patch or from stored proposals.

Knows `app.editing.under_review` and shows it. Invariant: what was decided about one file stays when another is looked
at, and nothing is written before apply.
"""

import asyncio
from collections.abc import Sequence
from typing import ClassVar, cast

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from app.editing.apply import Receipt
from app.editing.history import undo_edit
from app.editing.journal import Journal
from app.editing.proposals import ProposalStore
from app.editing.review import Review
from app.editing.under_review import UnderReview, apply_reviews
from app.errors import AppError
from app.paths import journal_dir, shown
from app.tui.actions import Place, bindings
from app.tui.messages import ReviewChanged
from app.tui.shell import Shell
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.key_bar import KeyBar

_HERE = {"apply_review", "undo_apply", "next_pane"}
"""Actions of the workspace that this screen has, too."""


class ReviewScreen(Screen[None]):
    """A list of files beside the review of one of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        binding for binding in bindings(Place.WORKSPACE) if binding.action in _HERE
    ]
    AUTO_FOCUS = "#diff"

    def __init__(self, files: Sequence[UnderReview], store: ProposalStore | None) -> None:
        super().__init__()
        self._files = list(files)
        self._store = store
        self._reviews: list[Review | None] = [file.start() for file in files]
        self._shown = 0
        self.receipts: list[Receipt] = []
        """What was written."""

    @property
    def reviews(self) -> tuple[Review | None, ...]:
        """What was decided about each file; None where there is nothing to decide."""
        return tuple(self._reviews)

    @property
    def decided(self) -> int:
        """How many hunks are decided and not applied: leaving loses that."""
        return sum(len(review.items) - review.undecided for review in self._reviews if review is not None)

    def what_is_lost(self) -> str:
        """What to say before it is left."""
        return f"{self.decided} hunk{'s' * (self.decided != 1)} decided and not applied; ctrl+s applies."

    def compose(self) -> ComposeResult:
        with Horizontal(id="panes"):
            yield OptionList(id="files")
            yield DiffView(id="diff")
        yield KeyBar()

    def on_mount(self) -> None:
        files = self.query_one(OptionList)
        files.border_title = "Files"
        files.display = len(self._files) > 1
        files.add_options([Option(self._line(at)) for at in range(len(self._files))])
        first = next((at for at, review in enumerate(self._reviews) if review is not None), 0)
        self._show(first)
        files.highlighted = first

    def _line(self, at: int) -> Text:
        """A file in the list: a sign for what is left to do, its name, how many hunks are decided."""
        file, review = self._files[at], self._reviews[at]
        count = len(file.conflicts)
        conflicts = f", {count} conflict{'s' * (count != 1)}" if count else ""
        if review is None:
            return Text(f"! {shown(file.name)}{conflicts}", no_wrap=True)
        count = len(review.items)
        sign = "?" if review.undecided else "✓"
        return Text(f"{sign} {shown(file.name)}: {count - review.undecided} of {count}{conflicts}", no_wrap=True)

    def _show(self, at: int) -> None:
        self._shown = at
        file, review, diff = self._files[at], self._reviews[at], self.query_one(DiffView)
        diff.border_title = shown(file.name)
        if review is None:
            diff.show_empty(" ".join(file.conflicts) or "Nothing is left to decide here.")
        else:
            diff.show_hunks(review, notes=file.conflicts)

    @on(OptionList.OptionHighlighted)
    def file_chosen(self, message: OptionList.OptionHighlighted) -> None:
        if message.option_index != self._shown:
            self._show(message.option_index)

    @on(ReviewChanged)
    def review_changed(self, message: ReviewChanged) -> None:
        # By its document: another file may be shown by now.
        for at, review in enumerate(self._reviews):
            if review is not None and review.document is message.review.document:
                self._reviews[at] = message.review
                self.query_one(OptionList).replace_option_prompt_at_index(at, self._line(at))

    def action_next_pane(self) -> None:
        diff, files = self.query_one(DiffView), self.query_one(OptionList)
        (files if self.focused is diff and files.display else diff).focus()

    async def action_apply_review(self) -> None:
        """Write what was accepted, in every file."""
        decided = [
            (file, review) for file, review in zip(self._files, self._reviews, strict=True) if review is not None
        ]
        if any(review.undecided for _, review in decided) and not any(review.accepted for _, review in decided):
            self._tell("Nothing is accepted yet; y accepts a hunk.", "warning")
            return
        before = len(self.receipts)
        try:
            await asyncio.to_thread(apply_reviews, decided, Journal(journal_dir()), self._store, self.receipts.append)
        except AppError as error:
            self._tell(str(error), "error")
        else:
            self._drop_rejected()
        self._drop_written(self.receipts[before:])

    def _drop_rejected(self) -> None:
        """A stored proposal of which all was rejected is gone."""
        for at, (file, review) in enumerate(zip(self._files, self._reviews, strict=True)):
            if review is None or file.proposal_id is None or review.accepted or review.undecided:
                continue
            self._tell(f"Rejected; {shown(file.name)} stays as it is.")
            self._reviews[at] = None
            self.query_one(OptionList).replace_option_prompt_at_index(at, self._line(at))

    def _drop_written(self, receipts: Sequence[Receipt]) -> None:
        """What was written is done; the rest of such a file was made for what it was before."""
        written = {receipt.path for receipt in receipts}
        for at, review in enumerate(self._reviews):
            if review is not None and str(review.document.target) in written:
                left = f", {review.undecided} undecided left out" if review.undecided else ""
                self._tell(f"Applied to {shown(self._files[at].name)}{left}; f10 takes the newest apply back.")
                self._reviews[at] = None
                self.query_one(OptionList).replace_option_prompt_at_index(at, self._line(at))
        self._show(self._shown)

    async def action_undo_apply(self) -> None:
        """Take back the newest apply, and bring its hunks back."""
        if not self.receipts:
            self._tell("There is nothing to undo yet.", "warning")
            return
        receipt = self.receipts[-1]
        try:
            await asyncio.to_thread(undo_edit, receipt.path, Journal(journal_dir()))
        except AppError as error:
            self._tell(str(error), "error")
            return
        self.receipts.pop()
        for at, file in enumerate(self._files):
            if file.document is not None and str(file.document.target) == receipt.path:
                self._reviews[at] = file.start()
                self.query_one(OptionList).replace_option_prompt_at_index(at, self._line(at))
        self._tell(f"{shown(receipt.path)} is as it was before the last apply.")
        self._show(self._shown)

    def _tell(self, sentence: str, severity: str = "information") -> None:
        cast(Shell, self.app).tell(sentence, severity)  # type: ignore[arg-type]
