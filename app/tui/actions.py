"""Every action of the terminal UI, in one table: key bindings, footer, help and palette are made from it.

Knows no widget; an action's method is `action_<id>` of the class that stands for its place. Invariant: within a place,
and against the places around it, no two actions have the same key, also after the user's own keys are in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from textual.binding import Binding
from textual.keys import REPLACED_KEYS, Keys, key_to_character

from app.errors import SettingsError
from app.paths import shown

_HELD = frozenset(("ctrl", "alt", "shift", "super", "hyper", "meta"))
_NAMED = frozenset(key.value for key in Keys if "+" not in key.value and "<" not in key.value)
"""Keys whose names are not those of characters."""


class Place(Enum):
    """Where an action can be used."""

    APP = "anywhere"
    WORKSPACE = "in the workspace"
    SOURCE = "in the source"
    INSTRUCTION = "in the instruction"
    DIFF = "in the diff"


_AROUND = {
    Place.APP: (),
    Place.WORKSPACE: (Place.APP,),
    Place.SOURCE: (Place.WORKSPACE, Place.APP),
    Place.INSTRUCTION: (Place.WORKSPACE, Place.APP),
    Place.DIFF: (Place.WORKSPACE, Place.APP),
}
"""The places that see a key after this one did."""


class Group(Enum):
    """Headings of the help."""

    EDIT = "Edit"
    REVIEW = "Review"
    VIEW = "View"
    MOVE = "Move"
    FILE = "File and program"


@dataclass(frozen=True)
class Action:
    """One thing a user can do."""

    id: str
    """Stable name: the method is `action_<id>`, the settings key `keys.<id>`."""
    keys: tuple[str, ...]
    """Default keys, in Textual's names; the first is shown."""
    label: str
    """One or two words, for the footer."""
    group: Group
    place: Place
    help: str
    """One sentence."""
    footer: int = 0
    """How soon it leaves a last line that is too narrow, 1 at the very last; 0 is never in it."""


def _action(id: str, keys: str, label: str, group: Group, place: Place, help: str, footer: int = 0) -> Action:  # noqa: A002
    return Action(id, tuple(keys.split()), label, group, place, help, footer)


_EDIT, _VIEW, _MOVE, _FILE = Group.EDIT, Group.VIEW, Group.MOVE, Group.FILE
_APP, _WORK, _SOURCE, _SAY = Place.APP, Place.WORKSPACE, Place.SOURCE, Place.INSTRUCTION
_DIFF, _REVIEW = Place.DIFF, Group.REVIEW

ACTIONS: tuple[Action, ...] = (
    _action("run_edit", "enter", "Run", _EDIT, _SAY, "Run the instruction on the file or the selection.", 1),
    _action("new_line", "ctrl+j shift+enter", "New line", _EDIT, _SAY, "Begin a new line of the instruction."),
    _action("recall_older", "ctrl+up", "Older", _EDIT, _SAY, "Take the instruction before this one."),
    _action("recall_newer", "ctrl+down", "Newer", _EDIT, _SAY, "Take the instruction after this one."),
    _action("edit_outside", "f4", "$EDITOR", _EDIT, _SAY, "Write the instruction in $VISUAL or $EDITOR."),
    _action("cancel", "escape", "Cancel", _EDIT, _WORK, "Stop the model at once; else drop the selection.", 2),
    _action("retry", "f5", "Retry", _EDIT, _WORK, "Run the last instruction again on the same base."),
    _action("next_pane", "f6", "Pane", _VIEW, _WORK, "Go to the next pane; on a narrow screen, show it.", 2),
    _action("apply_review", "ctrl+s", "Apply", Group.REVIEW, _WORK, "Write the accepted hunks into the file.", 1),
    _action("undo_apply", "f10", "Undo apply", Group.REVIEW, _WORK, "Take back the newest apply to this file."),
    _action("reload", "f8", "Reload", _FILE, _WORK, "Read the file again after it changed on disk."),
    _action("cursor_up", "up k", "Up", _MOVE, _SOURCE, "Go up a line."),
    _action("cursor_down", "down j", "Down", _MOVE, _SOURCE, "Go down a line."),
    _action("select_up", "shift+up K", "Select up", _EDIT, _SOURCE, "Grow or shrink the selection upwards."),
    _action("select_down", "shift+down J", "Select down", _EDIT, _SOURCE, "Grow or shrink the selection downwards."),
    _action("select_symbol", "s", "Symbol", _EDIT, _SOURCE, "Select the function or class around the cursor.", 4),
    _action("select_none", "d", "No region", _EDIT, _SOURCE, "Drop the selection: the whole file may change."),
    _action("page_up", "pageup", "Page up", _MOVE, _SOURCE, "Go up a page."),
    _action("page_down", "pagedown", "Page down", _MOVE, _SOURCE, "Go down a page."),
    _action("go_top", "home g", "Top", _MOVE, _SOURCE, "Go to the first line."),
    _action("go_bottom", "end G", "Bottom", _MOVE, _SOURCE, "Go to the last line."),
    _action("scroll_left", "left", "Left", _MOVE, _SOURCE, "Scroll to the left."),
    _action("scroll_right", "right", "Right", _MOVE, _SOURCE, "Scroll to the right."),
    _action("toggle_acceptance", "h", "Map", _VIEW, _SOURCE, "Show or hide the acceptance map beside the lines."),
    _action("line_down", "down j", "Down", _MOVE, _DIFF, "Go down a line."),
    _action("line_up", "up k", "Up", _MOVE, _DIFF, "Go up a line."),
    _action("next_hunk", "right_square_bracket", "Next", _MOVE, _DIFF, "Go to the next hunk."),
    _action("previous_hunk", "left_square_bracket", "Previous", _MOVE, _DIFF, "Go to the hunk before."),
    _action("diff_page_down", "pagedown", "Page down", _MOVE, _DIFF, "Go down a page."),
    _action("diff_page_up", "pageup", "Page up", _MOVE, _DIFF, "Go up a page."),
    _action("diff_top", "home g", "Top", _MOVE, _DIFF, "Go to the top."),
    _action("diff_bottom", "end G", "Bottom", _MOVE, _DIFF, "Go to the end, and follow the reply while it comes."),
    _action("diff_left", "left", "Left", _MOVE, _DIFF, "Scroll to the left."),
    _action("diff_right", "right", "Right", _MOVE, _DIFF, "Scroll to the right."),
    _action("accept", "y", "Accept", _REVIEW, _DIFF, "Accept the hunk and go to the next undecided one.", 1),
    _action("reject", "n", "Reject", _REVIEW, _DIFF, "Reject the hunk and go to the next undecided one.", 1),
    _action("toggle_decision", "space", "Toggle", _REVIEW, _DIFF, "Accept or reject the hunk; with v, the line."),
    _action("undo_decision", "u", "Undo", _REVIEW, _DIFF, "Take the last decision back.", 4),
    _action("redo_decision", "ctrl+r", "Redo", _REVIEW, _DIFF, "Make the decision again that was taken back."),
    _action("accept_rest", "a", "Accept all", _REVIEW, _DIFF, "Accept every hunk that is undecided.", 5),
    _action("reject_rest", "d", "Reject all", _REVIEW, _DIFF, "Reject every hunk that is undecided."),
    _action("split_hunk", "s", "Split", _REVIEW, _DIFF, "Split the hunk into its changes."),
    _action("pick_lines", "v", "Lines", _REVIEW, _DIFF, "Choose single lines of the hunk with space."),
    _action("edit_hunk", "e", "Edit", _REVIEW, _DIFF, "Edit the new text of the hunk in place."),
    _action("edit_hunk_outside", "E", "$EDITOR", _REVIEW, _DIFF, "Edit the new text of the hunk in $EDITOR."),
    _action("redo_hunk", "r", "Do anew", _REVIEW, _DIFF, "Let the model do the hunk anew, with a note of yours."),
    _action("continue_reply", "c", "Continue", _EDIT, _DIFF, "Go on with a reply that was cut."),
    _action("mend", "m", "Mend", _REVIEW, _DIFF, "Take what a warning is about out of the change."),
    _action("preview", "P", "Preview", _VIEW, _DIFF, "Show the file as the accepted hunks make it."),
    _action("more_context", "enter", "Context", _VIEW, _DIFF, "Show more lines around the hunk."),
    _action("toggle_split", "t", "Sides", _VIEW, _DIFF, "Show old and new side by side, or one under the other."),
    _action("toggle_wrap", "w", "Wrap", _VIEW, _DIFF, "Wrap long lines, or scroll them."),
    _action("toggle_words", "W", "Words", _VIEW, _DIFF, "Mark the words that differ, or do not."),
    _action("toggle_provenance", "p", "Origin", _VIEW, _DIFF, "Show where each part of the reply came from."),
    _action("find", "slash", "Find", _MOVE, _DIFF, "Find text in what is shown."),
    _action("find_next", "full_stop", "Find next", _MOVE, _DIFF, "Go to the next place found."),
    _action("export_patch", "x", "Export", _FILE, _DIFF, "Write what is not rejected to a patch file."),
    _action("copy_patch", "o", "Copy", _FILE, _DIFF, "Copy what is not rejected as a patch."),
    _action("undo_last_apply", "U", "Undo apply", _REVIEW, _DIFF, "Take back the newest apply to this file."),
    _action("open_file", "ctrl+o", "Open", _FILE, _APP, "Choose a file: recent ones first, or by a few letters.", 7),
    _action("models", "f2", "Models", _FILE, _APP, "Choose, fetch and verify models."),
    _action("settings", "f3", "Settings", _FILE, _APP, "See every setting and where it comes from; edit the file."),
    _action("turns", "f7", "Turns", _EDIT, _APP, "List the turns: review what is left of one, choose a base."),
    _action("recipes", "f9", "Recipes", _EDIT, _APP, "Take a saved instruction, or save this one."),
    _action("left", "f11", "Left over", _FILE, _APP, "Offer what was left undecided at an earlier end."),
    _action("watches", "ctrl+g", "Watches", _FILE, _APP, "See watches and what they propose; start, stop, review."),
    _action("palette", "ctrl+p", "Palette", _FILE, _APP, "Find an action by a few letters and run it.", 6),
    _action("help", "f1 question_mark", "Help", _FILE, _APP, "Show every key, those that work here first.", 1),
    _action("quit", "ctrl+q", "Quit", _FILE, _APP, "Leave; what is undecided is kept for the next start.", 3),
)


def places_from(place: Place) -> tuple[Place, ...]:
    """The place and those around it, in the order in which they see a key."""
    return (place, *_AROUND[place])


def bindings(place: Place) -> list[Binding]:
    """The bindings of a place, for a class's BINDINGS."""
    return [
        Binding(
            key,
            action.id,
            action.label,
            show=action.footer > 0,
            priority=place in (Place.APP, Place.WORKSPACE) and _never_typed(key),
            id=action.id,
            tooltip=action.help,
        )
        for action in ACTIONS
        if action.place is place
        for key in action.keys
    ]


def _never_typed(key: str) -> bool:
    """A key that a text field has no use for, although it may have a binding for it."""
    return key.startswith(("ctrl+", "f")) and len(key) > 1


def keymap(remapped: Mapping[str, str]) -> dict[str, str]:
    """The user's keys (action id -> keys separated by commas or spaces) as Textual wants them, checked.

    Raises SettingsError for an action that is not there, a value without a key, a key that no keyboard has, or two
    actions with one key.
    """
    known = {action.id: action for action in ACTIONS}
    chosen: dict[str, tuple[str, ...]] = {action.id: action.keys for action in ACTIONS}
    for name, value in remapped.items():
        if name not in known:
            raise SettingsError(f"keys.{name}: there is no such action; the help (f1) lists them.")
        keys = tuple(value.replace(",", " ").split())
        if not keys:
            raise SettingsError(f"keys.{name}: name at least one key, such as `ctrl+r`.")
        wrong = [key for key in keys if not _is_key(key)]
        if wrong:
            raise SettingsError(
                f"keys.{name}: {shown(wrong[0])} is no key; keys are named as in `ctrl+r f9 question_mark`."
            )
        chosen[name] = keys
    for name in remapped:
        for other, action in known.items():
            if other == name or not _meet(known[name].place, action.place):
                continue
            both = {_key(key) for key in chosen[name]} & {_key(key) for key in chosen[other]}
            if both:
                raise SettingsError(
                    f"keys.{name}: {min(both)} is the key of {other} already; give one of them another."
                )
    return {name: ",".join(chosen[name]) for name in remapped}


def _is_key(name: str) -> bool:
    """True for what a terminal can send, by Textual's name for it."""
    *held, key = [name] if len(name) == 1 else name.split("+")
    character = key if len(key) == 1 else key_to_character(REPLACED_KEYS.get(key, key))
    return _HELD.issuperset(held) and (key in _NAMED or (character is not None and character.isprintable()))


def _meet(one: Place, other: Place) -> bool:
    return one is other or one in _AROUND[other] or other in _AROUND[one]


def _key(name: str) -> str:
    """One spelling for `?` and `question_mark`."""
    return key_to_character(name) or name
