"""The turns over a file: what was asked of what, what came of it, and what the next instruction works on.

Shows turns; changes nothing itself. Invariant: escape leaves base and review as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Label, OptionList
from textual.widgets.option_list import Option

from app.editing.turns import Turn, Turns
from app.terminal_text import visible
from app.tui.screens.dialog import Dialog


class Chosen(Enum):
    """What to do with a turn."""

    BASE = "base"
    """The next instruction works on what it left."""
    RETRY = "retry"
    """Ask its instruction again, of its own base."""
    REVIEW = "review"
    """Decide what is left of it."""
    EXPORT = "export"
    """Write what is left of it as a patch."""
    THROW_AWAY = "throw away"
    """Reject what is left of it."""


@dataclass(frozen=True)
class TurnChoice:
    """The screen's answer."""

    number: int
    """0 is the file itself."""
    what: Chosen


class TurnsScreen(Dialog[TurnChoice | None]):
    """A list of turns, the file itself first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close"),
        Binding("r", "choose('retry')", "Retry"),
        Binding("v", "choose('review')", "Review"),
        Binding("ctrl+x", "choose('export')", "Export a patch"),
        Binding("delete,ctrl+d", "choose('throw away')", "Throw away"),
    ]

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self._turns = turns

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog choice"):
            yield Label("Turns", markup=False, classes="title")
            yield OptionList(*(Option(row) for row in turn_rows(self._turns)), markup=False)
            words = (
                "v reviews what is left (stale: does not fit the file now), ctrl+x exports that as a patch, "
                "delete throws it away; "
                "enter makes it the base of the next instruction, r asks it again, escape closes"
            )
            yield Label(words, markup=False, classes="note")

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = self._turns.base

    @on(OptionList.OptionSelected)
    def take_base(self, event: OptionList.OptionSelected) -> None:
        """Enter or a click."""
        self.dismiss(TurnChoice(event.option_index, Chosen.BASE))

    def action_choose(self, choice: str) -> None:
        marked = self.query_one(OptionList).highlighted
        if marked:  # the file itself was not asked for
            self.dismiss(TurnChoice(marked, Chosen(choice)))


def turn_rows(turns: Turns) -> Sequence[Text]:
    """A row for the file and one for each turn."""
    rows = [_row(turns.base == 0, "0", "the file as it was read", "")]
    for turn in turns.turns:
        first = next(iter(turn.instruction.splitlines()), "")
        rows.append(_row(turns.base == turn.number, str(turn.number), first, outcome(turn, turns.unfit(turn.number))))
    return rows


def outcome(turn: Turn, unfit: int = 0) -> str:
    """What came of a turn, in a clause; `unfit`: how many of its hunks do not fit the file as it is."""
    based = "of the file" if turn.based_on == 0 else f"of turn {turn.based_on}"
    if turn.region is not None:
        based += f", lines {turn.region.first}-{turn.region.last}"
    if turn.failure is not None:
        return f"{based}: {turn.failure}"
    if turn.review is None:
        return f"{based}: running"
    if turn.applied and not turn.left:
        return f"{based}: applied"  # its review has no hunks any more: they are lines of the file
    count = len(turn.review.hunks)
    accepted = len(turn.review.accepted)
    stale = f", {unfit} stale" if unfit else ""
    return f"{based}: {accepted} of {count} accepted, {turn.review.undecided} undecided{stale}"


def _row(is_base: bool, number: str, label: str, hint: str) -> Text:
    row = Text(f"{'*' if is_base else ' '} {number:>2}  ", "bold", no_wrap=True, overflow="ellipsis")
    row.append(visible(label), "not bold")
    if hint:
        row.append(f"\n      {visible(hint)}", "dim not bold")
    return row
