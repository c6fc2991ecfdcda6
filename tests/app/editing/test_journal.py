"""The journal's files: private, durable in order, limited in age and size, and honest about damage."""

import fcntl
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from app.editing import journal as journal_module
from app.editing.filesystem import Snapshot
from app.editing.journal import KEPT_SECONDS, Entry, Journal, Kind, State
from app.editing.replace import Purpose, replace_file
from app.editing.settle import settle_all
from app.errors import ExitCode, JournalError

BEFORE = Snapshot(b"old\n", 0o644, 1, 2, 1, 3, 4)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def journal(tmp_path: Path, clock: Clock) -> Journal:
    return Journal(tmp_path / "state" / "journal", clock=clock)


def add(journal: Journal, path: str = "/f", after: bytes = b"new\n", state: State = State.APPLIED) -> Entry:
    with journal.locked():
        entry = journal.seal(journal.begin(Path(path), ".t", BEFORE, after, Kind.EDIT, None, "why"), 5, 6)
        return entry if state is State.PENDING else journal.mark(entry, state)


def test_entries_come_back_as_they_were_written(journal: Journal) -> None:
    added = [add(journal, "/f"), add(journal, "/\udcff", b""), add(journal, "/g", state=State.PENDING)]
    assert journal.entries() == added
    assert journal.contents(added[1]) == (b"old\n", b"")
    assert (added[0].device, added[0].inode, added[0].mode, added[0].uid, added[0].gid) == (5, 6, 0o644, 1, 2)
    assert [entry.id for entry in added] == sorted(entry.id for entry in added)


def test_files_are_private(journal: Journal) -> None:
    add(journal)
    for place in (journal.folder.parent, journal.folder):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in journal.folder.iterdir()} == {0o600}


def test_a_wider_folder_is_closed(journal: Journal) -> None:
    add(journal)
    journal.folder.chmod(0o755)
    add(journal)
    assert stat.S_IMODE(journal.folder.stat().st_mode) == 0o700


def test_ids_go_up_even_when_entries_are_gone_and_the_clock_goes_back(journal: Journal, clock: Clock) -> None:
    first, second = add(journal), add(journal)
    clock.now = 0
    journal.drop(first)
    assert add(journal).id > second.id


def test_undone_entries_know_their_order(journal: Journal) -> None:
    first, second = add(journal), add(journal)
    assert journal.mark(second, State.UNDONE).order < journal.mark(first, State.UNDONE).order
    assert [entry.state for entry in journal.entries()] == [State.UNDONE, State.UNDONE]


def test_old_entries_go_but_not_what_is_pending(journal: Journal, clock: Clock) -> None:
    add(journal, "/old")
    add(journal, "/pending", state=State.PENDING)
    clock.now += KEPT_SECONDS
    add(journal, "/fresh")
    journal.prune()
    assert [entry.path for entry in journal.entries()] == ["/old", "/pending", "/fresh"]
    clock.now += 1
    journal.prune()
    assert [entry.path for entry in journal.entries()] == ["/pending", "/fresh"]


def test_the_oldest_go_beyond_the_size(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "KEPT_BYTES", 25_000)
    for number in range(4):
        add(journal, f"/{number}", bytes(10_000))
    journal.prune()
    assert [entry.path for entry in journal.entries()] == ["/2", "/3"]


def test_a_clock_that_was_ahead_keeps_no_old_entry(journal: Journal, clock: Clock) -> None:
    clock.now += 10 * KEPT_SECONDS
    add(journal, "/ahead")
    clock.now = 1000.0
    add(journal, "/old")
    clock.now += KEPT_SECONDS + 1
    add(journal, "/fresh")
    journal.prune()
    assert [entry.path for entry in journal.entries()] == ["/ahead", "/fresh"]


def test_an_apply_does_not_read_what_other_applies_left(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        add(journal, f"/{number}")
    read: list[str] = []
    plain = Journal._read

    def counted(self: Journal, match: re.Match[str]) -> Entry:
        read.append(match.group())
        return plain(self, match)

    monkeypatch.setattr(Journal, "_read", counted)
    path = tmp_path / "a.txt"
    path.write_bytes(b"old\n")
    settle_all(journal)
    replace_file(path, lambda _: b"new\n", Purpose(note="why"), journal)
    assert len(read) == 1  # the oldest, which is too young to go
    assert len(journal.entries()) == 51


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-5],
        lambda data: b"",
        lambda data: b"[1]\n" + data,
        lambda data: b"[" * 200_000 + b"\n" + data,
        lambda data: data.replace(b'"kind": "edit"', b'"kind": "what"'),
        lambda data: data.replace(b'"note"', b'"nope"'),
    ],
)
def test_a_damaged_entry_is_listed_and_never_used(journal: Journal, damage: Callable[[bytes], bytes]) -> None:
    entry, good = add(journal), add(journal)
    file = journal.folder / f"{entry.id}.applied"
    file.write_bytes(damage(file.read_bytes()))
    listed = journal.entries()
    assert [found.state for found in listed] == [State.DAMAGED, State.APPLIED]
    assert listed[1] == good
    journal.drop(listed[0])
    assert journal.entries() == [good]


def test_damaged_bytes_are_found_by_their_hash(journal: Journal) -> None:
    entry = add(journal)
    file = journal.folder / f"{entry.id}.applied"
    file.write_bytes(file.read_bytes().replace(b"old\n", b"odd\n"))
    with pytest.raises(JournalError, match="damaged") as caught:
        journal.contents(entry)
    assert caught.value.exit_code is ExitCode.FILE


def test_other_files_in_the_folder_are_left_alone(journal: Journal) -> None:
    entry = add(journal)
    (journal.folder / "notes.txt").write_text("mine")
    (journal.folder / f"{entry.id}.applied.bak").write_text("mine")
    assert journal.entries() == [entry]
    journal.prune()
    assert (journal.folder / "notes.txt").exists()


def test_no_folder_no_entries(journal: Journal) -> None:
    assert journal.entries() == []
    assert not journal.folder.exists(), "reading makes nothing"


def test_another_process_that_holds_the_lock_is_waited_for_and_then_named(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(journal)
    monkeypatch.setattr(journal_module, "_LOCK_PATIENCE_S", 0.0)
    fd = os.open(journal.folder / "lock", os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with pytest.raises(JournalError, match="Another redraft"), journal.locked():
            pass
    finally:
        os.close(fd)
    with journal.locked():
        pass
