"""What the user sees of a fault of ours: one sentence, a report that can be copied, and the way on.

Knows the report's text and where it was kept. Invariant: no traceback on the screen; nothing of the user's work is
touched.
"""

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from app.editing.clipboard import Copied
from app.errors import AppError
from app.terminal_text import visible
from app.tui.screens.dialog import Dialog


class CrashDialog(Dialog[None]):
    """An internal error, said calmly."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Close")]

    def __init__(self, sentence: str, report: str, kept: str, copy: Callable[[str], Copied]) -> None:
        """`sentence` names the fault, `report` is what `copy` can copy, `kept` says where it was written."""
        super().__init__()
        self._copy = copy
        self.sentence = sentence
        self.report = report
        self.kept = kept

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Text("Something in Redraft went wrong", style="bold"))
            yield Static(Text(visible(self.sentence)), id="crash-sentence")
            yield Static(Text(f"Your file and your decisions are untouched. {visible(self.kept)}"))
            with Horizontal(classes="buttons"):
                yield Button("Copy report", id="copy-report", variant="primary")
                yield Button("Go on", id="go-on")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "copy-report":
            self.notify(self._copied(), markup=False)
        else:
            self.dismiss(None)

    def _copied(self) -> str:
        try:
            return self._copy(self.report).sentence
        except AppError as error:
            return str(error)
