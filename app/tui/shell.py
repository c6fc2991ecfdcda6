"""What every application of ours in a terminal can do: say a sentence, copy, hand the terminal to an editor.

Knows no screen. Invariant: what is said is text, never markup.
"""

from typing import Literal

from textual.app import App, SuspendNotSupported

from app.editing.clipboard import Copied, copy_text
from app.errors import AppError
from app.external_editor import edit_text
from app.terminal_text import visible
from app.tui.themes import THEMES


class Shell(App[None]):
    """An application with our themes."""

    def __init__(self) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.keys: dict[str, str] = {}
        """The user's own keys: action id to keys."""

    def tell(self, sentence: str, severity: Literal["information", "warning", "error"] = "information") -> None:
        """Say one sentence."""
        self.notify(visible(sentence), severity=severity, markup=False)

    def copy(self, text: str) -> Copied:
        """Put a text on the clipboard, as far as the terminal allows it, and into a file. Raises AppErrors."""
        return copy_text(text, lambda sequence: self._driver.write(sequence) if self._driver is not None else None)

    def edit_outside(self, text: str, suffix: str) -> str | None:
        """A text as the user's editor left it; None, and a sentence, where that did not work."""
        try:
            with self.suspend():
                return edit_text(text, suffix)
        except SuspendNotSupported:
            self.tell("This terminal cannot be handed to an editor.", "error")
        except AppError as error:
            self.tell(str(error), "error")
        return None
