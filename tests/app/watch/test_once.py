"""A watch over what is there now (`--once`), names that mean nothing, and its end."""

import asyncio
import os
from pathlib import Path

import pytest

from app.editing.document import open_bytes
from app.errors import ExitCode, FileMissingError, NotAFileError
from app.watch.job import EditLimits, asked_of
from app.watch.roots import Roots
from app.watch.rules import StandingRules
from app.watch.warm_start import WarmStart
from tests.support.watch_rig import WatchClient, watching

ALL = StandingRules("Say hello.")
TRIGGER = "# redraft: say hello\n"


def test_once_edits_what_has_triggers_and_what_was_named(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        (tmp_path / "a.py").write_text("a = 1\n" + TRIGGER)
        (tmp_path / "b.py").write_text("b = 1\n")
        (tmp_path / "c.py").write_text("c = 1\n")
        (tmp_path / "ignored.log").write_text("d = 1\n")
        (tmp_path / ".gitignore").write_text("*.log\n")
        (tmp_path / "large.py").write_text(TRIGGER + "e = 1\n" * 200_000)
        (tmp_path / "empty.py").touch()
        paths = [tmp_path, tmp_path / "b.py", tmp_path / "ignored.log"]
        async with watching(tmp_path, client, paths=paths, standing=ALL, once=True, wait=False) as rig:
            assert await rig.ended() is ExitCode.OK
            assert sorted(client.edited()) == ["a = 1\n", "b = 1\n", "d = 1\n"]
            assert len(rig.proposals()) == 3
        async with watching(tmp_path, client, once=True, paths=[tmp_path / "c.py"], wait=False) as rig:
            assert await rig.ended() is ExitCode.UNCHANGED

    asyncio.run(work())


def test_once_edits_the_newest_state_of_a_file_that_is_saved_meanwhile(tmp_path: Path, client: WatchClient) -> None:
    path = tmp_path / "a.py"

    def save_once() -> None:
        client.at_token.clear()
        path.write_text("x = 2\n" + TRIGGER)

    async def work() -> None:
        path.write_text("x = 1\n" + TRIGGER)
        client.at_token[2] = save_once
        async with watching(tmp_path, client, once=True, apply=True, wait=False) as rig:
            assert await rig.ended() is ExitCode.OK
            assert path.read_text() == "x = 2\nprint('hello')\n"

    asyncio.run(work())


def test_a_path_that_is_not_there_is_refused(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        with pytest.raises(FileMissingError):
            async with watching(tmp_path, client, paths=[tmp_path / "nowhere"]):
                pass

    asyncio.run(work())


def test_an_empty_name_and_what_is_no_file_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def roots(name: str) -> Roots:
        return Roots((str(tmp_path), name), poll=True, wake=lambda: None, note=lambda _: None)

    for name, kind in (("", FileMissingError), (str(pipe), NotAFileError), ("/dev/null", NotAFileError)):
        with pytest.raises(kind):
            roots(name)


def test_the_end_of_a_watch_and_a_job_may_wait_for_the_same_prompt(client: WatchClient) -> None:
    asked = asked_of(open_bytes(b"x = 1\n", "a.py"), "Say hello.")
    assert asked is not None

    async def work() -> None:
        warm = WarmStart(client, EditLimits())
        warm.begin(lambda: asked)
        await asyncio.gather(warm.use(asked.document.sha256), warm.use(""))
        await warm.use("")
        assert len(client.warmed) <= 1

    asyncio.run(work())
