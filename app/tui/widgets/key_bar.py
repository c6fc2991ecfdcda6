"""The keys that work where the focus is, on the last line: what there is no room for goes, the least needed first.

One line drawn by one widget: Textual's footer makes a widget of every key, which at the start and at every move of the
focus took longer than painting the rest of the screen. Knows the table of actions and what the screen says works now.
Invariant: a key on the line works when it is pressed, and a click on it presses it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.screen import Screen
from textual.widget import Widget

from app.tui.actions import ACTIONS

_UNTABLED = 2
"""How long a key of a screen's own stays, such as escape that closes it."""
_RANKS = {action.id: action.footer for action in ACTIONS}


@dataclass(frozen=True)
class Key:
    """One key of the line."""

    key: str
    """Textual's name of it."""
    said: str
    """Its name for people."""
    label: str
    rank: int
    """The highest goes first where there is no room."""
    enabled: bool

    @property
    def width(self) -> int:
        """Cells, with the spaces around both words."""
        return cell_len(self.said) + cell_len(self.label) + 3


def fitting(keys: Sequence[Key], width: int) -> tuple[Key, ...]:
    """The keys that there is room for, in their order; the first of all stays."""
    kept = list(keys)
    while len(kept) > 1 and sum(key.width for key in kept) > width:
        kept.remove(max(reversed(kept), key=lambda key: key.rank))
    return tuple(kept)


class KeyBar(Widget):
    """The last line of a screen."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-bar--key", "key-bar--label"}

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[Key, ...] = ()

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._look_again)

    def _look_again(self, screen: Screen[object]) -> None:
        """What works has changed; while the terminal has no focus, nothing has it, which is no reason to say so."""
        if not self.app.app_focus or screen is not self.screen:
            return
        keys: dict[str, Key] = {}
        for active in screen.active_bindings.values():
            binding = active.binding
            if binding.show and binding.action not in keys:
                said, rank = self.app.get_key_display(binding), _RANKS.get(binding.id or "", _UNTABLED)
                keys[binding.action] = Key(binding.key, said, binding.description, rank, active.enabled)
        if (found := tuple(keys.values())) != self._keys:
            self._keys = found
            self.refresh()

    def render(self) -> Text:
        line = Text(no_wrap=True, overflow="crop", end="")
        key_style, label_style = (self.get_component_rich_style(name) for name in ("key-bar--key", "key-bar--label"))
        for key in fitting(self._keys, self.size.width):
            start = len(line)
            line.append(f" {key.said} ", key_style)
            line.append(f"{key.label} ", label_style)
            if not key.enabled:
                line.stylize("dim", start)
        return line

    def on_mouse_down(self, event: events.MouseDown) -> None:
        at = 0
        for key in fitting(self._keys, self.size.width):
            at += key.width
            if event.x < at:
                if key.enabled:
                    self.app.simulate_key(key.key)
                return
