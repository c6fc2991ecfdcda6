"""The command palette's rows: actions by a few letters of their label or help, what works here first.

Knows the table of actions, not how one is run. Invariant: an action is found by its label, its help or its id.
"""

from collections.abc import Mapping

from app.file_search import best_matches
from app.tui.actions import ACTIONS, Action, Place, places_from
from app.tui.help_text import keys_of
from app.tui.screens.choice import Choice


def palette_rows(query: str, place: Place, remapped: Mapping[str, str]) -> list[Choice[Action]]:
    """Rows for what was typed, best first. Actions of places that cannot be seen from `place` are left out."""
    near = places_from(place)
    usable = [action for where in near for action in ACTIONS if action.place is where and action.id != "palette"]
    named = {f"{action.label}: {action.help} {action.id}".lower(): action for action in usable}
    return [
        Choice(named[text].label, named[text], f"{keys_of(named[text], remapped)}  {named[text].help}")
        for text in best_matches(query.lower(), named)
    ]
