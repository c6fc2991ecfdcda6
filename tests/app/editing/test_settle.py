"""What the next start makes of a replacement that was cut short, when other programs have been there meanwhile."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.editing.apply import apply_hunks
from app.editing.journal import Entry, Journal, State
from app.editing.settle import Outcome, settle_all, settlement_sentence
from app.errors import ConflictError
from tests.support.edits import NEW, OLD, edit_of, others
from tests.support.saboteur import Saboteur, die, in_child


class Scene:
    """A file whose apply was killed right before or right after the exchange."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "f.py"
        self.path.write_bytes(OLD)
        self.journal = Journal(folder / "journal")

    def killed(self, when: str) -> Entry:
        fs = Saboteur()
        getattr(fs, when)["exchange"] = die
        in_child(lambda: apply_hunks(*edit_of(self.path), self.journal, fs=fs))
        (entry,) = self.journal.entries()
        assert entry.state is State.PENDING
        return entry

    @property
    def temporary(self) -> Path:
        return self.path.parent / self.journal.entries()[0].temporary

    def settled(self) -> Outcome:
        (settlement,) = settle_all(self.journal)
        assert str(self.path) in settlement_sentence(settlement)
        assert settle_all(self.journal) == [], "settled once and for all"
        return settlement.outcome


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_before_the_exchange(scene: Scene) -> None:
    scene.killed("before")
    assert scene.settled() is Outcome.TAKEN_BACK
    assert (scene.path.read_bytes(), others(scene.path.parent), scene.journal.entries()) == (OLD, ["f.py"], [])


def test_after_the_exchange(scene: Scene) -> None:
    scene.killed("after")
    assert scene.settled() is Outcome.APPLIED
    assert (scene.path.read_bytes(), others(scene.path.parent)) == (NEW, ["f.py"])


def test_before_the_exchange_and_edited_since(scene: Scene) -> None:
    scene.killed("before")
    scene.path.write_bytes(b"theirs\n")
    assert scene.settled() is Outcome.TAKEN_BACK
    assert (scene.path.read_bytes(), others(scene.path.parent)) == (b"theirs\n", ["f.py"])


@pytest.mark.parametrize("in_place", [True, False])
def test_after_the_exchange_and_edited_since(scene: Scene, in_place: bool) -> None:
    scene.killed("after")
    if not in_place:
        scene.path.unlink()
    scene.path.write_bytes(b"theirs\n")
    assert scene.settled() is Outcome.APPLIED_THEN_CHANGED
    assert (scene.path.read_bytes(), others(scene.path.parent)) == (b"theirs\n", ["f.py"])
    assert scene.journal.contents(scene.journal.entries()[0]) == (OLD, NEW)


def test_a_change_that_came_out_of_the_exchange_is_put_back(scene: Scene) -> None:
    scene.killed("after")
    scene.temporary.write_bytes(b"theirs\n")
    assert scene.settled() is Outcome.TAKEN_BACK
    assert (scene.path.read_bytes(), others(scene.path.parent)) == (b"theirs\n", ["f.py"])


def test_a_change_of_mode_that_came_out_is_put_back(scene: Scene) -> None:
    scene.killed("after")
    scene.temporary.chmod(0o600)
    assert scene.settled() is Outcome.TAKEN_BACK
    assert (scene.path.read_bytes(), scene.path.stat().st_mode & 0o777) == (OLD, 0o600)


def in_place(scene: Scene) -> None:
    scene.path.write_bytes(b"newer\n")


def by_rename(scene: Scene) -> None:
    scene.path.unlink()
    in_place(scene)


@pytest.mark.parametrize("change", [in_place, by_rename])
def test_changes_at_both_names_stay_and_are_named(scene: Scene, change: Callable[[Scene], None]) -> None:
    scene.killed("after")
    scene.temporary.write_bytes(b"theirs\n")
    temporary = scene.temporary
    change(scene)
    (settlement,) = settle_all(scene.journal)
    assert settlement.outcome is Outcome.BOTH_STAY
    assert temporary.name in settlement_sentence(settlement)
    assert (scene.path.read_bytes(), temporary.read_bytes()) == (b"newer\n", b"theirs\n")
    assert scene.journal.entries()[0].state is State.CONFLICT


def test_a_temporary_that_someone_wrote_to_is_not_removed(scene: Scene) -> None:
    scene.killed("before")
    temporary = scene.temporary
    temporary.write_bytes(b"who knows\n")
    assert scene.settled() is Outcome.BOTH_STAY
    assert (scene.path.read_bytes(), temporary.read_bytes()) == (OLD, b"who knows\n")


def test_a_folder_in_place_of_the_temporary_is_not_removed(scene: Scene) -> None:
    scene.killed("after")
    temporary = scene.temporary
    temporary.unlink()
    temporary.mkdir()
    scene.path.write_bytes(b"newer\n")
    assert scene.settled() is Outcome.BOTH_STAY
    assert temporary.is_dir()


@pytest.mark.parametrize(
    ("data", "outcome"),
    [(OLD, Outcome.TAKEN_BACK), (NEW, Outcome.APPLIED), (b"theirs\n", Outcome.BOTH_STAY)],
)
def test_without_the_temporary_the_file_decides(scene: Scene, data: bytes, outcome: Outcome) -> None:
    scene.killed("before")
    scene.temporary.unlink()
    scene.path.write_bytes(data)
    assert scene.settled() is outcome
    assert scene.path.read_bytes() == data


def test_a_folder_that_is_away_waits(scene: Scene, tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    scene.path = folder / "f.py"
    scene.path.write_bytes(OLD)
    entry = scene.killed("after")
    folder.rename(tmp_path / "unmounted")
    assert settle_all(scene.journal) == []
    assert scene.journal.entries() == [entry]
    (tmp_path / "unmounted").rename(folder)
    assert scene.settled() is Outcome.APPLIED


def test_an_entry_cut_in_its_first_line_is_dropped(scene: Scene) -> None:
    scene.killed("before")
    half = scene.journal.folder / "00000009-00000000.new"
    half.write_bytes(b'{"kind": "ed')
    settle_all(scene.journal)
    assert not half.exists()
    assert others(scene.path.parent) == ["f.py"]


def test_a_new_entry_without_its_bytes_leaves_the_temporary(scene: Scene) -> None:
    """As after a loss of power: the temporary cannot be proven ours, so it stays."""
    fs = Saboteur()
    fs.before["take_attributes"] = die
    in_child(lambda: apply_hunks(*edit_of(scene.path), scene.journal, fs=fs))
    (entry,) = scene.journal.entries()
    assert entry.state is State.NEW
    os.truncate(scene.journal.folder / f"{entry.id}.new", entry.body + 5)
    settle_all(scene.journal)
    assert (scene.path.read_bytes(), len(others(scene.path.parent))) == (OLD, 2)


def test_the_next_apply_settles_first(scene: Scene) -> None:
    scene.killed("before")
    apply_hunks(*edit_of(scene.path), scene.journal)
    assert [entry.state for entry in scene.journal.entries()] == [State.APPLIED]
    assert (scene.path.read_bytes(), others(scene.path.parent)) == (NEW, ["f.py"])


def test_settling_may_show_that_the_file_has_changed(scene: Scene) -> None:
    document, hunks = edit_of(scene.path)
    scene.killed("after")
    scene.temporary.write_bytes(b"theirs\n")
    with pytest.raises(ConflictError):
        apply_hunks(document, hunks, scene.journal)
    assert (scene.path.read_bytes(), others(scene.path.parent)) == (b"theirs\n", ["f.py"])
