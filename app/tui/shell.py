"""What every application of ours in a terminal can do: say a sentence, copy, hand the terminal over, end on a fault.

Knows no screen. Invariant: what is said is text, never markup.
"""

import traceback
from typing import ClassVar, Literal

from rich.text import Text
from textual.app import App, SuspendNotSupported

from app.crash_report import write_report
from app.editing.clipboard import Copied, copy_text
from app.errors import AppError
from app.external_editor import edit_text
from app.terminal_text import visible
from app.tui.themes import THEMES


class Shell(App[None]):
    """An application with our themes."""

    KEPT: ClassVar[str] = ""
    """What to say of the user's work when a fault ends the program."""

    def __init__(self, theme: str) -> None:
        """`theme`: a name, taken before any style sheet is parsed; a change parses all of them again, 20 ms."""
        super().__init__()
        for own in THEMES:
            self.register_theme(own)
        self.set_reactive(Shell.theme, theme)
        self._refresh_truecolor_filter(self.ansi_theme)
        self.stylesheet.set_variables(self.get_css_variables())
        self.keys: dict[str, str] = {}
        """The user's own keys: action id to keys."""
        self._hint = ""

    def tell(self, sentence: str, severity: Literal["information", "warning", "error"] = "information") -> None:
        """Say one sentence."""
        self.notify(visible(sentence), severity=severity, markup=False)

    def hint(self, sentence: str) -> None:
        """Say what a key did or could not do, in place of the last such sentence: several hide a small screen."""
        for note in list(self._notifications):
            if note.message == self._hint:
                self._unnotify(note)
        self._hint = visible(sentence)
        self.tell(sentence)

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

    def _fatal_error(self) -> None:
        """A handler or a widget broke, and with it Textual's loop: end with a sentence and a report, no traceback."""
        report = traceback.format_exc()
        said = f"Redraft ended on an internal error, {traceback.format_exc(0).splitlines()[-1]}."
        self.panic(Text(visible(f"{said} {self.KEPT} {write_report(report)}")))
