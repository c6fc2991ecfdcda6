"""What every dialog has in common: it is answered once.

Knows no question. Invariant: a second answer, such as another enter before the dialog is gone, takes no screen away:
Textual would take whichever is on top, the workspace among them.
"""

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer]):
    """A screen over the others that ends with an answer."""

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Give the answer and leave; nothing, where that was done already or another screen lies over this one."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
