"""The board of watch mode: its mark in a few words, and what has become of each proposal, read anew only if need be."""

from pathlib import Path

import pytest

from app.editing.document import open_document
from app.editing.proposals import ProposalStore, Standing, StoredProposal
from app.editing.result import make_result
from app.watch.events import Status
from app.watch.presence import present
from app.watch_board import WatchBoard

OLD, NEW = "one\ntwo\nthree\n", "one\n2\nthree\n"


@pytest.fixture
def store(tmp_path: Path) -> ProposalStore:
    return ProposalStore(tmp_path / "proposals")


def put(store: ProposalStore, path: Path) -> StoredProposal:
    path.write_text(OLD)
    return store.put(make_result(open_document(path), NEW), "Count", "tiny", hunks=1)


def test_the_mark_says_what_runs_and_waits_and_nothing_otherwise(store: ProposalStore, tmp_path: Path) -> None:
    board = WatchBoard(store)
    assert board.mark() == ""
    with present(["/tree"]) as presence:
        presence.show(Status("idle", None, (), 0))
        assert board.mark() == "watch idle"
        put(store, tmp_path / "a.txt")
        presence.show(Status("running", "/tree/a", ("/tree/b", "/tree/c"), 1))
        assert board.mark() == "watch running, 2 queued, 1 to review"
        [watch] = board.look().watches
        assert watch.roots == ("/tree",) and watch.status.running == "/tree/a"
    assert board.mark() == "1 to review"


def test_the_standing_follows_the_file_and_is_worked_out_once(
    store: ProposalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    load = ProposalStore.load
    monkeypatch.setattr(ProposalStore, "load", lambda self, stored: opened.append(stored.id) or load(self, stored))
    path = tmp_path / "a.txt"
    stored = put(store, path)
    board = WatchBoard(store)

    def standing() -> Standing | None:
        [waiting] = board.look().waiting
        assert waiting.stored == stored
        return waiting.standing

    assert [standing() for _ in range(3)] == [Standing.CURRENT] * 3 and len(opened) == 1
    for text, expected in (
        (NEW, Standing.DONE),
        ("zero\n" + OLD, Standing.REBASED),
        ("other\n", Standing.STALE),
    ):
        path.write_text(text)
        assert [standing() for _ in range(2)] == [expected] * 2
    path.unlink()
    assert standing() is Standing.STALE and len(opened) == 5


def test_a_damaged_proposal_is_listed_as_one_and_a_dropped_one_no_more(store: ProposalStore, tmp_path: Path) -> None:
    first, second = put(store, tmp_path / "a.txt"), put(store, tmp_path / "b.txt")
    file = store.folder / f"{first.id}.proposal"
    file.write_bytes(file.read_bytes()[:-1])
    board = WatchBoard(store)
    assert {waiting.stored.id: waiting.standing for waiting in board.look().waiting} == {
        first.id: None,
        second.id: Standing.CURRENT,
    }
    store.drop(first.id)
    assert [waiting.stored.id for waiting in board.look().waiting] == [second.id]
