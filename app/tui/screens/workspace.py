"""The one screen of an edit: source, diff, instruction, status; passes messages between what each of them knows.

Knows which message leads to which call. The edit is `app.editing`, the engine `edit_worker`, the file `file_screen`.
What only a run needs is imported by the first. Invariant: one run at a time, and whatever ends it, the screen is ready
for the next.
"""

from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.screen import Screen

from app.editing.region import Region
from app.editing.turns import hunk_words, taken_back_words
from app.recall import load_recall, remember_instruction
from app.tui import messages as say
from app.tui.actions import Place, bindings
from app.tui.edit_worker import EditWorker
from app.tui.screens.file_screen import LOOK_AGAIN_S, FileScreen
from app.tui.widgets.banner import Banner
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from app.tui.widgets.key_bar import KeyBar
from app.tui.widgets.source_view import SourceView
from app.tui.widgets.status_line import Status, StatusLine

if TYPE_CHECKING:
    from app.editing.live import LiveDiff
    from app.editing.pipeline import EditPlan
    from app.rates import Rates

_PANES = ("source", "diff", "instruction")


class WorkspaceScreen(FileScreen):
    """Edit a file, watch it happen, review."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.WORKSPACE)]
    AUTO_FOCUS = "#instruction"

    def __init__(self, worker: EditWorker, *, draft: bool, strict: bool) -> None:
        super().__init__()
        self.worker = worker
        self.status = Status()
        self._draft = draft
        self._strict = strict
        self._rates: Rates | None = None
        self._counted: tuple[int, int] | None = None
        self._warmed = 0
        self._run: tuple[EditPlan, LiveDiff] | None = None
        self._redoing: int | None = None
        self._stopping = False
        self._base_chosen = False
        self._text_then = ""

    # --- layout -------------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Banner(id="banner")
        with Horizontal(id="panes"):
            yield SourceView(id="source")
            yield DiffView(id="diff")
        yield InstructionBox(id="instruction")
        yield StatusLine(id="status")
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(DiffView).border_title = "Diff"
        self.query_one(InstructionBox).offer(load_recall().instructions)
        self.add_class("-source")
        self.show_turn()
        self.set_interval(LOOK_AGAIN_S, self.look_again)
        self.engine_replaced()
        self.screen_layout_refresh_signal.subscribe(self, self._say_above_instruction)
        self.ui.workspace_is_there()

    def _say_above_instruction(self, _screen: Screen[object]) -> None:
        """Keep what is said off what is typed, off the border that counts hunks, and off the warnings over a diff."""
        racks = self.query("ToastRack")
        if not racks:
            return  # the screen is being taken down
        rack, border = racks.first(), 1
        below = self.size.height - self.query_one(InstructionBox).region.y + border
        if rack.styles.margin.bottom != below:
            rack.styles.margin = (0, 0, below, 0)

    def on_screen_suspend(self) -> None:
        self.add_class("-covered")

    def on_screen_resume(self) -> None:
        self.remove_class("-covered")

    def show_status(self, **changes: object) -> None:
        """Change what the status line says."""
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]  # fields of Status
        self.query_one(StatusLine).show(self.status)

    def action_next_pane(self) -> None:
        now = self.focused.id if self.focused is not None else None
        self.show_pane(_PANES[(_PANES.index(now) + 1) % len(_PANES)] if now in _PANES else "source")

    def show_pane(self, name: str) -> None:
        """Focus a pane; where there is room for one only, show it."""
        if name != "instruction":
            self.set_class(name == "source", "-source")
        self.query_one(f"#{name}").focus()

    def await_instruction(self) -> None:
        self.query_one(InstructionBox).put("")
        self.show_pane("instruction")
        self.show_status(state=self._idle_state(), decided=None)

    def show_base(self, *, keep_place: bool = False) -> None:
        super().show_base(keep_place=keep_place)
        self._warm()

    # --- before a run -------------------------------------------------------------------------------------------------

    def _warm(self) -> None:
        """Let the engine count and read what the next instruction works on."""
        self._counted, self._warmed = None, 0
        self.show_status(forecast="")
        if self.turns is not None and not self.at_work:
            document = self.query_one(SourceView).document or self.turns.document
            self.app.run_worker(self.worker.warm(document), group="warm", exit_on_error=False)

    def review_turn(self, number: int) -> None:
        before = self.turns
        super().review_turn(number)
        if self.turns is not before:
            self._run = None  # a reply that was cut was another turn's
            self.show_status(state=self._idle_state())
            self.show_pane("diff")

    def switch_base(self, number: int) -> None:
        """Let the next instruction work on what turn `number` left; 0 is the file."""
        if self.turns is not None and self.may_change_file():
            self.turns = self.turns.switch_base(number)
            self._base_chosen = True
            self.show_base()
            lacking = self.turns.begin("", None).taken_back
            if lacking:
                words = taken_back_words(lacking)
                self.tell(
                    f"What turn {number} left lacks {words} of the file; what comes of it undoes that.", "warning"
                )

    @on(say.InstructionChanged)
    @on(say.RegionChanged)
    def forecast(self) -> None:
        """Say the tokens and seconds of what enter would start."""
        source = self.query_one(SourceView)
        if source.document is None or self._counted is None or self.at_work:
            return
        from app.editing.warm import estimate

        region = source.selected_lines
        budget = estimate(source.document, self._counted, self.query_one(InstructionBox).text, region, self._warmed)
        where = "file" if region is None else f"lines {region.first}-{region.last}"
        seconds = "" if self._rates is None else f", {max(self._rates.seconds(budget), 1):.0f} s"
        self.show_status(forecast=f"{where}: about {budget.expected} tokens{seconds}")

    @on(say.InstructionGiven)
    def instruction_given(self, message: say.InstructionGiven) -> None:
        self.run_edit(message.text, self.query_one(SourceView).selected_lines)

    @on(say.EditorWanted)
    def editor_wanted(self, message: say.EditorWanted) -> None:
        text = self.ui.edit_outside(message.text, ".md")
        if text is not None:
            self.query_one(InstructionBox).put(text.removesuffix("\n"))

    def action_retry(self) -> None:
        turn = None if self.turns is None else self.turns.current
        if self.turns is None or turn is None:
            self.tell("There is nothing to run again yet.", "warning")
        else:
            self.run_edit(turn.instruction, self.turns.region_of(turn.number))

    def retry(self, number: int) -> None:
        """Ask what turn `number` asked again, of what it asked it of."""
        if self.turns is not None and self.may_change_file():
            self.switch_base(self.turns.turns[number - 1].based_on)
            self.run_edit(self.turns.turns[number - 1].instruction, self.turns.region_of(number))

    # --- a run --------------------------------------------------------------------------------------------------------

    def run_edit(self, instruction: str, region: Region | None) -> None:
        """Ask the model, on the base that is chosen."""
        if self.turns is None:
            self.tell("Open a file first.", "warning")
        elif self.at_work:
            self.tell("The model is at work; escape stops it.", "warning")
        elif not instruction.strip():
            self.tell("The instruction is empty; say what to change.", "warning")
        else:
            from app.editing.pipeline import EditOrder

            region = self._take_accepted(region)
            self.turns = self.turns.begin(instruction, region)
            base = self.turns.turns[-1].base
            lines = None if region is None else f"{region.first}:{region.last}"
            order = EditOrder(instruction, lines=lines, draft=self._draft, strict=self._strict)
            self.show_status(decided=None)
            self._begin(self.worker.edit(base, order))
            remember_instruction(instruction)
            self.query_one(InstructionBox).offer(load_recall().instructions)

    def _take_accepted(self, region: Region | None) -> Region | None:
        """Hunks that were accepted and not applied are part of what comes next, unless the user chose another base."""
        assert self.turns is not None
        turns, moved, turn = self.turns, region, self.turns.current
        said = []
        if not self._base_chosen:
            turns, moved = turns.on_accepted(region)
        self._base_chosen = False
        if turns is not self.turns:
            self.turns = turns
            super().show_base(keep_place=True)
            said.append(f"This works on what you accepted of turn {turns.base}.")
        if turn is not None and turn.review is not None and turn.review.undecided:
            said.append(f"{hunk_words(turn.review.undecided)} left undecided in turn {turn.number}; f7 leads there.")
        if said:
            self.tell(" ".join(said))
        return moved

    @on(say.ContinueReply)
    def continue_reply(self) -> None:
        turn = None if self.turns is None else self.turns.current
        if self.turns is None or turn is None or self._run is None or turn.failure is None or self.at_work:
            self.tell("There is no reply that ended too early.", "warning")
            return
        plan, live = self._run
        self.turns = self.turns.again()
        self._begin(self.worker.go_on(plan, live.text))

    @on(say.RedoHunk)
    def redo_hunk(self, message: say.RedoHunk) -> None:
        turn = None if self.turns is None else self.turns.current
        if turn is None or turn.proposal is None or turn.review is None or self.at_work:
            self.tell("The model is still at work." if self.at_work else "There is no hunk to do anew.", "warning")
            return
        plan = replace(turn.proposal.plan, document=turn.review.document)
        self._begin(self.worker.redo(plan, message.hunk, message.note), redoing=message.index)

    def _begin(self, run: Coroutine[None, None, None], redoing: int | None = None) -> None:
        self.at_work, self._stopping, self._redoing, self._run = True, False, redoing, None
        self._text_then = self.query_one(InstructionBox).text
        self.show_status(state="reading", forecast="")
        self.app.run_worker(run, group="edit", exit_on_error=False)

    def action_cancel(self) -> None:
        if not self.at_work:
            self.query_one(SourceView).select(None)
        elif self._stopping:
            self.ui.abandon_engine()
        else:
            self._stopping = True
            self.worker.cancel()
            self.show_status(state="stopping")

    def run_broke(self, sentence: str) -> None:
        """What was running ended without a proposal."""
        if self.at_work and self.turns is not None:
            if self._redoing is None:
                self.turns = self.turns.failed(sentence)
                self.query_one(DiffView).stop(sentence)
            self._ended()

    @property
    def is_partly_written(self) -> bool:
        """A reply is being written that has hunks already; what there is of it leaves with the program."""
        turn = None if self.turns is None else self.turns.current
        if not self.at_work or turn is None or turn.proposal is not None:
            return False
        return turn.review is not None and bool(turn.review.items)

    def _ended(self) -> None:
        self.at_work = False
        source = self.query_one(SourceView)
        source.show_acceptance(source.acceptance, None)
        self.show_status(state=self._idle_state(), forecast="")
        self.keep_soon()
        if self._counted is None:  # the base or the engine changed meanwhile
            self._warm()

    # --- what the engine says -----------------------------------------------------------------------------------------

    def engine_replaced(self) -> None:
        """Another engine: load it, and let it read the file."""
        self._rates = None
        self.show_status(engine=None, state="starting")
        self.app.run_worker(self.worker.connect(), group="connect", exit_on_error=False)
        self._warm()

    @on(say.EngineReady)
    def engine_ready(self, message: say.EngineReady) -> None:
        self._rates = message.rates
        self.show_status(engine=message.engine, state=self.status.state if self.at_work else self._idle_state())
        if message.engine.choice is not None:
            self.tell(message.engine.choice)
        for note in message.engine.notes:
            self.tell(note, "warning")
        self.forecast()

    @on(say.EngineNote)
    def engine_note(self, message: say.EngineNote) -> None:
        if self.status.engine is None:
            self.show_status(state=message.sentence.removesuffix("."))
        else:
            self.tell(message.sentence, "warning")

    @on(say.EngineFailed)
    def engine_failed(self, message: say.EngineFailed) -> None:
        if self.status.state != "no engine":  # counting fails for the same reason as loading
            self.show_status(state="no engine")
            self.tell(str(message.error), "error")

    @on(say.Counted)
    def counted(self, message: say.Counted) -> None:
        document = self.query_one(SourceView).document
        if document is not None and message.document.data == document.data:
            self._counted = (message.prompt, message.source)
            self.forecast()

    @on(say.Warmed)
    def warmed(self, message: say.Warmed) -> None:
        if self._counted is None or self.at_work:
            return
        self._warmed = message.done
        self.show_status(state=self._idle_state() if message.finished else f"reading {message.done}/{message.total}")
        self.forecast()

    def _idle_state(self) -> str:
        return "review" if self.is_current_left() else "ready"

    @on(say.EditPlanned)
    def edit_planned(self, message: say.EditPlanned) -> None:
        seconds = "" if message.expected_s is None else f"about {max(message.expected_s, 1):.0f} s"
        self.show_status(engine=message.plan.engine, forecast=seconds)
        self._run = (message.plan, message.live)
        self.query_one(SourceView).follow()
        if self._redoing is None:
            self.query_one(DiffView).show_live(message.plan, message.live)
            self.set_class(False, "-source")

    @on(say.EditProgress)
    def edit_progress(self, message: say.EditProgress) -> None:
        figures = message.figures
        self.show_status(figures=figures)
        if not self.at_work or self._run is None:
            self.query_one(SourceView).show_acceptance(message.lines, None)
            return
        self.query_one(SourceView).show_acceptance(message.lines, self._run[1].reached or None)
        if figures.passes and self._counted is not None:
            self._warmed = self._counted[0]  # the prompt is read, and stays in the cache
        if figures.characters and self._redoing is None:
            self.query_one(DiffView).advance()
        share = self._run[1].share
        if share:
            self.show_status(forecast=f"{share:.0%}, {figures.decode_s * (1 - share) / share:.0f} s left")
        reading = f"reading {figures.prefill_done}/{figures.prefill_total}"
        self.show_status(state="stopping" if self._stopping else "writing" if figures.passes else reading)

    @on(say.EditProposed)
    def edit_proposed(self, message: say.EditProposed) -> None:
        assert self.turns is not None
        diff = self.query_one(DiffView)
        if self._redoing is not None:
            diff.hunk_redone(self._redoing, message.proposal)
        else:
            self.turns = self.turns.proposed(message.proposal)
            diff.show_proposal(message.proposal)
        self._ended()
        if self.query_one(InstructionBox).has_focus and self.query_one(InstructionBox).text != self._text_then:
            self.tell(
                "The edit is ready to review; f6 leads to its pane."
            )  # letters of the next instruction decide nothing
        else:
            self.show_pane("diff")

    @on(say.EditFailed)
    def edit_failed(self, message: say.EditFailed) -> None:
        self.run_broke(str(message.error))
        self.tell(str(message.error), "warning")

    @on(say.ReviewChanged)
    def review_changed(self, message: say.ReviewChanged) -> None:
        # A run may have failed while the message was on its way.
        if self.turns is None or self.turns.current is None or self.turns.current.failure is not None:
            return
        self.turns = self.turns.decided(message.review)
        count = len(message.review.hunks)
        self.show_status(decided=(count - message.review.undecided, count))
        self.keep_soon()
