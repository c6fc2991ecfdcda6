"""The right pane: the reply as it comes, then the review, hunk by hunk and line by line.

Knows which key makes which step of `app.editing.review`; what follows from a decision is for who hears ReviewChanged.
What needs the whole edit or another screen is imported where it is used: 50 ms that the first picture need not have.
Invariant: nothing that is decided here is written here; while a reply is not whole, its review cannot be applied.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from app.editing.diff import Hunk
from app.editing.document import Document
from app.editing.language import Language, detect_language
from app.editing.mending import MENDABLE, held_hunks, mend, touched
from app.editing.review import Decision, Review
from app.editing.review_notes import note_rows, with_hidden
from app.editing.rework import changed_positions, new_side
from app.editing.rows import HUNK, NOTE, SAID, LiveRows, Row, added_origins, review_rows, with_symbols
from app.editing.symbols import Symbol, find_symbols
from app.errors import AppError
from app.tui.actions import Place, bindings
from app.tui.highlighting import Highlighter
from app.tui.messages import ContinueReply, RedoHunk, ReviewChanged
from app.tui.widgets.diff_exports import DiffExports
from editor_engine.events import Span

if TYPE_CHECKING:
    from app.editing.checks import CheckReport, CheckWarning
    from app.editing.live import LiveDiff
    from app.editing.pipeline import EditPlan, Proposal
    from app.tui.screens.file_screen import FileScreen

_TRY = "To get one, say it more precisely, select the lines in the source, or choose a larger model (f2)."
_MORE_CONTEXT = 10  # lines that enter adds above and below a hunk


class DiffView(DiffExports):
    """Hunks, or what is on the way to them."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.DIFF)]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._live: LiveDiff | None = None
        self._plan: EditPlan | None = None
        self._report: CheckReport | None = None
        self._language: Language | None = None
        self._symbols: tuple[Symbol, ...] = ()
        self._live_rows = LiveRows(())
        self._following = True
        self._extra: dict[int, int] = {}
        self._sentence = self._summarised = ""
        self._sentences: tuple[str, ...] = ()
        self._coloured: tuple[Hunk, ...] = ()

    # --- what is shown ------------------------------------------------------------------------------------------------

    def show_empty(self, sentence: str) -> None:
        """Nothing to show but a sentence."""
        self._forget()
        self.review = None
        self._sentence = sentence
        self._refill(keep=False)

    def show_live(self, plan: "EditPlan", live: "LiveDiff") -> None:
        """A run begins, or goes on."""
        before = self.review if self._live is not None and self._plan is not None else None
        self._forget()
        self._plan, self._live = plan, live
        self._colour(plan.document, plan.language)
        goes_on = bool(plan.prompt.carried) and before is not None and before.received <= len(live.hunks)
        self.review = before if goes_on and before is not None else Review.start(plan.document)
        self._following = True
        self._refill(keep=False)
        self.advance()

    def advance(self) -> None:
        """There is more of the reply."""
        if self._live is None or self.review is None:
            return
        self._take_hunks()
        self._refill(follow=self._following)

    def show_proposal(self, proposal: "Proposal") -> None:
        """The reply is whole."""
        live, review = self._live, self.review
        if live is None or review is None or review.document.data != proposal.plan.document.data:
            review = Review.start(proposal.plan.document)
        spans: Sequence[Sequence[Span]] = () if live is None else live.state().origins
        self.show_review(review.extended(proposal.hunks[review.received :]), proposal)
        self._strips.clear()
        self.origins = added_origins(proposal.plan.document, proposal.hunks, spans)
        self._refill()
        self._go_to_undecided(1)
        self.post_message(ReviewChanged(self.reviewed))

    def show_review(self, review: Review, proposal: "Proposal") -> None:
        """A review that was begun already."""
        self._forget()
        self._plan, self._report = proposal.plan, proposal.report
        self.show_hunks(review, proposal.plan.language)

    def show_hunks(self, review: Review, language: Language | None = None, notes: Sequence[str] = ()) -> None:
        """A review of hunks that need not be a model's; `notes` are said above them."""
        if self.review is not review:
            self._extra = {}
        self.review = review
        self._sentences = tuple(notes)
        self._colour(review.document, language or detect_language(review.document.name, review.document.lines[0]))
        self._refill(keep=False)
        self._go_to_undecided(1)

    def hunk_redone(self, index: int, proposal: "Proposal") -> None:
        """A hunk was done anew."""
        from app.editing.again import redone

        self._step(lambda review: redone(review, index, proposal), stay=index)

    def stop(self, sentence: str) -> None:
        """The run ended without a proposal: what came of it can be looked at, and not decided."""
        if self._live is not None and not self._live.differs:
            self.show_empty(f"{sentence} {_TRY}" if self._live.share == 1 else sentence)
            return
        self._sentence = sentence
        if self._live is None:
            self.review = None
        self._refill()

    def _forget(self) -> None:
        self._live = self._plan = self._report = None
        self._extra, self._sentence, self._sentences, self.picking, self.wanted = {}, "", (), False, ""
        self.recolour(None, None)
        self.origins, self.live_origins, self._coloured = {}, (), ()

    def _colour(self, document: Document, language: Language) -> None:
        self._language = language
        self._symbols = find_symbols(document.lines, language) or ()
        self._live_rows = LiveRows(self._symbols)
        self.recolour(Highlighter(document.lines, language), None)

    def _refill(self, *, keep: bool = True, follow: bool = False) -> None:
        """Make the rows anew from what is known."""
        rows = [Row(NOTE if self._live is not None else SAID, self._sentence)] if self._sentence else []
        rows += [Row(NOTE, said) for said in self._sentences]
        review = self.review
        if review is not None and self._live is not None:
            state = self._live.state()
            self.live_origins = state.origins
            rows += self._live_rows.now(review, state)
        elif review is not None:
            rows += note_rows(self._report)
            rows += with_symbols(with_hidden(review_rows(review, self._extra), review), review, self._symbols)
            if review.hunks != self._coloured:
                self._coloured = review.hunks
                assert self._language is not None
                self.recolour(self.highlighters[0], Highlighter(review.all_lines(), self._language))
        self.show_rows(rows, keep=keep, follow=follow)
        self._summarise()

    def _summarise(self) -> None:
        said = self._summary()
        if said != self._summarised:  # setting it paints the whole pane
            self._summarised = self.border_subtitle = said

    def _summary(self) -> str:
        if self.review is None:
            return ""
        at, count, left = self.current_hunk(), len(self.review.hunks), self.review.undecided
        so_far = " so far" if self._live is not None else ""
        return f"{at} of {count}{so_far}, {left} undecided" + (" · choosing lines" if self.picking else "")

    # --- deciding -----------------------------------------------------------------------------------------------------

    def ready(self) -> bool:
        """True while there are hunks to decide about; says so otherwise."""
        if self.review is None or not self.review.items or (self._live is not None and self._sentence):
            self.hint("There is no hunk to decide yet.")
            return False
        return True

    def _step(self, step: Callable[[Review], Review], *, stay: int | None = None) -> bool:
        """Take a step of the review, if it can be taken, and tell of it."""
        if not self.ready():
            return False
        try:
            after = step(self.reviewed)
        except AppError as error:
            self.tell(str(error), "error")
            return False
        if after.items == self.reviewed.items:
            return False
        before, self.review = self.reviewed, after
        self._recheck(before)
        self._refill()
        if stay is not None:
            self._go_to_hunk(min(stay, len(after.items)))
        self.post_message(ReviewChanged(after))
        return True

    def _take_hunks(self) -> None:
        assert self._live is not None
        review = self.reviewed
        if len(self._live.hunks) > review.received:
            self.review = review.extended(self._live.hunks[review.received :])
            self.post_message(ReviewChanged(self.reviewed))

    def _recheck(self, before: Review) -> None:
        """The checks look at other text, or, when all is decided, at what was accepted."""
        after = self.reviewed
        if self._plan is None or self._live is not None:
            return
        if not after.undecided or not before.undecided or after.hunks != before.hunks:
            from app.editing.pipeline import check_review

            self._report = check_review(self._plan, after)

    def _decide(self, decision: Decision) -> None:
        index = self.current_hunk()
        self._following = False
        self._step(lambda review: review.decide(index, decision))
        if self.review is not None:
            self._go_to_undecided(index + 1)

    def action_accept(self) -> None:
        self._decide(Decision.ACCEPTED)

    def action_reject(self) -> None:
        self._decide(Decision.REJECTED)

    def action_toggle_decision(self) -> None:
        row = self.row
        if not self.picking:
            self._step(lambda review: review.toggle(self.current_hunk()))
        elif row is not None and row.position >= 0 and row.kind in "+-":
            self._toggle_line(row)
        else:
            self.hint("No line is changed here; v ends choosing lines.")
        self._following = False

    def _toggle_line(self, row: Row) -> None:
        item = self.reviewed.item(row.hunk)
        chosen = changed_positions(item.hunk) if item.chosen is None else item.chosen
        if item.decision is Decision.REJECTED:
            chosen = frozenset()
        self._step(lambda review: review.choose(row.hunk, chosen ^ {row.position}))

    def action_pick_lines(self) -> None:
        if self.ready():
            self.picking = not self.picking
            self.look_changed()
            self._summarise()
            row = self.row
            if self.picking and (row is None or row.kind not in "+-"):
                self.go_to_change(self.current_hunk())
            if self.picking:
                self.hint("Choose lines with space; v when done.")

    def action_undo_decision(self) -> None:
        if self.ready() and not self._step(Review.undo):
            self.hint("There is no decision to take back.")

    def action_redo_decision(self) -> None:
        if self.ready() and not self._step(Review.redo):
            self.hint("There is no decision to make again.")

    def action_accept_rest(self) -> None:
        if not self.ready():
            return
        held = held_hunks(self.reviewed, self._warnings)
        self._step(lambda review: review.decide_rest(Decision.ACCEPTED, held))
        left = [item for item in self.reviewed.items if item.decision is Decision.UNDECIDED]
        if left:
            self._go_to_undecided(1)
            self.tell(f"A blocking check is about {len(left)} of them: decide by hand.", "warning")

    def action_reject_rest(self) -> None:
        self._step(lambda review: review.decide_rest(Decision.REJECTED))

    def action_split_hunk(self) -> None:
        index = self.current_hunk()
        if self.ready() and not self._step(lambda review: review.split(index), stay=index):
            self.hint("The hunk is one change; v chooses single lines.")

    @property
    def _warnings(self) -> "tuple[CheckWarning, ...]":
        return () if self._report is None else self._report.warnings

    def action_mend(self) -> None:
        if not self.ready():
            return
        here = self.current_hunk()
        mendable = [warning for warning in self._warnings if warning.code in MENDABLE]
        # What is about this hunk comes first.
        mendable.sort(key=lambda warning: here not in touched(self.reviewed, warning))
        for warning in mendable:
            if self._step(lambda review, warning=warning: mend(review, warning)):  # type: ignore[misc]
                self.hint(f"Done: {MENDABLE[warning.code]}. u takes it back.")
                return
        self.hint("No warning here can be mended.")

    # --- other text ---------------------------------------------------------------------------------------------------

    def action_edit_hunk(self) -> None:
        if not self.ready():
            return
        from app.tui.screens.hunk_editor import HunkEditor, can_edit_in_place

        index = self.current_hunk()
        lines = new_side(self.reviewed.item(index).hunk)
        if not can_edit_in_place(lines):
            self.tell("These lines have characters that only $EDITOR keeps: E.", "warning")
            return
        self.app.push_screen(HunkEditor(lines, f"Hunk {index}"), lambda edited: self._edited(index, edited))

    def action_edit_hunk_outside(self) -> None:
        if not self.ready():
            return
        index = self.current_hunk()
        text = "".join(f"{line}\n" for line in new_side(self.reviewed.item(index).hunk))
        edited = self.ui.edit_outside(text, Path(self.reviewed.document.name).suffix or ".txt")
        if edited is not None and edited != text:
            self._edited(index, edited.removesuffix("\n").split("\n") if edited else [])

    def _edited(self, index: int, lines: list[str] | None) -> None:
        if lines is not None:
            self._step(lambda review: review.edit(index, lines), stay=index)

    def action_redo_hunk(self) -> None:
        if not self.ready():
            return
        if self._live is not None or self._plan is None:
            self.hint("A hunk can be done anew when the reply is whole.")
            return
        from app.tui.screens.question import Ask

        index = self.current_hunk()
        hunk = self.reviewed.item(index).hunk
        note = Ask(f"What should the model do otherwise in hunk {index}?")

        def answered(said: str | None) -> None:
            if said:
                self.post_message(RedoHunk(index, hunk, said))

        self.app.push_screen(note, answered)

    def action_continue_reply(self) -> None:
        if self._live is None or not self._sentence:
            self.hint("There is no reply that was cut.")
        else:
            self.post_message(ContinueReply())

    # --- looking ------------------------------------------------------------------------------------------------------

    def go_to(self, entry: int) -> None:
        super().go_to(entry)
        self._following = False
        self._summarise()

    def action_diff_bottom(self) -> None:
        super().action_diff_bottom()
        self._following = True

    def action_next_hunk(self) -> None:
        row = self.row
        at = self.current_hunk()
        before = row is not None and (row.hunk == 0 or row.kind == NOTE)
        self._go_to_hunk(at if before else at + 1)

    def action_previous_hunk(self) -> None:
        row = self.row
        at = self.current_hunk()
        self._go_to_hunk(at if row is not None and row.kind != HUNK and row.hunk == at else at - 1)

    def _go_to_hunk(self, index: int) -> None:
        entry = self.entry_of_hunk(index)
        if entry is not None:
            self.go_to(entry)

    def _go_to_undecided(self, start: int) -> None:
        """The next undecided hunk from `start` on, round the end; stays where there is none."""
        review = self.reviewed
        count = len(review.items)
        for step in range(count):
            index = (start - 1 + step) % count + 1
            if review.items[index - 1].decision is Decision.UNDECIDED:
                self._go_to_hunk(index)
                return

    def action_more_context(self) -> None:
        index = self.current_hunk()
        if self.review is not None and index:
            first = self.review.item(index).hunk.changes[0].first
            self._extra[first] = self._extra.get(first, 0) + _MORE_CONTEXT
            self._refill()

    async def action_undo_last_apply(self) -> None:
        await cast("FileScreen", self.screen).action_undo_apply()
