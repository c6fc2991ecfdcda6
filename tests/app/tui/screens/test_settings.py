"""The settings screen: values and origins, a file that is wrong, the user's editor, and places."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.errors import UsageError
from app.paths import settings_file
from app.private_files import write_private
from app.settings import Settings, load_settings
from app.tui.screens.settings import SettingsScreen
from tests.support.screens import Play, run_screen

WIDE = (130, 45)


def no_edit(path: Path) -> None:
    raise AssertionError("nobody asked for the editor")


def screen(
    edit: Callable[[Path], None] = no_edit, copied: list[str] | None = None, changed: list[Settings] | None = None
) -> SettingsScreen:
    copied = [] if copied is None else copied
    changed = [] if changed is None else changed
    return SettingsScreen(edit, copied.append, lambda: changed.append(load_settings()))


def test_values_and_where_they_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    write_private(settings_file(), b"threads = 3\n[keys]\nretry = 'f12'\n")
    monkeypatch.setenv("REDRAFT_THEME", "light")

    async def steps(play: Play) -> None:
        lines = {line.split()[1]: line for line in play.text().splitlines() if len(line.split()) > 3}
        assert "3" in lines["threads"] and "settings.toml" in lines["threads"]
        assert "light" in lines["ui.theme"] and "REDRAFT_THEME" in lines["ui.theme"]
        assert "default" in lines["edit.strict"]
        assert "f12" in lines["keys.retry"]
        await play.press("escape")

    assert run_screen(screen(), steps, WIDE) == [None]


def test_what_the_command_line_said_comes_from_its_option() -> None:
    write_private(settings_file(), b"threads = 3\nmodel = 'smollm2'\n")
    given = {"model": ("qwen2.5-coder-1.5b", "--model"), "edit.draft": (False, "--no-draft")}
    shown = SettingsScreen(no_edit, lambda text: None, lambda: None, given)

    async def steps(play: Play) -> None:
        lines = {line.split()[1]: line for line in play.text().splitlines() if len(line.split()) > 3}
        assert "qwen2.5-coder-1.5b" in lines["model"] and "--model" in lines["model"]
        assert "False" in lines["edit.draft"] and "--no-draft" in lines["edit.draft"]
        assert "settings.toml" in lines["threads"]
        await play.press("escape")

    run_screen(shown, steps, WIDE)


def test_a_wrong_file_is_said_and_can_still_be_edited() -> None:
    write_private(settings_file(), b"thread = 3\n")
    changed: list[Settings] = []

    def mend(path: Path) -> None:
        path.write_text("threads = 3\n")

    async def steps(play: Play) -> None:
        assert "unknown key `thread`" in play.text()
        await play.press("e")
        assert "unknown key" not in play.text() and "count at once" in play.text()

    run_screen(screen(mend, changed=changed), steps, WIDE)
    assert [settings.load.threads for settings in changed] == [3]


def test_what_is_made_wrong_does_not_count() -> None:
    changed: list[Settings] = []

    async def steps(play: Play) -> None:
        await play.press("e")
        assert "not valid TOML" in play.text() and "The settings in force stay." in " ".join(play.text().split())

    run_screen(screen(lambda path: path.write_text("threads =") and None, changed=changed), steps, WIDE)
    assert changed == []


def test_without_a_file_the_editor_gets_one_that_sets_nothing() -> None:
    seen: list[str] = []

    async def steps(play: Play) -> None:
        await play.press("e")

    run_screen(screen(lambda path: seen.append(path.read_text())), steps, WIDE)
    assert "# threads = 0" in seen[0] and load_settings() == Settings()


def test_an_editor_that_fails_is_said() -> None:
    def fail(path: Path) -> None:
        raise UsageError("Neither $VISUAL nor $EDITOR is set.")

    async def steps(play: Play) -> None:
        await play.press("e")
        assert "Neither $VISUAL nor $EDITOR is set." in play.text()

    run_screen(screen(fail), steps, WIDE)


def test_places_are_located_and_copied() -> None:
    copied: list[str] = []

    async def steps(play: Play) -> None:
        await play.press("l", "ctrl+end", "l")

    run_screen(screen(copied=copied), steps, WIDE)
    assert copied[0] == str(settings_file()) and copied[1].endswith("redraft/logs")
