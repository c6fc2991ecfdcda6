"""What was left undecided, offered at the start: go on, export it as a patch, throw it away, or leave it for later.

Shows sessions and how their files are today; opens nothing itself. Invariant: escape leaves everything as it is, and
what is typed or pasted answers nothing: it was meant for the instruction, and is handed back for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Label, OptionList
from textual.widgets.option_list import Option

from app.editing.session_store import LeftSession
from app.paths import shown
from app.terminal_text import visible
from app.tui.screens.dialog import Dialog


class Resuming(Enum):
    """What to do with a left session."""

    GO_ON = "go on"
    EXPORT = "export"
    DISCARD = "discard"


@dataclass(frozen=True)
class Offer:
    """A left session and what is to be said of it."""

    left: LeftSession
    sentence: str
    """How its file is today."""


class ResumeOffer(Dialog[tuple[Resuming, LeftSession] | None]):
    """Answers with a session and what to do with it; None for later, also when something is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Later"),
        Binding("ctrl+x", "choose('export')", "Export a patch"),
        Binding("delete,ctrl+d", "choose('discard')", "Throw away"),
    ]

    def __init__(
        self, offers: Sequence[Offer], notes: Sequence[str] = (), typed: Callable[[str], object] = bool
    ) -> None:
        """`offers`: at least one. `notes`: sentences about sessions that could not be read. `typed`: takes text."""
        super().__init__()
        self._typed = typed
        self.offers = offers
        self._notes = notes

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog choice"):
            yield Label("Left undecided", markup=False, classes="title")
            yield _Sessions(self._for_later, *(Option(_row(offer)) for offer in self.offers), markup=False)
            words = "enter goes on, ctrl+x exports a patch, delete throws away, escape leaves it for later"
            yield Label("\n".join([words, *map(visible, self._notes)]), markup=False, classes="note")

    def _for_later(self, text: str) -> None:
        self._typed(text)
        if self.is_current:  # keys that were under way when the first one closed it still come here
            self.dismiss(None)

    @on(OptionList.OptionSelected)
    def go_on(self) -> None:
        """Enter or a click."""
        self.action_choose(Resuming.GO_ON.value)

    def action_choose(self, choice: str) -> None:
        marked = self.query_one(OptionList).highlighted
        if marked is not None:
            self.dismiss((Resuming(choice), self.offers[marked].left))


class _Sessions(OptionList):
    """A list that hands on what is typed."""

    def __init__(self, typed: Callable[[str], object], *rows: Option, markup: bool) -> None:
        super().__init__(*rows, markup=markup)
        self._typed = typed

    def on_key(self, event: events.Key) -> None:
        if event.is_printable and event.character:
            event.stop()
            self._typed(event.character)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self._typed(event.text)


def _row(offer: Offer) -> Text:
    session = offer.left.session
    asked = next((turn.instruction for turn in reversed(session.turns) if turn.proposed is not None), "")
    first = next(iter(asked.splitlines()), "")
    row = Text(shown(session.name), "bold")
    row.append(f"\n  {visible(first)}", "not bold")
    row.append(f"\n  {visible(offer.sentence)}", "dim not bold")
    return row
