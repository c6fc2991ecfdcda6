"""Where the application keeps its own state, and how a path is put into a sentence.

Knows nothing of weights (`editor_engine.config`) or of the user's files. Invariant: folders made here are 0700 and
belong to this user.
"""

import os
import stat
from pathlib import Path

import platformdirs

from app.errors import SettingsError


def state_dir() -> Path:
    """Folder of what must survive but is not the user's work: state/redraft (XDG). Nothing is created."""
    return Path(platformdirs.user_state_dir("redraft"))


def journal_dir() -> Path:
    """Folder of the journal of applied edits."""
    return state_dir() / "journal"


def proposals_dir() -> Path:
    """Folder of edits that wait for review."""
    return state_dir() / "proposals"


def sessions_dir() -> Path:
    """Folder of reviews that were left undecided."""
    return state_dir() / "sessions"


def logs_dir() -> Path:
    """Folder of log files."""
    return state_dir() / "logs"


def settings_file() -> Path:
    """The settings file, which need not exist: config/redraft/settings.toml."""
    return Path(platformdirs.user_config_dir("redraft")) / "settings.toml"


def private_dir(folder: Path) -> Path:
    """Make `folder` (and its parents) with mode 0700 and return it.

    Raises SettingsError when it cannot be made, is not a folder, or belongs to someone else: what we keep there is the
    user's source code.
    """
    try:
        for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise SettingsError(f"The folder {shown(folder)} cannot be made: {error.strerror}.") from error
    if not stat.S_ISDIR(found.st_mode):
        raise SettingsError(f"{shown(folder)} is not a folder; move it out of the way.")
    if found.st_uid != os.geteuid():
        raise SettingsError(f"The folder {shown(folder)} belongs to another user; set XDG_STATE_HOME to one of yours.")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder


def shown(path: str | os.PathLike[str]) -> str:
    """`path` as it may be printed: control characters, line ends and undecodable bytes are escaped, never raw."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode("ascii")
        for char in os.fspath(path)
    )
