"""Help, turns, quit, resume and recipes: what they show, and exactly what they answer."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.editing.document import open_document
from app.editing.session_store import LeftSession, SavedSession, SavedTurn
from app.editing.turns import Turns
from app.recipes import Recipe
from app.tui.actions import ACTIONS, Place
from app.tui.help_text import help_sections
from app.tui.palette import palette_rows
from app.tui.screens.help import HelpScreen
from app.tui.screens.quit_dialog import Leaving, QuitDialog
from app.tui.screens.recipe_picker import RecipePicker
from app.tui.screens.resume_offer import Offer, ResumeOffer, Resuming
from app.tui.screens.turns import Chosen, TurnChoice, TurnsScreen
from tests.support.screens import Play, run_screen

# --- help and palette -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", list(Place))
def test_every_action_is_in_the_help_once_wherever_one_is(place: Place) -> None:
    sections = help_sections(place, {})
    rows = [row for section in sections for row in section.rows]
    assert sorted(words for _, words in rows) == sorted(action.help for action in ACTIONS)
    first = sections[0].heading
    assert any(action.place is place for action in ACTIONS) <= (place.value in first)


def test_what_works_here_comes_first_and_what_does_not_says_so() -> None:
    headings = [section.heading for section in help_sections(Place.SOURCE, {})]
    assert headings[0].endswith("in the source") and headings[-1].endswith("(not from here)")
    far = [heading for heading in headings if heading.endswith("(not from here)")]
    assert headings[-len(far) :] == far


def test_the_users_own_keys_are_shown() -> None:
    rows = dict(row[::-1] for section in help_sections(Place.APP, {"help": "ctrl+h,slash"}) for row in section.rows)
    help_action = next(action for action in ACTIONS if action.id == "help")
    assert rows[help_action.help] == "ctrl+h /"


def test_help_scrolls_and_closes() -> None:
    async def steps(play: Play) -> None:
        assert "Run the instruction" in play.text()
        for _ in range(40):
            await play.pilot.press("j")
        await play.settle()
        assert "Run the instruction" not in play.text()
        for _ in range(40):
            await play.pilot.press("k")
        await play.settle()
        assert "Run the instruction" in play.text()
        await play.press("escape")

    assert run_screen(HelpScreen(help_sections(Place.INSTRUCTION, {})), steps) == [None]


def test_the_palette_finds_by_label_and_help_and_leaves_out_what_is_not_here() -> None:
    def found(query: str, place: Place) -> list[str]:
        return [choice.value.id for choice in palette_rows(query, place, {})]

    assert found("mode", Place.WORKSPACE)[0] == "models"
    assert "quit" in found("leave", Place.DIFF)
    everything = found("", Place.SOURCE)
    assert "cursor_up" in everything and "run_edit" not in everything and "palette" not in everything
    assert len(everything) == len(set(everything))


# --- turns ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def turns(file: Path) -> Turns:
    """A turn that failed, and one that runs."""
    begun = Turns(open_document(file)).begin("Add [types]\nto it", None).failed("The reply is empty.")
    return begun.begin("Again", None)


def test_turns_are_listed_with_what_came_of_them(turns: Turns) -> None:
    async def steps(play: Play) -> None:
        text = play.text()
        assert "*  0  the file as it was read" in text
        assert "1  Add [types]" in text and "of the file: The reply is empty." in text
        assert "2  Again" in text and "of the file: running" in text
        await play.press("down", "enter")

    assert run_screen(TurnsScreen(turns), steps) == [TurnChoice(1, Chosen.BASE)]


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["escape"], [None]),
        (["r"], []),  # the file itself was not asked for
        (["down", "down", "r"], [TurnChoice(2, Chosen.RETRY)]),
        (["enter"], [TurnChoice(0, Chosen.BASE)]),
    ],
)
def test_what_is_done_with_a_turn(turns: Turns, keys: list[str], answer: list[object]) -> None:
    async def steps(play: Play) -> None:
        await play.press(*keys)

    assert run_screen(TurnsScreen(turns), steps) == answer


# --- quit -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["k"], Leaving.KEEP),
        (["enter"], Leaving.KEEP),
        (["d"], Leaving.DISCARD),
        (["tab", "enter"], Leaving.DISCARD),
        (["escape"], Leaving.STAY),
    ],
)
def test_leaving_keeps_unless_told_otherwise(keys: list[str], answer: Leaving) -> None:
    async def steps(play: Play) -> None:
        assert "1 hunk is undecided and 2 hunks are accepted but not applied" in " ".join(play.text().split())
        await play.press(*keys)

    assert run_screen(QuitDialog(1, 2), steps) == [answer]


def test_the_help_names_keys_as_they_are_on_the_keyboard() -> None:
    keys = {key for section in help_sections(Place.DIFF, {}) for row, _ in section.rows for key in row.split()}
    assert {".", "/", "?", "[", "]", "space", "enter", "esc", "ctrl+r"} <= keys
    assert not any("_" in key for key in keys)


# --- resume -----------------------------------------------------------------------------------------------------------

TURN = SavedTurn("Add [types]\nto it", None, 0, b"a\n", b"a\n", b"b\n", None, {})
LEFT = LeftSession("1", SavedSession("/src/a.py", "/src/a\x1b.py", "utf-8", b"a\n", (TURN,), 0))
OTHER = LeftSession("2", replace(LEFT.session, name="/src/b.py"))
OFFERS = [Offer(LEFT, "It is as it was."), Offer(OTHER, "It was changed.")]


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["enter"], (Resuming.GO_ON, LEFT)),
        (["down", "enter"], (Resuming.GO_ON, OTHER)),
        (["down", "ctrl+x"], (Resuming.EXPORT, OTHER)),
        (["delete"], (Resuming.DISCARD, LEFT)),
        (["d"], None),
        (["space"], None),
        (["escape"], None),
    ],
)
def test_what_is_done_with_a_left_session(keys: list[str], answer: object) -> None:
    async def steps(play: Play) -> None:
        text = play.text()
        assert "/src/a\\x1b.py" in text and "Add [types]" in text and "It was changed." in text
        assert "One is damaged." in text
        await play.press(*keys)

    assert run_screen(ResumeOffer(OFFERS, ["One is damaged."]), steps) == [answer]


# --- recipes ----------------------------------------------------------------------------------------------------------

RECIPES = [Recipe("Types", "Add type hints.", False), Recipe("Own", "Do [it].", True)]


def test_a_recipe_is_found_by_name_or_words() -> None:
    async def steps(play: Play) -> None:
        assert "Save what is typed" not in play.text()
        await play.press(*"do", "space", *"it", "enter")

    assert run_screen(RecipePicker(RECIPES, ""), steps) == [RECIPES[1]]


def test_what_is_typed_can_be_saved() -> None:
    async def steps(play: Play) -> None:
        await play.press("pagedown", "enter")

    assert run_screen(RecipePicker(RECIPES, "New one."), steps) == [Recipe("", "New one.", True)]
