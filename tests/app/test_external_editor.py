"""The user's editor: found, run, and taken at its word only when it ended well."""

import os
import stat
import sys
from pathlib import Path

import pytest

from app.errors import UsageError
from app.external_editor import edit_file, edit_text, editor_command
from tests.support.headless_edit import assert_sentence


def editor(folder: Path, code: str) -> dict[str, str]:
    """An environment whose editor runs `code` with the file's path in `path`."""
    script = folder / "editor script.py"
    script.write_text(f"import os, sys\npath = sys.argv[-1]\n{code}\n")
    return {"EDITOR": f"{sys.executable} '{script}' --wait"}


def test_visual_goes_before_editor_and_options_are_kept() -> None:
    assert editor_command({"VISUAL": "code --wait", "EDITOR": "vi"}) == ["code", "--wait"]
    assert editor_command({"VISUAL": " ", "EDITOR": "'/my editor/vi' -n"}) == ["/my editor/vi", "-n"]


def test_what_the_editor_leaves_comes_back(tmp_path: Path) -> None:
    code = "text = open(path, newline='').read(); open(path, 'w', newline='').write(text + 'größer\\r\\n')"
    assert edit_text("a\n", ".py", editor(tmp_path, code)) == "a\ngrößer\r\n"


def test_the_text_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = f"open({str(seen)!r}, 'w').write(path + ' ' + str(os.stat(os.path.dirname(path)).st_mode))"
    edit_text("secret", ".py", editor(tmp_path, code))
    path, mode = seen.read_text().split()
    assert path.endswith(".py") and stat.S_IMODE(int(mode)) == 0o700
    assert not os.path.exists(os.path.dirname(path))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("open(path, 'w').write('half'); sys.exit(3)", "ended with 3"),
        ("os.kill(os.getpid(), 9)", "ended with -9"),
        ("os.unlink(path)", "removed the file"),
        ("open(path, 'wb').write(b'\\xff')", "not UTF-8"),
    ],
)
def test_an_editor_that_fails_changes_nothing(tmp_path: Path, code: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        edit_text("a", ".py", editor(tmp_path, code))
    assert_sentence(str(caught.value))


@pytest.mark.parametrize("environment", [{}, {"EDITOR": ""}, {"EDITOR": "'vi"}, {"EDITOR": "/no/such/editor"}])
def test_without_an_editor_that_is_said(tmp_path: Path, environment: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        edit_file(tmp_path / "x", environment)
    assert_sentence(str(caught.value))
