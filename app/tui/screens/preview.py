"""The file as the accepted hunks make it, to look at before it is written.

Knows a review; writes nothing. Invariant: what is shown are the bytes that applying would write, decoded.
"""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from app.editing.review import Review
from app.editing.turns import derived
from app.terminal_text import visible
from app.tui.screens.dialog import Dialog
from app.tui.widgets.source_view import SourceView


class PreviewScreen(Dialog[None]):
    """Escape or P closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,P,q", "dismiss(None)", "Close")]

    def __init__(self, review: Review, title: str) -> None:
        super().__init__()
        self._review = review
        self._title = title

    def compose(self) -> ComposeResult:
        yield Static(Text(visible(self._title)), classes="preview-title")
        yield SourceView(id="preview")

    def on_mount(self) -> None:
        source = self.query_one(SourceView)
        source.show(derived(self._review.document, self._review.data()))
        source.focus()
