"""Help: every action with its keys, those that work where the user is first.

Shows `help_text`; knows no action. Invariant: it scrolls with the keys that scroll anywhere, and any other closes it
only when it says so.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from app.tui.help_text import HelpSection
from app.tui.screens.dialog import Dialog


class HelpScreen(Dialog[None]):
    """All keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,question_mark", "dismiss", "Close"),
        Binding("j", "scroll(1)", "Down", show=False),
        Binding("k", "scroll(-1)", "Up", show=False),
    ]

    def __init__(self, sections: Sequence[HelpSection]) -> None:
        super().__init__()
        self._sections = sections

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog tall"):
            yield Static(Text("Keys (escape closes)"), classes="title")
            for section in self._sections:
                yield Static(Text(section.heading), classes="heading")
                yield Static(_table(section))

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def action_scroll(self, step: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=step, animate=False)


def _table(section: HelpSection) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=18, no_wrap=True)
    table.add_column()
    for keys, words in section.rows:
        table.add_row(Text(keys, "bold"), Text(words))
    return table
