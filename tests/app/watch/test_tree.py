"""The tree: held against a slow, obvious twin that looks at everything from the start, over random histories."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import FileMissingError
from app.watch.ignore import MOST_BYTES, Ignore
from app.watch.tree import Kind, Seen, Tree


class Watched:
    """A tree, and the folders that were entered and not left."""

    def __init__(self, root: Path, only: frozenset[str] | None = None) -> None:
        self.entered: list[str] = []
        self.notes: list[str] = []
        self.root = str(root)
        self.tree = Tree(
            self.root,
            Ignore(self.root, self.notes.append),
            only=only,
            enter=self.entered.append,
            leave=self.entered.remove,
            note=self.notes.append,
        )
        list(self.tree.walk(self.root, baseline=True))

    def changed(self) -> set[str]:
        found = [path for files in self.tree.walk(self.root) for path in files]
        assert len(found) == len(set(found))
        return {os.path.relpath(path, self.root) for path in found}


def everything(root: Path) -> tuple[dict[str, tuple[int, ...]], set[str]]:
    """(what every file that may be edited looks like, every folder), found from nothing."""
    files: dict[str, tuple[int, ...]] = {}
    folders = {str(root)}
    for at, below, names in os.walk(root):
        below[:] = [name for name in below if not os.path.islink(os.path.join(at, name)) and name != "node_modules"]
        folders |= {os.path.join(at, name) for name in below}
        for name in names:
            path = os.path.join(at, name)
            found = os.lstat(path)
            if not os.path.islink(path) and not name.endswith("~") and found.st_size:
                looks = (found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns)
                files[os.path.relpath(path, root)] = looks
    return files, folders


_NAMES = st.sampled_from(["a", "b", "b~", "d/a", "d/b", "d/e/a", "node_modules/a"])
_STEPS = st.one_of(
    st.tuples(st.sampled_from(["write", "grow", "empty", "unlink", "touch", "link"]), _NAMES, _NAMES),
    st.tuples(st.sampled_from(["rename"]), _NAMES, _NAMES),
    st.tuples(st.sampled_from(["rmtree", "move"]), st.sampled_from(["d", "d/e"]), st.sampled_from(["f", "d/g"])),
)


def do(root: Path, step: str, name: str, other: str) -> None:
    path = root / name
    try:
        if step in ("write", "grow", "empty"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a" if step == "grow" else "w") as stream:
                stream.write("" if step == "empty" else "text")
        elif step == "unlink":
            path.unlink()
        elif step == "touch":
            os.utime(path, (1, 1))
        elif step == "link":
            path.symlink_to(root / other)
        elif step == "rename":
            path.replace(root / other)
        elif step == "rmtree":
            shutil.rmtree(path)
        else:
            path.rename(root / other)
    except OSError:
        pass  # not possible as things are


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.lists(st.lists(_STEPS, max_size=6), max_size=5))
def test_a_walk_finds_what_has_changed(batches: list[list[tuple[str, str, str]]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        watched = Watched(root)
        before, _ = everything(root)
        for batch in batches:
            for step in batch:
                do(root, *step)
            now, folders = everything(root)
            changed = watched.changed()
            # A file that was emptied and comes back as it was has not changed; the twin remembers no empty ones.
            assert {path for path in now if before.get(path) != now[path]} == changed
            assert sorted(watched.entered) == sorted(folders)
            assert watched.tree.folders == len(folders)
            assert watched.changed() == set()
            before = now


def test_one_name_at_a_time(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    path = tmp_path / "a.py"

    def see(name: str = "a.py") -> Seen:
        return watched.tree.see(watched.root, name)

    path.write_text("a")
    assert see() == Seen(Kind.FILE, True) and see() == Seen(Kind.FILE, False)
    path.chmod(0o600)
    assert see() == Seen(Kind.FILE, False)
    os.utime(path, (1, 1))
    assert see() == Seen(Kind.FILE, True)
    path.unlink()
    assert see() == Seen(Kind.GONE, True)
    path.mkdir()
    assert see() == Seen(Kind.FOLDER, True) and see() == Seen(Kind.FOLDER, False)
    path.rmdir()
    path.symlink_to(tmp_path)
    assert see().kind is Kind.OTHER
    path.unlink()
    path.touch()
    assert see().kind is Kind.OTHER
    os.truncate(path, MOST_BYTES)
    assert see().kind is Kind.FILE
    os.truncate(path, MOST_BYTES + 1)
    assert see().kind is Kind.OTHER
    (tmp_path / "b~").write_text("b")
    assert see("b~").kind is Kind.OTHER


def test_a_folder_in_the_place_of_a_watched_one_is_left(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    watched = Watched(tmp_path)
    shutil.rmtree(tmp_path / "d")
    (tmp_path / "d").write_text("d")
    assert watched.tree.see(watched.root, "d") == Seen(Kind.FILE, True)
    assert watched.entered == [watched.root]


def test_a_moved_folder_keeps_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "a.py").write_text("a")
    watched = Watched(tmp_path)
    (tmp_path / "d").rename(tmp_path / "n")
    watched.tree.see(watched.root, "n")
    watched.tree.move(str(tmp_path / "d"), str(tmp_path / "n"))
    assert watched.changed() == set()
    assert sorted(watched.entered) == [watched.root, f"{watched.root}/n", f"{watched.root}/n/e"]


def test_a_doubted_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a")
    watched = Watched(tmp_path)
    assert watched.changed() == set()
    watched.tree.doubt(str(tmp_path / "a.py"))
    watched.tree.doubt(str(tmp_path / "none.py"))
    assert watched.changed() == {"a.py"}


def test_only_some_names(tmp_path: Path) -> None:
    for name in ("a.py", "b~", "c.py"):
        (tmp_path / name).write_text(name)
    (tmp_path / "d").mkdir()
    watched = Watched(tmp_path, frozenset({"a.py", "b~", "d"}))
    assert (watched.tree.files, watched.tree.folders, watched.tree.is_partial) == (2, 1, True)
    for name in ("a.py", "b~", "c.py"):
        (tmp_path / name).write_text("changed")
    assert watched.changed() == {"a.py", "b~"}
    assert [sorted(files) for files in watched.tree.all_files()] == [[str(tmp_path / "a.py"), str(tmp_path / "b~")]]


def test_a_root_that_is_gone_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    watched = Watched(root)
    root.rmdir()
    with pytest.raises(FileMissingError, match="no longer mounted"):
        watched.changed()
    root.write_text("")
    with pytest.raises(FileMissingError):
        watched.changed()
