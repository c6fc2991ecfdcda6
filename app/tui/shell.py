"""What every application of ours in a terminal can do: say a sentence, copy, hand the terminal over, end on a fault.

Knows no screen. Invariant: what is said is text, never markup; what is typed while a screen opens is for that screen,
and behind the key that closes one for what is under it, in the order in which it was typed.
"""

import traceback
from collections import deque
from collections.abc import Sequence
from typing import ClassVar, Literal

from rich.text import Text
from textual import events
from textual.app import App, SuspendNotSupported
from textual.filter import Monochrome, NoColor
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from app.crash_report import write_report
from app.editing.clipboard import Copied, copy_text
from app.errors import AppError
from app.external_editor import edit_text
from app.terminal_text import visible
from app.tui.themes import THEMES

_Typed = events.Key | events.Paste


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
        # Textual chose for the theme it starts with; its greys of the terminal's own colours are black on black.
        self._filters = [NoColor() if isinstance(kind, Monochrome) else kind for kind in self._filters]
        self.stylesheet.set_variables(self.get_css_variables())
        self.keys: dict[str, str] = {}
        """The user's own keys: action id to keys."""
        self._hint = ""
        self._typed: deque[_Typed] = deque()
        self.is_typed_to = False
        """Something that was typed is not dealt with yet."""
        self._opening: Screen[object] | None = None
        self._has_failed = False

    @property
    def on_top(self) -> Screen[object] | None:
        """The screen that is seen; None while the program begins and ends, when timers and messages still come."""
        return self.screen if self.screen_stack else None

    # --- what is typed ------------------------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Give what is typed one by one: each may open or end a screen; what comes behind it is for what is there then.

        Textual would give all of it to what has the focus when it comes, and drop what comes while a screen opens.
        """
        if not isinstance(event, _Typed) or event.is_forwarded or not self.screen_stack:
            await super().on_event(event)
            return
        self._typed.append(event)
        if not self.is_typed_to or self._opening not in (None, self.screen):  # one that is gone calls nobody back
            await self._give_next()

    async def _give_next(self) -> None:
        self._opening = None
        self.is_typed_to = bool(self._typed)
        if not self._typed or not self.screen_stack:
            return  # all is dealt with, or the program is ending
        screen = self.screen
        if not screen.is_mounted:
            self._opening = screen
            # A screen looks at its messages once it is mounted, and the focus is where one types.
            screen.call_later(self.call_later, self._give_next)
            return
        focused = self.focused or screen
        if _is_text(self._typed[0], focused):
            while self._typed and _is_text(self._typed[0], focused):  # nothing comes of it but a longer text
                await super().on_event(self._typed.popleft())
            await self._when_dealt_with([focused, self])
            return
        # Read now: who opened the screen is not known any more once it has ended.
        asker = screen._result_callbacks[-1].requester if screen._result_callbacks else None
        await super().on_event(self._typed.popleft())
        # Up to here for the key itself, up again for what its binding sent, and up from who gets a screen's answer.
        await self._when_dealt_with([focused, focused, asker, self])

    async def _when_dealt_with(self, senders: Sequence[MessagePump | None]) -> None:
        """Go on with what is typed behind all that these were sent, and what they sent on because of that."""
        if not senders:
            await self._give_next()
            return
        at, *others = senders
        around = others if at is None else [at._parent, *others]
        if at is None or not at.call_later(self._when_dealt_with, around):
            await self._when_dealt_with(around)  # nobody there, or it is closing

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


def _is_text(typed: _Typed, focused: Widget) -> bool:
    """True for what a field takes into its text."""
    return isinstance(focused, Input | TextArea) and (isinstance(typed, events.Paste) or typed.is_printable)
