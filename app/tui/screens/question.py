"""Small dialogs: a question with two answers, and one line of text.

Know a sentence; what follows is the asker's. Invariant: escape is always the answer that changes nothing.
"""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Static

from app.terminal_text import visible
from app.tui.screens.dialog import Dialog


class Question(Dialog[bool]):
    """Yes or no; no is focused."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "answer(False)", "No"),
        Binding("y", "answer(True)", "Yes"),
        Binding("left,right", "app.focus_next", show=False),
    ]
    AUTO_FOCUS = "#no"

    def __init__(self, sentence: str, yes: str = "Yes", no: str = "No") -> None:
        super().__init__()
        self.sentence = sentence
        self._labels = (yes, no)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Text(visible(self.sentence)))
            with Horizontal(classes="buttons"):
                yield Button(self._labels[0], id="yes", variant="primary")
                yield Button(self._labels[1], id="no")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class Ask(Dialog[str | None]):
    """One line of text; None when the user would rather not."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Never mind")]

    def __init__(self, title: str, text: str = "") -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Text(visible(self._title)))
            yield Input(self._text)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)
