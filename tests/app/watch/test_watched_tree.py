"""A watch on a tree that changes: files and folders that come, go, move, are ignored, or lead elsewhere."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from app.watch.events import Failed, Ready
from app.watch.rules import StandingRules
from tests.support.watch_rig import WatchClient, edit_with, watching

ALL = StandingRules("Say hello.")


@pytest.fixture
def client() -> WatchClient:
    return WatchClient(edit_with(lambda source: f"{source}print('hello')\n"))


def test_files_come_and_go_while_they_wait(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        gone, folder, link, kept = (tmp_path / f"{name}.py" for name in ("gone", "folder", "link", "kept"))
        async with watching(tmp_path, client, standing=ALL) as rig:
            for path in (gone, folder, link, kept):
                path.write_text(f"{path.stem} = 1\n")
            await rig.heard()
            gone.unlink()
            folder.unlink()
            folder.mkdir()
            (folder / "inner.py").write_text("inner = 1\n")
            link.unlink()
            link.symlink_to("/etc/passwd")
            await rig.settle()
            assert sorted(client.edited()) == ["inner = 1\n", "kept = 1\n"]
            assert rig.of(Failed) == []

    asyncio.run(work())


def test_links_lead_nowhere(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        root, outside = tmp_path / "root", tmp_path / "outside"
        root.mkdir()
        outside.mkdir()
        (outside / "a.py").write_text("a = 1\n")
        (root / "folder").symlink_to(outside)
        (root / "file.py").symlink_to(outside / "a.py")
        (root / "loop").symlink_to(root)
        async with watching(root, client, standing=ALL) as rig:
            assert (rig.of(Ready)[0].files, rig.of(Ready)[0].folders) == (0, 1)
            (outside / "a.py").write_text("a = 2\n")
            (root / "late").symlink_to(outside)
            await rig.settle(40.0)
            await rig.settle()
            assert client.requests == []

    asyncio.run(work())


def test_new_and_renamed_folders_are_watched(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL) as rig:
            deep = tmp_path / "one" / "two"
            deep.mkdir(parents=True)
            (deep / "a.py").write_text("a = 1\n")
            await rig.settle()
            assert client.edited() == ["a = 1\n"]
            (tmp_path / "one").rename(tmp_path / "uno")
            await rig.settle()
            assert len(client.requests) == 1  # the same file, elsewhere
            (tmp_path / "uno" / "two" / "a.py").write_text("a = 2\n")
            (tmp_path / "uno" / "b.py").write_text("b = 1\n")
            await rig.settle()
            assert sorted(client.edited()) == ["a = 1\n", "a = 2\n", "b = 1\n"]
            (tmp_path / "uno" / "b.py").rename(tmp_path / "c.py")
            await rig.settle()
            assert len(client.requests) == 3

    asyncio.run(work())


def test_roots_may_lie_in_each_other(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        inner = tmp_path / "inner"
        inner.mkdir()
        named = inner / "named.py"
        named.write_text("named = 1\n")
        async with watching(tmp_path, client, paths=[inner, tmp_path, named, named], standing=ALL) as rig:
            named.write_text("named = 2\n")
            (inner / "new.py").write_text("new = 1\n")
            (tmp_path / "outer.py").write_text("outer = 1\n")
            await rig.settle()
            assert sorted(client.edited()) == ["named = 2\n", "new = 1\n", "outer = 1\n"]
            shutil.rmtree(inner)
            await rig.settle()
            inner.mkdir()
            (inner / "again.py").write_text("again = 1\n")
            await rig.settle()
            assert client.edited()[3:] == ["again = 1\n"]

    asyncio.run(work())


def test_a_file_that_was_named_is_watched_alone_and_whatever_ignores_it(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        (tmp_path / ".gitignore").write_text("*\n")
        named = tmp_path / "a[1].py"
        named.write_text("a = 1\n")
        async with watching(tmp_path, client, paths=[named], standing=ALL) as rig:
            assert (rig.of(Ready)[0].files, rig.of(Ready)[0].roots) == (1, (str(named),))
            (tmp_path / "a1.py").write_text("b = 1\n")
            named.with_name("part").write_text("a = 2\n")
            named.with_name("part").replace(named)
            await rig.settle()
            assert client.edited() == ["a = 2\n"]

    asyncio.run(work())


def test_ignored_folders_are_never_watched(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        for name in (".git", "node_modules/x", ".venv/lib", "built", "kept"):
            (tmp_path / name).mkdir(parents=True)
        (tmp_path / ".gitignore").write_text("built/\n*.log\n!kept.log\n")
        async with watching(tmp_path, client, standing=ALL) as rig:
            assert rig.of(Ready)[0].folders == 2
            for name in (".git/a.py", "node_modules/x/a.py", ".venv/lib/a.py", "built/a.py", "a.log", "a.py~"):
                (tmp_path / name).write_text("ignored = 1\n")
            (tmp_path / "kept.log").write_text("kept = 1\n")
            await rig.settle(40.0)
            await rig.settle()
            assert client.edited() == ["kept = 1\n"]
            (tmp_path / ".gitignore").write_text("kept/\n")
            (tmp_path / "built" / "b.py").write_text("b = 1\n")
            await rig.settle()
            await rig.settle()
            assert "b = 1\n" in client.edited()

    asyncio.run(work())


@pytest.mark.parametrize("named", [False, True])
def test_names_are_never_patterns(tmp_path: Path, client: WatchClient, named: bool) -> None:
    """Odd files, in odd folders: each save is that file's, whether it was named or lies under a root."""
    names = ["[id]/page.py", "(x)/[...slug].py", "*.py", "a b.py", "-x.py", "new\nline.py", "{y}.py", "b\\_c.py"]
    names.append(os.fsdecode(b"st\xff.py"))
    others = ["i/page.py", "(x)/l.py", "z.py", "_c.py", "y.py"]
    for name in [*names, *others]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 0\n")
    paths = [tmp_path / name for name in names]

    async def work() -> None:
        async with watching(tmp_path, client, paths=paths if named else None, standing=ALL) as rig:
            for path in paths:
                path.write_text("x = 1\n")
            await rig.settle()
            assert sorted(stored.path for stored in rig.proposals()) == sorted(map(str, paths))
            assert client.edited() == ["x = 1\n"] * len(paths)

    asyncio.run(work())
