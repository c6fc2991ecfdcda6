"""What a watch leaves alone: git's own answers, and the list that no .gitignore can undo."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.watch.ignore import Ignore


def ignored(root: Path, *, notes: list[str] | None = None) -> set[str]:
    """Every file and folder below `root` that is ignored, or lies in an ignored folder."""
    said: list[str] = [] if notes is None else notes
    rules = Ignore(str(root), said.append)
    found: set[str] = set()
    pending = [str(root)]
    while pending:
        folder = pending.pop()
        rules.enter(folder)
        for entry in os.scandir(folder):
            path = os.path.join(folder, entry.name)
            if rules.ignores(folder, entry.name, entry.is_dir()):
                found.add(os.path.relpath(path, root))
                found |= {os.path.relpath(os.path.join(at, name), root) for at, d, f in os.walk(path) for name in d + f}
            elif entry.is_dir():
                pending.append(path)
    return found


@pytest.mark.parametrize(
    "name",
    [
        "a.py~",
        "a.bak",
        ".a.py.swp",
        ".a.py.swx",
        "#a.py#",
        ".#a.py",
        "4913",
        "a.py.orig",
        ".redraft-0a1b.tmp",
        "a.min.js",
    ],
)
def test_backups_and_swap_files_are_ignored(tmp_path: Path, name: str) -> None:
    (tmp_path / ".gitignore").write_text("!*\n")
    (tmp_path / name).touch()
    (tmp_path / "kept.py").touch()
    assert ignored(tmp_path) == {name}


def test_environments_and_repositories_are_never_entered(tmp_path: Path) -> None:
    for folder in (".git", ".venv", "a/node_modules", "a/__pycache__"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "a" / "venv.py").touch()
    assert {path for path in ignored(tmp_path) if "venv.py" not in path} == {
        ".git", ".venv", "a/node_modules", "a/__pycache__",
    }  # fmt: skip
    assert "a/venv.py" not in ignored(tmp_path)


def test_rules_of_the_repository_above_count(tmp_path: Path) -> None:
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("secret.py\n")
    (tmp_path / ".gitignore").write_text("/src/made.py\n*.log\n")
    src = tmp_path / "src"
    src.mkdir()
    for name in ("made.py", "secret.py", "a.log", "kept.py"):
        (src / name).touch()
    assert ignored(src) == {"made.py", "secret.py", "a.log"}
    (tmp_path / ".git" / "info" / "exclude").unlink()
    (tmp_path / ".git" / "info").rmdir()
    (tmp_path / ".git").rmdir()  # no repository: folders above are none of our business
    assert ignored(src) == set()


def test_a_pattern_that_is_none_is_said_and_left_out(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"!\n*.log\n\xff\xfe\n")
    (tmp_path / "a.log").touch()
    notes: list[str] = []
    assert ignored(tmp_path, notes=notes) == {"a.log"}
    assert len(notes) == 1 and "line 1" in notes[0]


def test_what_could_hold_us_up_is_no_file_of_patterns(tmp_path: Path) -> None:
    for name in ("pipe", "device", "folder", "huge"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.log").touch()
    os.mkfifo(tmp_path / "pipe" / ".gitignore")
    (tmp_path / "device" / ".gitignore").symlink_to("/dev/zero")
    (tmp_path / "folder" / ".gitignore").mkdir()
    (tmp_path / "huge" / ".gitignore").write_bytes(b"*.log\n" * 200_000)
    for name in ("pipe", "device", "folder", "huge"):
        notes: list[str] = []
        assert ignored(tmp_path / name, notes=notes) & {"a.log"} == set()
        assert len(notes) == 1 and "cannot be read" in notes[0]


_LINES = st.sampled_from(
    ["*.py", "!a.py", "b/", "/a.py", "b/*.py", "**/c", "!b/", "c", "b/**", "# note", "", "a?py", "[ab].py", "!c/a.py",
     "/b/c/", "*", "!*/", "b", "!b/a.py"]
)  # fmt: skip


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the twin")
@settings(derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(top=st.lists(_LINES, max_size=4), inner=st.lists(_LINES, max_size=3))
def test_git_says_the_same(tmp_path: Path, top: list[str], inner: list[str]) -> None:
    root = tmp_path / "repository"
    if not root.exists():
        for folder in ("b/c", "c"):
            (root / folder).mkdir(parents=True)
        for name in ("a.py", "b.py", "b/a.py", "b/c/a.py", "c/a.py", "b/x.txt"):
            (root / name).touch()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("\n".join(top) + "\n")
    (root / "b" / ".gitignore").write_text("\n".join(inner) + "\n")
    asked = [os.path.relpath(os.path.join(at, name), root) for at, _, files in os.walk(root) for name in files]
    asked = [name for name in asked if not name.startswith(".git")]
    done = subprocess.run(
        ["git", "-C", str(root), "check-ignore", "--no-index", "--stdin", "-z"],
        input="\0".join(asked).encode(),
        capture_output=True,
    )
    gits = set(done.stdout.decode().split("\0")) - {""}
    assert ignored(root) & set(asked) == gits
