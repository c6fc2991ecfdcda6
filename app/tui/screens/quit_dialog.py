"""Leaving with hunks that are not decided: they are kept, unless the user says otherwise.

Knows a count. Invariant: escape stays, and nothing is thrown away without its own button.
"""

from enum import Enum
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from app.editing.turns import hunk_words
from app.tui.screens.dialog import Dialog


class Leaving(Enum):
    """What the user chose."""

    KEEP = "keep"
    """Leave; the next start offers what is undecided."""
    DISCARD = "discard"
    STAY = "stay"


class QuitDialog(Dialog[Leaving]):
    """Keep, throw away, or stay."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "choose('stay')", "Stay"),
        Binding("k", "choose('keep')", "Keep"),
        Binding("d", "choose('discard')", "Throw away"),
    ]

    def __init__(self, undecided: int, accepted: int) -> None:
        """Counts of hunks that are undecided, and accepted but not applied."""
        super().__init__()
        self._undecided = undecided
        self._accepted = accepted

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._sentence(), markup=False, id="quit-sentence")
            with Horizontal(classes="buttons"):
                yield Button("Keep and quit (k)", id="keep", variant="primary")
                yield Button("Throw away and quit (d)", id="discard", variant="error")
                yield Button("Stay (esc)", id="stay")

    def _sentence(self) -> str:
        parts = [f"{hunk_words(self._undecided)} undecided"] if self._undecided else []
        parts += [f"{hunk_words(self._accepted)} accepted but not applied"] if self._accepted else []
        return f"{' and '.join(parts)}. Kept ones are offered at the next start; nothing was written to the file."

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.action_choose(event.button.id or "stay")

    def action_choose(self, choice: str) -> None:
        self.dismiss(Leaving(choice))
