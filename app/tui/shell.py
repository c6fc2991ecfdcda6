"""What every application of ours in a terminal can do: say a sentence, copy, hand the terminal over, end on a fault.

Knows no screen. Invariant: what is said is text, never markup; what is typed while a screen opens is for that screen,
in the order in which it was typed.
"""

import traceback
from collections import deque
from operator import attrgetter
from typing import ClassVar, Literal

from rich.text import Text
from textual import events
from textual.app import App, SuspendNotSupported
from textual.screen import Screen

from app.crash_report import write_report
from app.editing.clipboard import Copied, copy_text
from app.errors import AppError
from app.external_editor import edit_text
from app.terminal_text import visible
from app.tui.themes import THEMES

_Typed = events.Key | events.Paste
_ON_THEIR_WAY = 64
"""Keys that may come back: those that a widget has used never do, so only the newest are remembered."""


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
        self._sent: deque[tuple[_Typed, Screen[object]]] = deque(maxlen=_ON_THEIR_WAY)
        self._early: list[_Typed] = []
        self._has_failed = False

    # --- what is typed ------------------------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Hold what is typed for a screen that is not there yet: Textual would drop it.

        A key goes to what has the focus and comes back here where that had no use for it; when a key before it has
        opened a screen meanwhile, it was typed for that one.
        """
        if not isinstance(event, _Typed) or not self.screen_stack:
            await super().on_event(event)
        elif event.is_forwarded:
            typed_at = next((screen for sent, screen in self._sent if sent is event), self.screen)
            await (super().on_event(event) if typed_at is self.screen else self.on_event(_anew(event)))
        elif self._early or not self.screen.is_mounted:
            self._early.append(event)
            if self.screen.is_mounted:  # the screen that was waited for has gone again, and with it its callback
                await self._give_early()
            else:
                # A screen looks at its messages once it is mounted, and the focus is where one types.
                self.screen.call_later(self.call_next, self._give_early)
        else:
            self._sent.append((event, self.screen))
            await super().on_event(event)

    async def _give_early(self) -> None:
        early, self._early = sorted(self._early, key=attrgetter("time")), []
        for event in early:
            await self.on_event(event)  # one of them may open a screen for those after it

    # --- what is said and handed over ---------------------------------------------------------------------------------

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
        if self._has_failed:
            write_report(report)  # what the first fault broke is in the report, and no second sentence
            return
        self._has_failed = True
        said = f"Redraft ended on an internal error, {traceback.format_exc(0).splitlines()[-1]}."
        self.panic(Text(visible(f"{said} {self.KEPT} {write_report(report)}")))


def _anew(event: _Typed) -> _Typed:
    """The same, as if it had not been sent anywhere yet."""
    anew = events.Key(event.key, event.character) if isinstance(event, events.Key) else events.Paste(event.text)
    anew.time = event.time
    return anew
