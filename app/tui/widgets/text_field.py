"""A text area for text that may come from anywhere: what a terminal would obey is drawn as a box, never sent.

Knows drawing only; the text itself stays as it is. Invariant: what is drawn is as many characters as the text has, so
that the cursor stays where it belongs.
"""

from rich.text import Text
from textual.widgets import TextArea

_UNSHOWN = "\N{REPLACEMENT CHARACTER}"


class TextField(TextArea):
    """A `TextArea` that draws control characters as boxes."""

    def get_line(self, line_index: int) -> Text:
        line = self.document.get_line(line_index)
        shown = "".join(char if char.isprintable() or char == "\t" else _UNSHOWN for char in line)
        return Text(shown, end="", no_wrap=True)
