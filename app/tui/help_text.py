"""The table of actions as help: where the user is first, with the keys that count now.

Knows no widget. Invariant: every action is in the help exactly once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from textual.keys import key_to_character

from app.tui.actions import ACTIONS, Action, Place, places_from


@dataclass(frozen=True)
class HelpSection:
    """Actions under one heading."""

    heading: str
    rows: tuple[tuple[str, str], ...]
    """(keys, what they do)."""


def help_sections(place: Place, remapped: Mapping[str, str]) -> list[HelpSection]:
    """Sections in the order in which a key is looked for from `place`; what works elsewhere comes last."""
    near = places_from(place)
    order = [*near, *(other for other in Place if other not in near)]
    sections: list[HelpSection] = []
    for number, where in enumerate(order):
        here = number < len(near)
        for group in dict.fromkeys(action.group for action in ACTIONS if action.place is where):
            rows = [
                (keys_of(action, remapped), action.help)
                for action in ACTIONS
                if action.place is where and action.group is group
            ]
            heading = f"{group.value}, {where.value}" + ("" if here else " (not from here)")
            sections.append(HelpSection(heading, tuple(rows)))
    return sections


def keys_of(action: Action, remapped: Mapping[str, str]) -> str:
    """The action's keys as a person reads them."""
    keys = remapped[action.id].split(",") if action.id in remapped else action.keys
    return " ".join(map(_on_the_key, keys))


def _on_the_key(name: str) -> str:
    character = key_to_character(name) or ""
    return _NAMES.get(name) or (character if character.isprintable() and character.strip() else name)


_NAMES = {"slash": "/", "escape": "esc", "pageup": "page up", "pagedown": "page down"}
"""Textual's names that are not what is on a key, where it does not know the character either."""
