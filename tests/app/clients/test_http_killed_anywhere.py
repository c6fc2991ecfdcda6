"""Client or server killed at any moment of an edit over HTTP: the file is the old or the new one, the next edit works.

Some in CI; with REDRAFT_SOAK=1 (`make soak`) 500 of each.
"""

import random
import statistics
import sys
from pathlib import Path

import pytest

from app.errors import ExitCode
from tests.support.edits import others
from tests.support.forked_commands import Ended, Forks, forks
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.raw_server import raw_server
from tests.support.soak import SOAK

KILLS = 500 if SOAK else 12
PREPARE = """
import anyio._backends._asyncio, httpcore2
import app.clients.choose, app.clients.http, app.edit_command, app.editing.apply, app.headless, app.history_command
app.clients.http.PAUSES_S = (0.0, 0.0, 0.0)
"""


def edited(forked: Forks, file: Path, address: str) -> Ended:
    return forked.start("edit", file.name, "-i", "Do.", "--apply", "--engine", address).end()


def next_works(forked: Forks, file: Path, address: str) -> None:
    """What a user does next, an undo or the same edit once more, does what it should; leaves the file as it was."""
    if file.read_text() == SOURCE:
        assert edited(forked, file, address).code == ExitCode.OK
    assert file.read_text() == CHANGED
    assert forked.start("undo", file.name).end().code == ExitCode.OK
    assert file.read_text() == SOURCE
    assert others(file.parent) == [file.name]


def test_a_client_killed_at_any_moment(file: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    chance = random.Random(31)
    found = {SOURCE: 0, CHANGED: 0}
    said = tmp_path_factory.mktemp("said") / "run"
    with raw_server("whole") as server, forks(file.parent, said, PREPARE) as forked:
        for number in range(KILLS):
            if number % 50 == 0:  # how busy the machine is changes
                whole = []
                for _ in range(3):
                    whole.append(edited(forked, file, server.address).seconds)
                    next_works(forked, file, server.address)
            run = forked.start("edit", file.name, "-i", "Do.", "--apply", "--engine", server.address)
            moment = (number + chance.random()) / KILLS * 1.4  # evenly, since the exchange comes late
            run.kill(moment * statistics.median(whole))
            run.end()
            found[file.read_text()] += 1  # the one or the other
            next_works(forked, file, server.address)
    assert all(found.values()), "every kill came on one side of the exchange"


def test_a_server_killed_after_any_byte(file: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    chance = random.Random(32)
    said = tmp_path_factory.mktemp("said") / "run"
    broken = 0
    with raw_server("whole") as server, forks(file.parent, said, PREPARE) as forked:
        next_works(forked, file, server.address)
        whole = sys.maxsize - server.left
        for _ in range(KILLS):
            with raw_server("whole", chance.randrange(whole), resets=chance.random() < 0.5) as dying:
                ended = edited(forked, file, dying.address)
            if ended.code == ExitCode.OK:  # what was lost came after the end of the reply
                assert file.read_text() == CHANGED
            else:
                assert ended.code == ExitCode.ENGINE, ended.err
                assert file.read_text() == SOURCE
                broken += 1
            assert others(file.parent) == [file.name]
            next_works(forked, file, server.address)
    assert broken > KILLS // 2
