"""Where the user says what to change.

Knows text and its history. Invariant: what was typed is never lost by looking at older instructions.
"""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import BindingType

from app.tui.actions import ACTIONS, Place, bindings
from app.tui.messages import EditorWanted, InstructionChanged, InstructionGiven
from app.tui.widgets.text_field import TextField

_OWN = {action.id for action in ACTIONS if action.place is Place.INSTRUCTION}


class InstructionBox(TextField):
    """A few lines of plain words; enter runs them."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.INSTRUCTION)]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, soft_wrap=True, show_line_numbers=False, placeholder="What to change, in plain words")
        self._older: tuple[str, ...] = ()
        self._at = -1
        self._draft = ""

    def on_mount(self) -> None:
        self.cursor_blink = self.app.animation_level != "none"

    def offer(self, older: Sequence[str]) -> None:
        """Instructions to go back to, newest first."""
        self._older, self._at = tuple(older), -1

    def put(self, instruction: str) -> None:
        """Replace what is typed; the box's own undo brings it back."""
        self.replace(instruction, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def on_key(self, event: events.Key) -> None:
        """Leave keys that mean an action of ours to their binding, not to the text.

        The bindings are no priority ones: those overtake characters that were typed before them.
        """
        if event.is_printable:
            return
        bound = self.screen.active_bindings.get(event.key)
        if bound is not None and bound.node is self and bound.binding.id in _OWN:
            event.prevent_default()

    def on_text_area_changed(self) -> None:
        self.post_message(InstructionChanged(self.text))

    def action_run_edit(self) -> None:
        self.post_message(InstructionGiven(self.text))

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_recall_older(self) -> None:
        self._recall(self._at + 1)

    def action_recall_newer(self) -> None:
        self._recall(self._at - 1)

    def action_edit_outside(self) -> None:
        self.post_message(EditorWanted(self.text))

    def _recall(self, at: int) -> None:
        if not -1 <= at < len(self._older):
            return
        if self._at == -1:
            self._draft = self.text
        self._at = at
        self.put(self._draft if at == -1 else self._older[at])
