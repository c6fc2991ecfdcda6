"""Editors save in many ways; each is one save."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.watch.events import Proposed
from app.watch.rules import StandingRules
from tests.support.watch_rig import WatchClient, edit_with, watching

ALL = StandingRules("Say hello.")


@pytest.fixture
def client() -> WatchClient:
    return WatchClient(edit_with(lambda source: f"{source}print('hello')\n"))


def _in_place(path: Path, text: str) -> None:
    path.write_text(text)


def _in_steps(path: Path, text: str) -> None:
    """Truncate, write in pieces, sync, close; then a new time stamp."""
    with path.open("w") as stream:
        for char in text:
            stream.write(char)
            stream.flush()
        os.fsync(stream.fileno())
    os.utime(path)


def _rename_over(path: Path, text: str) -> None:
    part = path.with_name("tmp_k3jd9")
    part.write_text(text)
    part.replace(path)


def _rename_over_from_ignored(path: Path, text: str) -> None:
    part = path.with_name(".a.py.swp")
    part.write_text(text)
    part.replace(path)


def _delete_and_create(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def _backup_first(path: Path, text: str) -> None:
    """vim's default: the old file becomes the backup, a new one is written, the backup goes."""
    path.with_name("4913").touch()
    path.with_name("4913").unlink()
    backup = path.with_name("a.py~")
    path.replace(backup)
    path.write_text(text)
    path.chmod(0o644)
    backup.unlink()


def _chmod_first(path: Path, text: str) -> None:
    path.chmod(0o400)
    path.chmod(0o644)
    path.write_text(text)


def _through_lock_file(path: Path, text: str) -> None:
    """emacs: a link that leads nowhere while the buffer is dirty, an auto-save file, a backup."""
    lock, auto = path.with_name(".#a.py"), path.with_name("#a.py#")
    lock.symlink_to("user@host.1234")
    auto.write_text(text)
    path.write_text(text)
    auto.unlink()
    lock.unlink()


SAVES = [
    _in_place,
    _in_steps,
    _rename_over,
    _rename_over_from_ignored,
    _delete_and_create,
    _backup_first,
    _chmod_first,
    _through_lock_file,
]


@pytest.mark.parametrize("poll", [False, True])
@pytest.mark.parametrize("save", SAVES)
def test_every_way_of_saving_is_one_save(
    tmp_path: Path, client: WatchClient, save: Callable[[Path, str], None], poll: bool
) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        path.write_text("old = 1\n")
        async with watching(tmp_path, client, standing=ALL, poll=poll) as rig:
            for number in range(2):
                save(path, f"new = {number}\n")
                if poll:
                    rig.pace.advance(1.0)
                    await rig.until(lambda: rig.watcher.status.state == "settling")
                await rig.settle()
                await rig.settle(1.0)
                assert client.edited() == [f"new = {at}\n" for at in range(number + 1)]
            [stored] = rig.proposals()
            assert stored.path == str(path)
            assert [event.proposal.path for event in rig.of(Proposed)] == [str(path)] * 2

    asyncio.run(work())
