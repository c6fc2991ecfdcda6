"""Copying text out of a terminal: the sequence OSC 52 asks the terminal for its clipboard, and a file has it anyway.

Knows nothing of screens; whoever owns the terminal passes how to write to it. A terminal never says whether it obeyed
(many do not, and tmux only when it is told to), hence the file. Invariant: the file has the whole text before anything
is sent, and what is sent are printable characters inside one sequence.
"""

import base64
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.paths import shown, state_dir
from app.private_files import write_private

MOST_SENT = 74_000
"""Bytes of text; the sequence for more is cut or ignored by common terminals."""


@dataclass(frozen=True)
class Copied:
    """Where a copied text is now."""

    path: Path
    """A private file that has it until the next copy."""
    sent: bool
    """The terminal was asked to put it on the clipboard; False when it is too long for that."""

    @property
    def sentence(self) -> str:
        """What a user should know."""
        if self.sent:
            return f"Copied, where the terminal allows it; {shown(self.path)} has it in any case."
        return f"Too long for a terminal's clipboard; {shown(self.path)} has it."


def copy_text(text: str, write: Callable[[str], object], environment: Mapping[str, str] | None = None) -> Copied:
    """Put `text` into the file and, where it is short enough, onto the terminal's clipboard.

    Raises StateError or SettingsError when the file cannot be written; nothing is sent then.
    """
    data = text.encode("utf-8", "surrogateescape")
    path = state_dir() / "copied.txt"
    write_private(path, data)
    if len(data) > MOST_SENT:
        return Copied(path, sent=False)
    write(osc52(data, os.environ if environment is None else environment))
    return Copied(path, sent=True)


def osc52(data: bytes, environment: Mapping[str, str]) -> str:
    """The sequence that asks for the clipboard; inside tmux also wrapped so that it reaches the terminal outside."""
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"
    if not environment.get("TMUX"):
        return sequence
    # tmux takes the first when `set-clipboard` is on, and hands the second on when `allow-passthrough` is.
    inside = sequence.replace("\x1b", "\x1b\x1b")
    return f"{sequence}\x1bPtmux;{inside}\x1b\\"
