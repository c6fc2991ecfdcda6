"""kill -9 at any moment of an apply: the file is the old or the new one, the next start settles, undo works.

Every call that an apply makes is tried in turn, and then random moments; REDRAFT_SOAK=1 tries many more of them.
"""

import os
import random
import signal
import statistics
import time
from pathlib import Path

import pytest

from app.editing.apply import apply_hunks
from app.editing.history import redo_edit, undo_edit
from app.editing.journal import Journal, State
from app.editing.settle import settle_all
from app.errors import NothingToUndoError
from tests.support.edits import NEW, OLD, edit_of, others
from tests.support.saboteur import Dying, in_child
from tests.support.soak import SOAK

RANDOM_KILLS = 2000 if SOAK else 200
MOST_CALLS = 60
"""More than any apply, undo or redo makes."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f.py"
    path.write_bytes(OLD)
    return path


def edit(path: Path, journal: Path, fs: Dying | None = None) -> None:
    document, hunks = edit_of(path)
    apply_hunks(document, hunks, Journal(journal, fs=fs), fs=fs)


def require_whole(path: Path, journal: Path) -> bytes:
    """What a user finds after a kill, and what the next start makes of it. Returns the file's bytes."""
    found = path.read_bytes()
    assert found in (OLD, NEW)
    settle_all(Journal(journal))
    assert path.read_bytes() == found, "settling changes nothing that the user has seen"
    assert others(path.parent) == ["f.py"]
    states = {entry.state for entry in Journal(journal).entries()}
    assert states <= {State.APPLIED, State.UNDONE}
    return found


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_every_call_of_an_apply(path: Path, after: bool) -> None:
    outcomes = set()
    for call in range(1, MOST_CALLS):
        path.write_bytes(OLD)
        journal = path.parent / "journal" / str(call)
        status = in_child(lambda call=call, journal=journal: edit(path, journal, Dying(call, after)))  # type: ignore[misc]
        if status == 0:  # fewer calls than that
            break
        assert status == -signal.SIGKILL
        found = require_whole(path, journal)
        outcomes.add(found)
        if found == NEW:
            undo_edit(str(path), Journal(journal))
            assert path.read_bytes() == OLD
        else:
            with pytest.raises(NothingToUndoError):
                undo_edit(str(path), Journal(journal))
    else:
        pytest.fail("an apply makes more calls than this test tries")
    assert outcomes == {OLD, NEW}


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_every_call_of_undo_and_redo(path: Path, after: bool) -> None:
    journal = path.parent / "journal"
    edit(path, journal)
    steps = [(undo_edit, OLD, NEW), (redo_edit, NEW, OLD)]
    for step, wanted, back in steps:
        outcomes = set()
        for call in range(1, MOST_CALLS):
            before = path.read_bytes()
            assert before == back
            fs = Dying(call, after)
            status = in_child(lambda step=step, fs=fs: step(str(path), Journal(journal, fs=fs), fs=fs))  # type: ignore[misc]
            found = require_whole(path, journal)
            outcomes.add(found)
            state = Journal(journal).entries()[-1].state
            assert state is (State.UNDONE if found == OLD else State.APPLIED)
            if status == 0:
                assert found == wanted
                break
            assert status == -signal.SIGKILL
            if found == wanted:  # done in spite of the kill: go back for the next round
                (undo_edit if back == OLD else redo_edit)(str(path), Journal(journal))
        else:
            pytest.fail("a step makes more calls than this test tries")
        assert outcomes == {OLD, NEW}


@pytest.mark.parametrize("after", [False, True])
def test_killed_while_settling(path: Path, after: bool) -> None:
    """The start after a kill may be killed too."""
    for first in range(10, 24):
        for second in range(1, 12):
            path.write_bytes(OLD)
            journal = path.parent / "journal" / f"{first}-{second}"
            in_child(lambda first=first, journal=journal: edit(path, journal, Dying(first, after)))  # type: ignore[misc]
            found = path.read_bytes()
            fs = Dying(second, after)
            status = in_child(lambda journal=journal, fs=fs: settle_all(Journal(journal, fs=fs), fs))  # type: ignore[misc]
            assert path.read_bytes() == found
            assert require_whole(path, journal) == found
            if status == 0:
                break


def test_killed_at_random_moments(path: Path) -> None:
    chance = random.Random(20)
    journal = path.parent / "journal"

    def started() -> int:
        """A child that is about to apply the edit."""
        ready, go = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(go, b"!")
            edit(path, journal)
            os._exit(0)
        os.read(ready, 1)
        os.close(ready)
        os.close(go)
        return child

    def usual() -> float:
        """Seconds a child takes that is left alone: two and more times what it takes in this process."""
        took = []
        for _ in range(5):
            child, begun = started(), time.perf_counter()
            assert os.waitpid(child, 0)[1] == 0
            took.append(time.perf_counter() - begun)
            undo_edit(str(path), Journal(journal))
        return statistics.median(took)

    found = {OLD: 0, NEW: 0}
    for number in range(RANDOM_KILLS):
        if number % 100 == 0:  # how busy the machine is changes
            whole = usual()
        child, until = started(), time.perf_counter() + chance.random() * whole * 1.2
        while time.perf_counter() < until:
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        seen = require_whole(path, journal)
        found[seen] += 1
        if seen == NEW:
            undo_edit(str(path), Journal(journal))
        assert path.read_bytes() == OLD
    assert found[OLD] and found[NEW], "every kill came on one side of the exchange"
