"""Proposals that wait: whole or not there, and true about what became of their file."""

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.editing.apply import apply_hunks
from app.editing.diff import join
from app.editing.document import open_document
from app.editing.journal import Journal
from app.editing.proposals import KEPT_BYTES, KEPT_SECONDS, ProposalStore, Standing, StoredProposal
from app.editing.result import make_result
from app.errors import AppError, ConflictError, FileUnwritableError, ProposalError
from tests.support.edits import NEW, OLD, edit_of
from tests.support.saboteur import die, in_child


@pytest.fixture
def store(tmp_path: Path) -> ProposalStore:
    return ProposalStore(tmp_path / "proposals", clock=lambda: 1e9)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_bytes(OLD)
    return path


def put(store: ProposalStore, path: Path, new: bytes = NEW, instruction: str = "Do it.") -> StoredProposal:
    document = open_document(path)
    _, hunks = edit_of(path, new)
    return store.put(
        make_result(document, new.decode()),
        instruction,
        "model",
        hunks=len(hunks),
        warnings=({"code": "churn", "message": "Spaces.", "lines": [1], "blocking": False},),
        stats={"wall_s": 1.5, "mean_logprob": None},
    )


def test_it_comes_back_as_it_was_put(store: ProposalStore, path: Path) -> None:
    stored = put(store, path)
    assert store.entries() == [stored] and store.count() == 1
    assert (stored.path, stored.instruction, stored.model, stored.hunks) == (str(path), "Do it.", "model", 2)
    assert stored.stats == {"wall_s": 1.5, "mean_logprob": None} and stored.warnings[0]["code"] == "churn"
    opened = store.load(stored)
    assert opened.standing is Standing.CURRENT
    assert opened.document.data == OLD and join(opened.document, opened.hunks) == NEW


def test_files_are_private(store: ProposalStore, path: Path) -> None:
    stored = put(store, path)
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((store.folder / f"{stored.id}.proposal").stat().st_mode) == 0o600


def test_the_same_work_is_stored_once_and_a_newer_one_takes_its_place(store: ProposalStore, path: Path) -> None:
    assert put(store, path).id == put(store, path).id and store.count() == 1
    path.write_bytes(OLD + b"more\n")
    newer = put(store, path, NEW + b"more\n")
    assert store.entries() == [newer]


def test_a_file_that_changed_elsewhere_is_rebased_and_one_that_changed_there_is_stale(
    store: ProposalStore, path: Path, tmp_path: Path
) -> None:
    stored = put(store, path)
    path.write_bytes(OLD.replace(b"line 20\n", b"twenty\n"))
    opened = store.load(stored)
    assert opened.standing is Standing.REBASED
    journal = Journal(tmp_path / "journal")
    assert apply_hunks(opened.document, opened.hunks, journal).rebased
    assert path.read_bytes() == NEW.replace(b"line 20\n", b"twenty\n")
    path.write_bytes(OLD.replace(b"line 3\n", b"drei\n"))
    opened = store.load(stored)
    assert opened.standing is Standing.STALE
    with pytest.raises(ConflictError):
        apply_hunks(opened.document, opened.hunks, journal)


def test_a_file_that_is_what_was_proposed_is_done(store: ProposalStore, path: Path) -> None:
    stored = put(store, path)
    path.write_bytes(NEW)
    assert store.standing(stored) is Standing.DONE


def test_a_file_that_is_gone_can_be_looked_at_and_not_applied(store: ProposalStore, path: Path, tmp_path: Path) -> None:
    stored = put(store, path)
    path.unlink()
    opened = store.load(stored)
    assert opened.standing is Standing.STALE and join(opened.document, opened.hunks) == NEW
    with pytest.raises(FileUnwritableError):
        apply_hunks(opened.document, opened.hunks, Journal(tmp_path / "journal"))


def test_proposals_are_found_by_id_and_by_file(store: ProposalStore, path: Path) -> None:
    stored = put(store, path)
    assert store.find(stored.id) == store.find(stored.id[:4]) == store.find(str(path)) == stored
    for wanted in ("", "zzz", str(path) + "x"):
        with pytest.raises(ProposalError):
            store.find(wanted)


def test_old_ones_and_too_many_go(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1e9]
    store = ProposalStore(tmp_path / "proposals", clock=lambda: now[0])
    assert store.expire() == 0
    put(store, path)
    now[0] += KEPT_SECONDS
    assert store.expire() == 0 and store.count() == 1
    now[0] += 1
    assert store.expire() == 1 and store.count() == 0
    put(store, path)
    monkeypatch.setattr("app.editing.proposals.KEPT_BYTES", len(OLD))
    assert KEPT_BYTES > len(OLD) and store.expire() == 1


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"not json\n", b'{"id": 1}\n', b"[" * 200_000])
def test_a_damaged_header_is_left_out(store: ProposalStore, path: Path, damage: bytes) -> None:
    file = store.folder / f"{put(store, path).id}.proposal"
    file.write_bytes(damage)
    os.utime(file, (1e9, 1e9))
    assert store.entries() == []
    assert store.expire() == 0 and file.exists()  # a newer version may know what to do with it
    os.utime(file, (1, 1))
    assert store.expire() == 0 and not file.exists()


def test_damaged_versions_are_refused(store: ProposalStore, path: Path) -> None:
    stored = put(store, path)
    file = store.folder / f"{stored.id}.proposal"
    data = file.read_bytes()
    for at in (data.index(b"\n") + 3, len(data) - 2):
        file.write_bytes(data[:at] + b"\0" + data[at + 1 :])
        with pytest.raises(ProposalError, match="damaged"):
            store.load(stored)
    header, _, rest = data.split(b"\n", 2)
    file.write_bytes(b"\n".join([header, b"[" * 200_000, rest]))
    with pytest.raises(ProposalError, match="damaged"):
        store.load(stored)
    file.unlink()
    with pytest.raises(ProposalError):
        store.load(stored)
    store.drop(stored.id)  # no error


def test_a_full_disk_leaves_nothing(store: ProposalStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ProposalError, match="No space left"):
        put(store, path)
    assert list(store.folder.iterdir()) == []


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_killed_writer_leaves_no_half_proposal(store: ProposalStore, path: Path, call: str) -> None:
    def work() -> None:
        setattr(os, call, lambda *given: die())
        put(store, path)

    assert in_child(work) < 0
    assert store.entries() == [] and store.count() == 0
    [part] = store.folder.iterdir()
    with part.open("rb") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)  # as a writer does that is still at it
        assert store.expire() == 0 and part.exists()
    store.expire()
    assert not part.exists()


_TEXT = st.text(st.sampled_from("ab \t\r\n\f\u2028é\ufeff"), min_size=1, max_size=40)


@settings(
    derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(old=_TEXT, new=_TEXT, codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_every_file_comes_back_byte_for_byte(
    store: ProposalStore, tmp_path: Path, old: str, new: str, codec: str
) -> None:
    path = tmp_path / "any.txt"
    path.write_bytes(old.encode(codec))
    try:
        document = open_document(path)
        result = make_result(document, new)
    except AppError:
        return
    facts: dict[str, Any] = {"hunks": 1}
    opened = store.load(store.put(result, "é\n", "m", **facts))
    assert opened.document.data == document.data
    assert join(opened.document, opened.hunks) == result.data


def test_what_is_no_file_holds_nobody_up(store: ProposalStore, path: Path) -> None:
    stored = put(store, path)
    os.mkfifo(store.folder / f"{'0' * 12}.proposal")
    (store.folder / f"{'1' * 12}.proposal").mkdir()
    (store.folder / f"{'2' * 12}.proposal").symlink_to("/dev/zero")
    for name in (f"{'0' * 12}.proposal", f"{'1' * 12}.proposal"):
        os.utime(store.folder / name, (1, 1))
    assert store.entries() == [stored]
    store.expire()
    assert (store.folder / f"{'1' * 12}.proposal").is_dir() and not (store.folder / f"{'0' * 12}.proposal").exists()
