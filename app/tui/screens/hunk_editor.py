"""Edit the new text of one hunk in place.

A text widget ends lines where it sees fit, so only lines that it gives back as they are come here. Knows lines, not
files. Invariant: what is given back are the widget's lines, joined by nobody; escape changes nothing.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from app.terminal_text import visible
from app.tui.screens.dialog import Dialog
from app.tui.widgets.text_field import TextField

NOT_TAKEN = "What was changed in this hunk is not taken yet; ctrl+s takes it."


def can_edit_in_place(lines: Sequence[str]) -> bool:
    """True when a text widget keeps every character and every line."""
    return all(line.replace("\t", "").isprintable() and len((line + "x").splitlines()) == 1 for line in lines)


class HunkEditor(Dialog[list[str] | None]):
    """The lines as they were edited; None when nothing is to change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Take it", priority=True),
        Binding("escape", "dismiss(None)", "Leave it as it was", priority=True),
    ]

    def __init__(self, lines: Sequence[str], title: str) -> None:
        super().__init__()
        self._lines = list(lines)
        self._title = title

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog hunk-editor"):
            yield Static(Text(visible(f"{self._title}: ctrl+s takes it, escape leaves it as it was.")))
            area = TextField("\n".join(self._lines), show_line_numbers=False, soft_wrap=False, tab_behavior="indent")
            area.indent_type = "tabs" if any(line.startswith("\t") for line in self._lines) else "spaces"
            yield area

    def on_mount(self) -> None:
        area = self.query_one(TextField)
        area.cursor_blink = self.app.animation_level != "none"
        area.focus()

    @property
    def is_changed(self) -> bool:
        """Leaving it would lose something."""
        return self._edited() != self._lines

    def _edited(self) -> list[str]:
        document = self.query_one(TextField).document
        lines = [document.get_line(number) for number in range(document.line_count)]
        # One empty line is what a widget without any text has.
        return [] if lines == [""] and self._lines != [""] else lines

    def action_save(self) -> None:
        self.dismiss(self._edited() if self.is_changed else None)
