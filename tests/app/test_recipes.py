"""Recipes: shipped ones, the user's own, and a file that stays as its owner wrote it."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import SettingsError, UsageError
from app.recipes import MOST_NAME, Recipe, load_recipes, recipes_file, save_recipe
from tests.support.headless_edit import assert_sentence


def own(path: Path) -> dict[str, str]:
    return {recipe.name: recipe.instruction for recipe in load_recipes(path) if recipe.own}


def test_the_shipped_ones_are_there_without_a_file() -> None:
    found = load_recipes()
    assert len(found) >= 5 and not any(recipe.own for recipe in found)
    assert all(len(recipe.name) <= MOST_NAME and recipe.instruction.endswith(".") for recipe in found)


def test_saved_ones_come_first_and_win_by_name() -> None:
    save_recipe("Type hints", "Annotate everything.")
    found = load_recipes()
    assert found[0] == Recipe("Type hints", "Annotate everything.", True)
    assert [recipe.name for recipe in found].count("Type hints") == 1
    assert recipes_file().parent.name == "redraft"


def test_saving_keeps_what_the_user_wrote(tmp_path: Path) -> None:
    path = tmp_path / "recipes.toml"
    path.write_bytes(b'# mine\na = "A."')
    save_recipe("b", "B.", path)
    assert path.read_bytes() == b'# mine\na = "A."\n"b" = "B."\n'


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(
        lambda name: name.isprintable() and name.strip()
    ),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(lambda text: text.strip()),
)
def test_every_name_and_text_comes_back(tmp_path_factory: pytest.TempPathFactory, name: str, text: str) -> None:
    path = tmp_path_factory.mktemp("recipes") / "recipes.toml"
    save_recipe(name, text, path)
    assert own(path) == {name.strip(): text.strip()}
    tomllib.loads(path.read_text("utf-8"))


@pytest.mark.parametrize(
    ("name", "text"), [("", "Do."), ("x" * 61, "Do."), ("a\nb", "Do."), ("a", " "), ("a", "\ud800"), ("\ud800", "Do.")]
)
def test_what_cannot_be_saved_is_said_and_leaves_the_file(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / "recipes.toml"
    with pytest.raises(UsageError) as caught:
        save_recipe(name, text, path)
    assert_sentence(str(caught.value))
    assert not path.exists()


def test_a_name_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "recipes.toml"
    save_recipe("a", "A.", path)
    with pytest.raises(UsageError, match="there already"):
        save_recipe("a", "B.", path)
    assert own(path) == {"a": "A."}


@pytest.mark.parametrize("data", [b"a = ", b"a = 1", b"[a]\nb = 'x'", b"a = ''", b"\xff"])
def test_a_wrong_file_is_named_and_never_written_over(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "recipes.toml"
    path.write_bytes(data)
    with pytest.raises(SettingsError) as caught:
        load_recipes(path)
    assert str(path) in str(caught.value)
    assert_sentence(str(caught.value))
    with pytest.raises(SettingsError):
        save_recipe("b", "B.", path)
    assert path.read_bytes() == data
