"""One line over the panes about something that changed around the user: said until it is dealt with.

Knows a sentence and its urgency. Invariant: empty, it takes no room.
"""

from rich.text import Text
from textual.widgets import Static

from app.terminal_text import visible


class Banner(Static):
    """A sentence in the way, on purpose."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.sentence = ""
        self.display = False

    def say(self, sentence: str) -> None:
        """Show a sentence; an empty one takes the banner away."""
        self.sentence = sentence
        self.display = bool(sentence)
        self.update(Text(f"! {visible(sentence)}" if sentence else ""))
