"""The user's command: run one at a time, never waited for, ended with the watch."""

import asyncio
from pathlib import Path

import pytest

from app.errors import FileEmptyError, UsageError
from app.watch.events import Failed, Note
from app.watch.notify import Notifier

EVENT = Failed("/a\x1b.py", FileEmptyError("It is empty."))


@pytest.mark.parametrize("command", ["", "  ", "'"])
def test_what_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(UsageError):
        Notifier(command, print)


def test_it_hears_of_edits_only_and_of_each_once(tmp_path: Path) -> None:
    script = tmp_path / "tell"
    script.write_text(f'#!/bin/sh\ncat >> {tmp_path}/events\nprintf "%s\\n" "$1" >> {tmp_path}/sentences\n')
    script.chmod(0o755)

    async def work() -> None:
        notes: list[str] = []
        notifier = Notifier(str(script), notes.append)
        for _ in range(3):
            notifier.hear(EVENT)
            notifier.hear(Note("no edit"))
        assert notifier.working is not None
        await notifier.working
        await notifier.close()
        assert notes == []

    asyncio.run(work())
    assert (tmp_path / "sentences").read_text() == "/a\\x1b.py: It is empty.\n" * 3
    assert (tmp_path / "events").read_text().count('"file_empty"') == 3


def test_a_failing_command_is_said_once() -> None:
    async def work() -> None:
        notes: list[str] = []
        notifier = Notifier("false", notes.append)
        for _ in range(3):
            notifier.hear(EVENT)
        assert notifier.working is not None
        await notifier.working
        assert notes == ["The --notify command ended with code 1."]

    asyncio.run(work())


def test_one_that_hangs_is_ended_with_the_watch(tmp_path: Path) -> None:
    script = tmp_path / "hang"
    script.write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/pid.part; mv {tmp_path}/pid.part {tmp_path}/pid\nexec sleep 600\n"
    )
    script.chmod(0o755)

    async def work() -> None:
        notifier = Notifier(str(script), print)
        notifier.hear(EVENT)
        while not (tmp_path / "pid").exists():
            await asyncio.sleep(0)
        await notifier.close()

    asyncio.run(work())
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
