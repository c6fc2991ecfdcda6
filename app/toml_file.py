"""Reads a TOML file that a user may have written: settings, recipes, rules.

Knows no keys. Invariant: whatever is wrong with the file is one sentence that begins with its name, and nothing but a
regular file is read (a pipe would never end).
"""

import tomllib
from pathlib import Path

from app.errors import SettingsError
from app.paths import shown


def read_toml(path: Path) -> dict[str, object]:
    """The file's table. Raises FileNotFoundError, and SettingsError for what cannot be read or is not TOML."""
    said = shown(path)
    try:
        if path.exists() and not path.is_file():
            raise SettingsError(f"{said} cannot be read: it is not a regular file.")
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SettingsError(f"{said} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{said} is not valid TOML: it is not UTF-8 (byte {error.start}).") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{said} is not valid TOML: {error}.") from error
