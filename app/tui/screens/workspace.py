"""The one screen of an edit: source, diff, instruction, status; passes messages between what each of them knows.

Knows which message leads to which call. The edit is `app.editing`, the engine `edit_worker`. Invariant: everything that
was asked and decided is in `turns`, a value that widgets only show.
"""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Footer

from app.editing.document import Document, open_document
from app.editing.pipeline import EditOrder
from app.editing.region import Region
from app.editing.reread import look_again
from app.editing.turns import Turns
from app.editing.warm import estimate
from app.errors import AppError
from app.paths import shown
from app.rates import Rates
from app.tui import messages as say
from app.tui.actions import Place, bindings
from app.tui.edit_worker import EditWorker
from app.tui.widgets.banner import Banner
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from app.tui.widgets.source_view import SourceView
from app.tui.widgets.status_line import Status, StatusLine

if TYPE_CHECKING:
    from app.tui.app import RedraftApp

LOOK_AGAIN_S = 2.0
"""Between two looks at the file on disk."""
_WELCOME = "Say below what to change, and press enter. Nothing is written before you apply."


class WorkspaceScreen(Screen[None]):
    """Edit a file, watch it happen, review."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.WORKSPACE)]
    AUTO_FOCUS = "#instruction"

    def __init__(self, worker: EditWorker, *, draft: bool, strict: bool) -> None:
        super().__init__()
        self.worker = worker
        self.turns: Turns | None = None
        self._draft = draft
        self._strict = strict
        self._status = Status()
        self._rates: Rates | None = None
        self._counted: tuple[int, int] | None = None
        self._warmed = 0
        self._at_work = False
        self._dismissed: str | None = None

    # --- layout -------------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Banner(id="banner")
        with Horizontal(id="panes"):
            yield SourceView(id="source")
            yield DiffView(id="diff")
        yield InstructionBox(id="instruction")
        yield StatusLine(id="status")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one(DiffView).border_title = "Diff"
        self.query_one(DiffView).show_empty(_WELCOME)
        self.add_class("-source")
        self.set_interval(LOOK_AGAIN_S, self.look_again)
        self.app.run_worker(self.worker.connect(), group="connect", exit_on_error=False)

    @property
    def ui(self) -> "RedraftApp":
        """The app, by its own type."""
        from app.tui.app import RedraftApp  # the app imports this screen

        assert isinstance(self.app, RedraftApp)
        return self.app

    def show_status(self, **changes: object) -> None:
        """Change what the status line says."""
        self._status = replace(self._status, **changes)  # type: ignore[arg-type]  # fields of Status
        self.query_one(StatusLine).show(self._status)

    # --- the file -----------------------------------------------------------------------------------------------------

    def open(self, document: Document) -> None:
        """Show a file and begin to read it."""
        self.turns = Turns(document)
        self._show_document(document)
        self.query_one(DiffView).show_empty(_WELCOME)
        self._warm(document)

    def _show_document(self, document: Document, *, keep_place: bool = False) -> None:
        self._counted, self._warmed, self._dismissed = None, 0, None
        source = self.query_one(SourceView)
        source.show(document, keep_place=keep_place)
        source.border_title = shown(document.name)
        source.border_subtitle = f"{len(document.lines)} lines, {document.codec.label}, {document.newline}"
        self.query_one(Banner).say("")

    def _warm(self, document: Document) -> None:
        self.app.run_worker(self.worker.warm(document), group="warm", exit_on_error=False)

    async def look_again(self) -> None:
        """Compare the file on disk with what was read."""
        if self.turns is None:
            return
        document = self.turns.document
        newer = await asyncio.to_thread(look_again, document)
        if self.turns is None or self.turns.document is not document:
            return
        if newer is None:
            self.query_one(Banner).say("")
        else:
            self.post_message(say.FileChanged(newer.document, newer.sentence))

    @on(say.FileChanged)
    def file_changed(self, message: say.FileChanged) -> None:
        way = " f8 reads it again." if message.newer is not None else " What you have here is kept."
        self.query_one(Banner).say(message.sentence + way)

    def action_reload(self) -> None:
        if self.turns is None or self._at_work:
            return
        try:
            document = open_document(self.turns.document.name, self.turns.document.codec.name)
        except AppError as error:
            self.ui.tell(str(error), "error")
            return
        self.turns = Turns(document)
        self._show_document(document, keep_place=True)
        self.query_one(DiffView).show_empty(_WELCOME)
        self._warm(document)

    # --- the instruction ----------------------------------------------------------------------------------------------

    @on(say.InstructionGiven)
    def instruction_given(self, message: say.InstructionGiven) -> None:
        self.run_edit(message.text, self.query_one(SourceView).selected_lines)

    def run_edit(self, instruction: str, region: Region | None) -> None:
        """Ask the model."""
        if self.turns is None:
            self.ui.tell("Open a file first.", "warning")
        elif self._at_work:
            self.ui.tell("The model is at work; escape stops it.", "warning")
        elif not instruction.strip():
            self.ui.tell("The instruction is empty; say what to change.", "warning")
        else:
            self.turns = self.turns.begin(instruction, region)
            self._at_work = True
            self.show_status(state="reading", decided=None)
            lines = None if region is None else f"{region.first}:{region.last}"
            order = EditOrder(instruction, lines=lines, draft=self._draft, strict=self._strict)
            turn = self.turns.last
            assert turn is not None
            self.app.run_worker(self.worker.edit(turn.base, order), group="edit", exit_on_error=False)

    @on(say.InstructionChanged)
    @on(say.RegionChanged)
    def _forecast(self) -> None:
        """Tokens and seconds of what enter would start."""
        if self.turns is None or self._counted is None:
            return
        text = self.query_one(InstructionBox).text
        region = self.query_one(SourceView).selected_lines
        budget = estimate(self.turns.document, self._counted, text, region, self._warmed)
        seconds = "" if self._rates is None else f", {max(self._rates.seconds(budget), 1):.0f} s"
        self.show_status(forecast=f"about {budget.expected} tokens{seconds}")

    def action_cancel(self) -> None:
        if self._at_work:
            self.worker.cancel()
            self.show_status(state="stopping")
        else:
            self.query_one(SourceView).select(None)

    def action_retry(self) -> None:
        last = None if self.turns is None else self.turns.last
        if last is None:
            self.ui.tell("There is nothing to run again yet.", "warning")
        else:
            self.run_edit(last.instruction, last.region)

    def action_next_pane(self) -> None:
        order = ["source", "diff", "instruction"]
        now = self.focused.id if self.focused is not None else None
        self.show_pane(order[(order.index(now) + 1) % len(order)] if now in order else "source")

    def show_pane(self, name: str) -> None:
        """Focus a pane; where there is room for one only, show it."""
        if name in ("source", "diff"):
            self.set_class(name == "source", "-source")
        self.query_one(f"#{name}").focus()

    def engine_replaced(self) -> None:
        """Another engine: load it, and let it read the file."""
        self.show_status(engine=None, state="starting")
        self.app.run_worker(self.worker.connect(), group="connect", exit_on_error=False)
        if self.turns is not None:
            self._warm(self.turns.document)

    def run_broke(self, sentence: str) -> None:
        """A fault of ours ended what was running."""
        if self._at_work:
            assert self.turns is not None
            self.turns = self.turns.failed(sentence)
            self._ended("ready")

    # --- what the engine says -----------------------------------------------------------------------------------------

    @on(say.EngineReady)
    def engine_ready(self, message: say.EngineReady) -> None:
        self._rates = message.rates
        self.show_status(engine=message.engine, state="ready" if not self._at_work else self._status.state)
        for note in message.engine.notes:
            self.ui.tell(note, "warning")
        self._forecast()

    @on(say.EngineFailed)
    def engine_failed(self, message: say.EngineFailed) -> None:
        self.show_status(state="no engine")
        self.ui.tell(str(message.error), "error")

    @on(say.Counted)
    def counted(self, message: say.Counted) -> None:
        if self.turns is not None and message.document is self.turns.document:
            self._counted = (message.prompt, message.source)
            self._forecast()

    @on(say.Warmed)
    def warmed(self, message: say.Warmed) -> None:
        if self.turns is None or message.document is not self.turns.document:
            return
        self._warmed = message.done
        if not self._at_work:
            self.show_status(state="ready" if message.finished else f"reading {message.done}/{message.total}")
        self._forecast()

    @on(say.EditPlanned)
    def edit_planned(self, message: say.EditPlanned) -> None:
        self.query_one(DiffView).show_live(message.plan)
        self.set_class(False, "-source")
        self.show_status(engine=message.plan.engine)

    @on(say.EditProgress)
    def edit_progress(self, message: say.EditProgress) -> None:
        figures = message.figures
        if message.texts:
            self.query_one(DiffView).feed(message.texts)
        state = "writing" if figures.passes else f"reading {figures.prefill_done}/{figures.prefill_total}"
        self.query_one(SourceView).show_acceptance(message.lines, figures.source_line)
        self.show_status(figures=figures, state=state if self._at_work else self._status.state)

    @on(say.EditProposed)
    def edit_proposed(self, message: say.EditProposed) -> None:
        assert self.turns is not None
        self.turns = self.turns.proposed(message.proposal)
        self.query_one(DiffView).show_proposal(message.proposal)
        self._ended("review")
        self.show_pane("diff")

    @on(say.EditFailed)
    def edit_failed(self, message: say.EditFailed) -> None:
        assert self.turns is not None
        self.turns = self.turns.failed(str(message.error))
        self.query_one(DiffView).stop(str(message.error))
        self._ended("ready")
        self.ui.tell(str(message.error), "warning")

    def _ended(self, state: str) -> None:
        self._at_work = False
        self.show_status(state=state)
        self.query_one(SourceView).show_acceptance(self.query_one(SourceView).acceptance, None)

    @on(say.ReviewChanged)
    def review_changed(self, message: say.ReviewChanged) -> None:
        if self.turns is None or self.turns.last is None:
            return
        self.turns = self.turns.decided(message.review)
        count = len(message.review.hunks)
        self.show_status(decided=(count - message.review.undecided, count))
