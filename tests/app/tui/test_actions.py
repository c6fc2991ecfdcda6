"""The one table of actions: complete, free of clashes, and the user's own keys checked against it."""

from pathlib import Path

import pytest

from app.errors import SettingsError
from app.tui.actions import ACTIONS, Action, Place, bindings, keymap
from app.tui.app import RedraftApp
from app.tui.screens.workspace import WorkspaceScreen
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from app.tui.widgets.source_view import SourceView
from tests.support.scripted_client import ScriptedClient
from tests.support.tui import Session, drive

CLASSES = {
    Place.APP: RedraftApp,
    Place.WORKSPACE: WorkspaceScreen,
    Place.SOURCE: SourceView,
    Place.INSTRUCTION: InstructionBox,
    Place.DIFF: DiffView,
}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_can_be_run_and_is_explained(action: Action) -> None:
    assert callable(getattr(CLASSES[action.place], f"action_{action.id}"))
    assert action.keys and action.label and len(action.label) <= 12
    assert action.help.endswith(".") and action.help[0].isupper()


def test_ids_are_unique() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_no_default_key_is_taken_twice(action: Action) -> None:
    assert keymap({action.id: " ".join(action.keys)}) == {action.id: ",".join(action.keys)}


@pytest.mark.parametrize("place", Place)
def test_classes_have_the_bindings_of_their_place(place: Place) -> None:
    own = {(binding.id, binding.key) for binding in bindings(place)}
    assert own == {(action.id, key) for action in ACTIONS if action.place is place for key in action.keys}
    merged = CLASSES[place]._merged_bindings
    assert merged is not None
    bound = {(binding.id, key) for key, found in merged.key_to_bindings.items() for binding in found}
    assert own <= bound


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"fly": "f12"}, "keys.fly: there is no such action"),
        ({"retry": " , "}, "keys.retry: name at least one key"),
        ({"retry": "f6"}, "keys.retry: f6 is the key of next_pane already"),
        ({"retry": "ctrl+q"}, "is the key of quit already"),
        ({"run_edit": "escape"}, "is the key of cancel already"),
        ({"quit": "s"}, "is the key of select_symbol already"),
        ({"retry": "f11", "reload": "f11"}, "is the key of reload already"),
        ({"retry": "?"}, "is the key of help already"),
        ({"quit": "ctrl+x nosuchkey"}, "keys.quit: nosuchkey is no key"),
        ({"quit": "hypper+q"}, "keys.quit: hypper+q is no key"),
        ({"quit": "ctrl+"}, "keys.quit: ctrl+ is no key"),
        ({"quit": "\x1b[31m"}, "keys.quit: \\x1b[31m is no key"),
        ({"quit": "<any>"}, "keys.quit: <any> is no key"),
    ],
)
def test_wrong_keys_are_said(keys: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingsError) as error:
        keymap(keys)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    "key",
    ["f12", "ctrl+x", "ctrl+shift+up", "alt+enter", "shift+tab", "+", "plus", "ctrl+plus", "ö", "tilde", "hyper+q"],
)
def test_any_key_of_a_keyboard_is_taken(key: str) -> None:
    assert keymap({"retry": key}) == {"retry": key}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_default_keys_are_keys(action: Action) -> None:
    assert keymap({action.id: " ".join(action.keys)})


def test_two_actions_may_swap_their_keys_and_share_keys_of_places_apart() -> None:
    assert keymap({"retry": "f6", "next_pane": "f5"}) == {"retry": "f6", "next_pane": "f5"}
    assert keymap({"select_symbol": "enter, f12"}) == {"select_symbol": "enter,f12"}


def test_the_users_keys_work_and_the_default_ones_no_more(file: Path) -> None:
    async def steps(session: Session) -> None:
        async def focused_after(key: str) -> str | None:
            session.workspace.show_pane("instruction")
            await session.press(key)
            assert session.workspace.focused is not None
            return session.workspace.focused.id

        assert await focused_after("f6") == "instruction"
        assert await focused_after("f12") == "source"
        assert await focused_after("ctrl+t") == "source"

    drive(ScriptedClient(""), steps, file=file, keys={"next_pane": "f12 ctrl+t"})
