"""Which files there are, and which of them some letters mean."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.file_search import best_matches, files_under

PATHS = ["README.md", "app/cli.py", "app/tui/app.py", "app/tui/screens/help.py", "tests/app/test_cli.py", "Cli.txt"]


class Without:
    """Rules that leave folders of these names out, and say what they were asked."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked: list[str] = []
        self.entered: list[str] = []

    def enter(self, folder: str) -> None:
        self.entered.append(os.path.basename(folder))

    def ignores(self, folder: str, name: str, is_folder: bool) -> bool:
        self.asked.append(name)
        return is_folder and name in self.names


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")


def test_nearer_files_first_and_ignored_folders_not_entered(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a/c.py", "a/d/e.py", ".git/config", "node_modules/x/y.js")
    rules = Without(".git", "node_modules")
    assert list(files_under(str(tmp_path), rules)) == ["b.py", "a/c.py", "a/d/e.py"]
    assert "config" not in rules.asked and "x" not in rules.asked
    assert rules.entered == [tmp_path.name, "a", "d"]


def test_links_to_folders_are_not_followed_and_devices_left_out(tmp_path: Path) -> None:
    make(tmp_path, "real/a.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "link.py").symlink_to(tmp_path / "real" / "a.py")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    assert list(files_under(str(tmp_path), Without())) == ["link.py", "real/a.py"]


def test_a_folder_that_cannot_be_read_has_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a/b.py", "c.py")
    scan = os.scandir

    def refusing(path: str) -> object:
        if os.path.basename(path) == "a":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert list(files_under(str(tmp_path), Without())) == ["c.py"]
    assert list(files_under(str(tmp_path / "none"), Without())) == []


def test_no_more_than_asked_for(tmp_path: Path) -> None:
    make(tmp_path, *(f"{number}.py" for number in range(5)))
    assert len(list(files_under(str(tmp_path), Without(), most=3))) == 3


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("cli.py", "app/cli.py"),
        ("help", "app/tui/screens/help.py"),
        ("tui app", "app/tui/app.py"),
        ("Cli", "Cli.txt"),
        ("readme", "README.md"),
        ("tcli", "tests/app/test_cli.py"),
        ("atsh", "app/tui/screens/help.py"),
    ],
)
def test_the_meant_file_comes_first(query: str, first: str) -> None:
    assert best_matches(query, PATHS)[0] == first


def test_recent_files_lead_without_a_query_and_among_equals() -> None:
    assert best_matches("", PATHS, ["app/tui/app.py"])[:2] == ["app/tui/app.py", "README.md"]
    both = ["a/x.py", "b/x.py"]
    assert best_matches("x.py", both) == both
    assert best_matches("x.py", both, ["b/x.py"]) == both[::-1]


def test_what_does_not_have_the_letters_is_left_out() -> None:
    assert best_matches("zzz", PATHS) == []
    assert best_matches("CLI", ["cli.py"]) == []


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.text("abc/.", min_size=1, max_size=8), max_size=12), st.text("abc ", max_size=4))
def test_exactly_the_paths_with_every_words_letters_in_order(paths: list[str], query: str) -> None:
    def has(word: str, path: str) -> bool:
        rest = iter(path)
        return all(letter in rest for letter in word)

    expected = {path for path in paths if all(has(word, path) for word in query.split())}
    found = best_matches(query, paths)
    assert set(found) == expected and len(found) == len(expected)
