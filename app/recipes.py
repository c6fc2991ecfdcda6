"""Recipes: instructions that have a name, those that come with Redraft and those a user has saved.

A user's lie beside the settings in recipes.toml, one `name = "instruction"` a line, and may be edited by hand. Knows
nothing of screens. Invariant: a recipe of the user's wins over a shipped one of the same name, and saving one keeps
every other line of the file as it was.
"""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

from app.errors import SettingsError, UsageError
from app.paths import settings_file, shown
from app.private_files import held, write_private
from app.toml_file import read_toml
from prompts import recipes_toml

MOST_NAME = 60
"""Characters of a name: it stands in a list."""


@dataclass(frozen=True)
class Recipe:
    """A named instruction."""

    name: str
    instruction: str
    own: bool
    """Saved by the user, not shipped."""


def recipes_file() -> Path:
    """Where the user's lie; need not exist."""
    return settings_file().with_name("recipes.toml")


def load_recipes(path: Path | None = None) -> tuple[Recipe, ...]:
    """The user's recipes in the order of the file, then the shipped ones that have another name.

    Raises SettingsError naming the file and the line or recipe that is wrong.
    """
    own = _own(recipes_file() if path is None else path)
    shipped = {name: str(text) for name, text in tomllib.loads(recipes_toml()).items()}
    return (
        *(Recipe(name, text, True) for name, text in own.items()),
        *(Recipe(name, text, False) for name, text in shipped.items() if name not in own),
    )


def save_recipe(name: str, instruction: str, path: Path | None = None) -> None:
    """Add a recipe to the user's file.

    Raises UsageError for an empty or long name, an empty instruction or a name the user has given already,
    SettingsError when the file cannot be read, StateError when it cannot be written.
    """
    path = recipes_file() if path is None else path
    name, instruction = name.strip(), instruction.strip()
    if not name or len(name) > MOST_NAME or not name.isprintable():
        raise UsageError(f"A recipe's name has 1 to {MOST_NAME} printable characters.")
    if not instruction:
        raise UsageError("The instruction is empty; there is nothing to save.")
    with held(path):
        if name in _own(path):
            raise UsageError(f"A recipe {name!r} is there already; choose another name, or edit {shown(path)}.")
        before = path.read_bytes() if path.exists() else b""
        line = f"{_quoted(name)} = {_quoted(instruction)}\n"
        between = b"" if not before or before.endswith(b"\n") else b"\n"
        write_private(path, before + between + line.encode("utf-8"))


def _own(path: Path) -> dict[str, str]:
    try:
        table = read_toml(path)
    except FileNotFoundError:
        return {}
    recipes: dict[str, str] = {}
    for name, text in table.items():
        if not isinstance(text, str) or not text.strip():
            raise SettingsError(f"{shown(path)}: `{shown(name)}` must be an instruction in quotes.")
        recipes[name] = text
    return recipes


def _quoted(text: str) -> str:
    """`text` as a TOML basic string: JSON's escapes are TOML's, but for DEL, which TOML wants escaped as well.

    Raises UsageError for text that is not valid Unicode.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError("The text is not valid UTF-8, so it cannot be saved.") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
