"""What goes wrong around a watch is said once, and lived with or ended by the right code."""

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from watchdog.observers.inotify_c import InotifyFD

from app.editing.document import Document
from app.editing.journal import Journal
from app.errors import (
    ExitCode,
    FileMissingError,
    FileUnreadableError,
    InterruptedByUserError,
    JournalError,
    ProposalError,
)
from app.watch.events import Failed, Note, Proposed, Ready
from app.watch.inotify import FolderEvent
from app.watch.job import open_saved
from app.watch.rules import StandingRules
from tests.support.watch_rig import HeardSource, Rig, WatchClient, edit_with, watching

ALL = StandingRules("Say hello.")


@pytest.fixture
def client() -> WatchClient:
    return WatchClient(edit_with(lambda source: f"{source}print('hello')\n"))


class DeafSource(HeardSource):
    """Events are lost while it is deaf."""

    deaf = False

    def drain(self) -> list[FolderEvent]:
        found = super().drain()
        return [] if self.deaf else found


def fail(number: int) -> Callable[..., Any]:
    def failing(*given: Any, **more: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return failing


async def look_again(rig: Rig) -> None:
    """A second passes, which is when what has no events is looked at again."""
    rig.pace.turned.clear()
    rig.pace.advance(1.0)
    await rig.until(rig.pace.turned.is_set)
    await rig.settle()


def test_without_further_watches_the_rest_is_looked_at_again_and_again(
    tmp_path: Path, client: WatchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = InotifyFD.add_callback

    def limited(self: InotifyFD, path: bytes, *given: Any) -> Any:
        if b"beyond" in path:
            raise OSError(errno.ENOSPC, "inotify watch limit reached")
        return real(self, path, *given)

    async def work() -> None:
        for name in ("within", "beyond/one", "beyond/two"):
            (tmp_path / name).mkdir(parents=True)
        monkeypatch.setattr(InotifyFD, "add_callback", limited)
        async with watching(tmp_path, client, standing=ALL) as rig:
            [note] = rig.of(Note)
            assert "max_user_watches" in note.sentence and not rig.of(Ready)[0].events
            (tmp_path / "beyond" / "one" / "a.py").write_text("a = 1\n")
            (tmp_path / "within" / "b.py").write_text("b = 1\n")
            await look_again(rig)
            assert sorted(client.edited()) == ["a = 1\n", "b = 1\n"]
            (tmp_path / "beyond" / "late").mkdir()
            await look_again(rig)
            assert len(rig.of(Note)) == 1

    asyncio.run(work())


def test_without_any_descriptor_everything_is_looked_at_again_and_again(
    tmp_path: Path, client: WatchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        monkeypatch.setattr(InotifyFD, "_create_inotify_fd", fail(errno.EMFILE))
        async with watching(tmp_path, client, standing=ALL) as rig:
            assert len(rig.of(Note)) == 1 and rig.source is None
            (tmp_path / "a.py").write_text("a = 1\n")
            await look_again(rig)
            assert client.edited() == ["a = 1\n"]

    asyncio.run(work())


def test_after_an_overflow_everything_is_looked_at(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "old.py").write_text("old = 1\n")
        async with watching(tmp_path, client, standing=ALL, source=DeafSource) as rig:
            assert isinstance(rig.source, DeafSource)
            rig.source.deaf = True
            (tmp_path / "folder" / "old.py").write_text("old = 22\n")
            (tmp_path / "new").mkdir()
            (tmp_path / "new" / "a.py").write_text("a = 1\n")
            await rig.heard()
            rig.source.deaf = False
            rig.source.on_queue_overflow()
            await rig.settle()
            await rig.settle()
            assert sorted(client.edited()) == ["a = 1\n", "old = 22\n"]

    asyncio.run(work())


def test_what_no_event_told_of_is_found_when_idle(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        path.write_text("a = 1\n")
        async with watching(tmp_path, client, standing=ALL, source=DeafSource) as rig:
            assert isinstance(rig.source, DeafSource)
            rig.source.deaf = True
            path.write_text("a = 2\n")
            os.utime(path, ns=(1, path.stat().st_mtime_ns))
            await rig.settle(29.0)
            assert client.requests == []
            await rig.settle(1.5)
            await rig.settle()
            assert client.edited() == ["a = 2\n"]

    asyncio.run(work())


def test_a_root_that_is_removed_ends_the_watch(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        root = tmp_path / "root"
        (root / "deep").mkdir(parents=True)
        async with watching(root, client, standing=ALL) as rig:
            shutil.rmtree(root)
            error = await rig.ended()
            assert isinstance(error, FileMissingError) and error.exit_code is ExitCode.FILE

    asyncio.run(work())


def test_a_root_that_is_renamed_ends_the_watch(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        root = tmp_path / "root"
        root.mkdir()
        async with watching(root, client, standing=ALL) as rig:
            root.rename(tmp_path / "elsewhere")
            assert isinstance(await rig.ended(), FileMissingError)

    asyncio.run(work())


def test_one_of_several_roots_may_go(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        one.mkdir()
        two.mkdir()
        async with watching(one, client, paths=[one, two], standing=ALL) as rig:
            two.rmdir()
            await rig.until(lambda: len(rig.of(Note)) == 1)
            (one / "a.py").write_text("a = 1\n")
            await rig.settle()
            assert client.edited() == ["a = 1\n"]

    asyncio.run(work())


def test_a_root_that_is_replaced_at_once_is_watched_on(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        root, other = tmp_path / "root", tmp_path / "other"
        root.mkdir()
        other.mkdir()
        async with watching(root, client, standing=ALL, source=DeafSource) as rig:
            assert isinstance(rig.source, DeafSource)
            root.rmdir()
            other.rename(root)  # before the watch has looked
            (root / "a.py").write_text("a = 1\n")
            await rig.until(lambda: rig.watcher.status.state == "settling")
            (root / "b.py").write_text("b = 1\n")
            await rig.settle()
            assert sorted(client.edited()) == ["a = 1\n", "b = 1\n"]

    asyncio.run(work())


def test_a_folder_that_may_not_be_read_is_said_once(
    tmp_path: Path, client: WatchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def closed(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    async def work() -> None:
        (tmp_path / "closed").mkdir()
        monkeypatch.setattr(os, "scandir", closed)
        async with watching(tmp_path, client, standing=ALL) as rig:
            await rig.settle(40.0)
            [note] = rig.of(Note)
            assert "closed" in note.sentence and "Permission denied" in note.sentence
            monkeypatch.setattr(os, "scandir", real)
            (tmp_path / "closed" / "a.py").write_text("a = 1\n")
            await rig.settle()
            assert client.edited() == ["a = 1\n"]

    asyncio.run(work())


def test_a_file_that_may_not_be_read_is_said_once_and_read_when_it_may(
    tmp_path: Path, client: WatchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: str) -> Document:
        raise FileUnreadableError(f"{path} cannot be read: Permission denied.")

    async def work() -> None:
        path = tmp_path / "a.py"
        async with watching(tmp_path, client, standing=ALL) as rig:
            monkeypatch.setattr("app.watch.gate.open_saved", closed)
            for number in range(3):
                path.write_text(f"a = {number}\n")
                await rig.settle()
            assert len(rig.of(Failed)) == 1
            monkeypatch.setattr("app.watch.gate.open_saved", open_saved)
            path.write_text("a = 3\n")
            await rig.settle()
            assert client.edited() == ["a = 3\n"]

    asyncio.run(work())


def test_binary_and_large_files_are_no_news(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL) as rig:
            (tmp_path / "a.bin").write_bytes(b"\0" * 100)
            (tmp_path / "big.py").write_bytes(b"x = 1\n" * 200_000)
            (tmp_path / "empty.py").touch()
            os.mkfifo(tmp_path / "pipe.py")
            await rig.settle()
            assert client.requests == [] and rig.of(Failed) == []
            (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
            await rig.settle()
            [failed] = rig.of(Failed)
            assert failed.error.code == "file_undecodable"
            assert "`redraft edit` has --encoding" in str(failed.error)

    asyncio.run(work())


def test_without_a_ledger_nothing_is_run(tmp_path: Path, client: WatchClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*given: object) -> None:
        raise JournalError("The journal cannot be read: Input/output error.")

    async def work() -> None:
        path = tmp_path / "a.py"
        async with watching(tmp_path, client, standing=ALL) as rig:
            with monkeypatch.context() as broken:
                broken.setattr(Journal, "written", unreadable)
                for number in range(2):
                    path.write_text(f"a = {number}\n")
                    await rig.settle()
            assert client.requests == []
            [failed] = rig.of(Failed)
            assert failed.error.code == "journal"
            path.write_text("a = 2\n")
            await rig.settle()
            assert client.edited() == ["a = 2\n"]

    asyncio.run(work())


def test_a_full_disk_is_said_and_the_edit_is_stored_when_there_is_room(
    tmp_path: Path, client: WatchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL) as rig:
            monkeypatch.setattr(os, "fsync", fail(errno.ENOSPC))
            (tmp_path / "a.py").write_text("a = 1\n")
            await rig.settle()
            await rig.settle(40.0)
            [failed] = rig.of(Failed)
            assert "No space left" in str(failed.error)
            assert rig.watcher.status.pending == 1 and rig.proposals() == []
            monkeypatch.setattr(os, "fsync", real)
            await rig.settle(40.0)
            assert len(rig.of(Proposed)) == len(rig.proposals()) == 1
            assert len(client.requests) == 1

    asyncio.run(work())


def test_an_edit_that_could_not_be_stored_in_the_end_is_exit_3(
    tmp_path: Path, client: WatchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL) as rig:
            monkeypatch.setattr(os, "fsync", fail(errno.ENOSPC))
            (tmp_path / "a.py").write_text("a = 1\n")
            await rig.settle()
            rig.watcher.stop()
            error = await rig.ended()
            assert isinstance(error, ProposalError) and error.exit_code is ExitCode.FILE

    asyncio.run(work())


@pytest.mark.parametrize("when", ["idle", "settling", "running"])
def test_stop_ends_it_whatever_it_does(tmp_path: Path, client: WatchClient, when: str) -> None:
    async def work() -> None:
        client.held = True
        async with watching(tmp_path, client, standing=ALL) as rig:
            if when != "idle":
                (tmp_path / "a.py").write_text("a = 1\n")
                await rig.heard()
            if when == "running":
                rig.pace.advance(0.25)
                await rig.until(lambda: len(client.requests) == 1)
            assert rig.watcher.status.state == when
            rig.watcher.stop()
            rig.watcher.stop()
            assert isinstance(await rig.ended(), InterruptedByUserError)
            assert rig.watcher.status.state == "stopped" and rig.proposals() == []

    asyncio.run(work())


def test_nothing_is_left_behind(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        before = threading.active_count(), len(os.listdir("/proc/self/fd"))
        for folder in range(30):
            (tmp_path / f"f{folder}").mkdir()
        async with watching(tmp_path, client, standing=ALL) as rig:
            assert rig.of(Ready)[0].folders == 31
            assert threading.active_count() == before[0] + 1  # one thread, however many folders
        assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before

    asyncio.run(work())
