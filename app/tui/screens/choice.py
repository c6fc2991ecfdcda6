"""Choose one of a list by typing a few letters: files, recipes, turns, actions.

Knows labels and values, not what they stand for. Invariant: what was typed last decides what is listed and what enter
takes, also when an answer to what was typed before comes later; labels are shown as text, never as markup.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option
from textual.worker import Worker, WorkerCancelled, WorkerFailed

from app.terminal_text import visible
from app.tui.screens.dialog import Dialog

Value = TypeVar("Value")


@dataclass(frozen=True)
class Choice(Generic[Value]):
    """One row of the list."""

    label: str
    value: Value
    hint: str = ""
    """Said behind the label, in a quieter colour."""


class ChoiceScreen(Dialog[Value | None]):
    """A line to type in over a list; enter takes the marked row, escape none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close"),
        Binding("down,ctrl+n", "mark(1)", "Next", show=False, priority=True),
        Binding("up,ctrl+p", "mark(-1)", "Previous", show=False, priority=True),
        Binding("pagedown", "mark(10)", "Further", show=False, priority=True),
        Binding("pageup", "mark(-10)", "Back", show=False, priority=True),
    ]

    def __init__(self, title: str, rows: Callable[[str], Sequence[Choice[Value]]], *, slow: bool = False) -> None:
        """`rows` answers what was typed, best first. `slow`: it takes a while, so a thread asks it."""
        super().__init__()
        self._title = title
        self._rows = rows
        self._slow = slow
        self._asked = 0
        self._answered: str | None = None
        self._asking: Worker[None] | None = None
        self.choices: Sequence[Choice[Value]] = ()
        """What is listed."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog choice"):
            yield Label(self._title, markup=False, classes="title")
            yield Input(placeholder="Type a few letters")
            yield OptionList(markup=False)
            yield Label("", markup=False, classes="note")

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = self.app.animation_level != "none"
        self.list_again()

    def note(self, sentence: str) -> None:
        """Say something below the list."""
        self.query_one(".note", Label).update(visible(sentence))

    @on(Input.Changed)
    def list_again(self) -> None:
        """Ask for the rows of what is typed now."""
        self._asked += 1
        query = self.query_one(Input).value
        if self._slow:
            self._asking = self._ask(query, self._asked)
        else:
            self._show(query, self._rows(query))

    @work(group="rows", exclusive=True, exit_on_error=False)
    async def _ask(self, query: str, number: int) -> None:
        rows = await asyncio.to_thread(self._rows, query)
        if number == self._asked:
            self._show(query, rows)

    def _show(self, query: str, rows: Sequence[Choice[Value]]) -> None:
        listed = self.query_one(OptionList)
        # A list of the same that has grown meanwhile leaves the mark where the user has put it.
        marked = self.choices[listed.highlighted].value if query == self._answered and listed.highlighted else None
        at = next((number for number, choice in enumerate(rows) if choice.value == marked), 0)
        self.choices, self._answered = rows, query
        listed.set_options([Option(_row(choice)) for choice in rows])
        if rows:
            listed.highlighted = at

    def action_mark(self, step: int) -> None:
        listed = self.query_one(OptionList)
        if self.choices:
            listed.highlighted = min(max((listed.highlighted or 0) + step, 0), len(self.choices) - 1)

    @on(Input.Submitted)
    async def take(self) -> None:
        """Enter: the marked row of what was typed before it."""
        while self._asking is not None and not self._asking.is_finished:
            with contextlib.suppress(WorkerFailed, WorkerCancelled):
                await self._asking.wait()
        marked = self.query_one(OptionList).highlighted
        if self.choices and marked is not None:
            self.dismiss(self.choices[marked].value)

    @on(OptionList.OptionSelected)
    def clicked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.choices[event.option_index].value)

    def action_leave(self) -> None:
        self.dismiss(None)


def _row(choice: Choice[Value]) -> Text:
    row = Text(visible(choice.label), no_wrap=True, overflow="ellipsis")
    if choice.hint:
        row.append(f"  {visible(choice.hint)}", "dim")
    return row
