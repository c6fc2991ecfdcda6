"""State folders are private, and any path can be printed."""

import os
import stat
from pathlib import Path

import pytest

from app.errors import SettingsError
from app.paths import journal_dir, logs_dir, private_dir, proposals_dir, sessions_dir, settings_file, shown


def test_folders_follow_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    state = tmp_path / "s" / "redraft"
    assert [journal_dir(), proposals_dir(), sessions_dir(), logs_dir()] == [
        state / name for name in ("journal", "proposals", "sessions", "logs")
    ]
    assert settings_file() == tmp_path / "c" / "redraft" / "settings.toml"
    assert list(tmp_path.iterdir()) == []


def test_private_folders_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        made = private_dir(tmp_path / "a" / "b")
    finally:
        os.umask(old)
    assert [stat.S_IMODE(place.stat().st_mode) for place in (made.parent, made)] == [0o700, 0o700]


def test_a_folder_that_cannot_be_made_or_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(SettingsError):
            private_dir(place)
    if os.geteuid() == 0:
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        os.chown(theirs, 1, 1)
        with pytest.raises(SettingsError, match="another user"):
            private_dir(theirs)


@pytest.mark.parametrize(
    ("path", "printed"),
    [
        ("a b/[c].py", "a b/[c].py"),
        ("日本/é", "日本/é"),
        ("two\nlines", "two\\nlines"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("stray\udcff", "stray\\udcff"),
        ("right\u202eleft", "right\\u202eleft"),
    ],
)
def test_shown_paths_are_printable(path: str, printed: str) -> None:
    assert shown(path) == printed
    assert shown(Path(path)) == printed
