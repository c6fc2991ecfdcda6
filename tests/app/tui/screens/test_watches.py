"""Watches and proposals in the terminal UI: what is listed, started, stopped, reviewed, let go; no watch runs."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.editing.document import open_document
from app.editing.proposals import ProposalStore, StoredProposal
from app.editing.result import make_result
from app.errors import InterruptedByUserError, ProposalError, StateError
from app.paths import proposals_dir
from app.terminal_text import visible
from app.tui.screens.proposal_review import ProposalReview
from app.tui.screens.watches import WatchesScreen
from app.tui.screens.workspace import WorkspaceScreen
from app.watch.events import Status
from app.watch.presence import present
from app.watch_jobs import Said, WatchOrder
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import NARROW, Session, drive

OTHER_PID = os.getpid()
"""A watch of another process has ours in these tests: it must live."""


@dataclass
class Watches:
    """Stands in for watches in processes of their own."""

    orders: list[WatchOrder] = field(default_factory=list)
    say: Callable[[Said], object] = print
    end: "asyncio.Future[None] | None" = None
    stopped: int = 0

    async def run(
        self, order: WatchOrder, on_start: Callable[[int], object], on_said: Callable[[Said], object]
    ) -> None:
        self.orders.append(order)
        self.say = on_said
        self.end = asyncio.get_running_loop().create_future()
        on_start(4_000_000)
        try:
            await self.end
        except asyncio.CancelledError:
            self.stopped += 1
            raise


@pytest.fixture
def watches(monkeypatch: pytest.MonkeyPatch) -> Watches:
    fake = Watches()
    monkeypatch.setattr("app.tui.watch_worker.run_watch", fake.run)
    return fake


def client() -> ScriptedClient:
    return ScriptedClient(fenced(CHANGED))


def store() -> ProposalStore:
    return ProposalStore(proposals_dir())


def proposed(path: Path, new: str = CHANGED, instruction: str = "Add [types]") -> StoredProposal:
    return store().put(make_result(open_document(path), new), instruction, "tiny", hunks=2)


def note(session: Session) -> str:
    return " ".join(session.shown().split())


async def start(session: Session, *said: str) -> None:
    await session.press("ctrl+g", "n", "enter")
    await session.press(*said, "enter")


async def open_first(session: Session) -> None:
    """The review of the first proposal, once the list is there."""
    await session.press("ctrl+g")
    await session.press("enter")


# --- watches ----------------------------------------------------------------------------------------------------------


def test_a_watch_is_started_over_a_folder_and_ends_with_the_program(file: Path, watches: Watches) -> None:
    async def steps(session: Session) -> None:
        await start(session, *"types")
        assert watches.orders == [WatchOrder(os.getcwd(), "types", ())]
        assert "started here, ends with this program, types" in note(session)
        await session.press("n")
        assert "runs already" in note(session) and len(watches.orders) == 1
        watches.say(Said("\x1b[1m[b]a.py[/b]: 1 hunk to review."))
        await session.settle()
        assert visible("\x1b[1m[b]a.py[/b]: 1 hunk") in note(session)
        await session.press("escape")
        watches.say(Said("a.py: it is gone", failed=True))
        await session.settle()
        assert session.said()[-1] == "a.py: it is gone"

    drive(client(), steps, file=file)
    assert watches.stopped == 1


def test_nothing_starts_where_a_question_is_left(file: Path, watches: Watches) -> None:
    async def steps(session: Session) -> None:
        await session.press("ctrl+g", "n", "escape", "n", "enter", "escape")
        assert not watches.orders and isinstance(session.app.screen, WatchesScreen)

    drive(client(), steps, file=file)


def test_our_watch_stops_at_once_and_another_can_be_started(file: Path, watches: Watches) -> None:
    async def steps(session: Session) -> None:
        await start(session)
        assert watches.orders[0].instruction == ""
        await session.press("s")
        assert watches.stopped == 1 and "The watch is stopped." in note(session) and "none runs" in note(session)
        await session.press("n", "enter", "enter")
        assert len(watches.orders) == 2

    drive(client(), steps, file=file)


def test_a_watch_that_another_stopped_is_no_failure(file: Path, watches: Watches) -> None:
    async def steps(session: Session) -> None:
        await start(session)
        await session.press("escape")
        assert watches.end is not None
        watches.end.set_exception(InterruptedByUserError("The watch was stopped."))
        await session.settle()
        assert session.said() == ["The watch was stopped."] and session.app.watches.own is None
        assert [note.severity for note in session.app._notifications] == ["information"]

    drive(client(), steps, file=file)


def test_a_watch_that_cannot_run_says_why(file: Path, watches: Watches) -> None:
    async def steps(session: Session) -> None:
        await start(session)
        assert watches.end is not None
        watches.end.set_exception(StateError("There is no room for a watch."))
        await session.settle()
        assert "There is no room for a watch." in note(session) and session.app.watches.own is None

    drive(client(), steps, file=file)


def test_a_fault_of_ours_in_a_watch_is_shown_as_one(file: Path, watches: Watches) -> None:
    async def steps(session: Session) -> None:
        await start(session)
        assert watches.end is not None
        watches.end.set_exception(ZeroDivisionError("ours"))
        await session.press("escape")
        session.app.look_at_watches()
        await session.settle()
        assert "ZeroDivisionError: ours" in session.shown()

    drive(client(), steps, file=file)


def test_the_watch_of_another_process_is_seen_with_its_queue_and_stopped_when_agreed(
    file: Path, watches: Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []
    monkeypatch.setattr("app.tui.screens.watches.stop_watch", lambda pid: stopped.append(pid) or True)

    async def steps(session: Session) -> None:
        with present(["/tree/a", "/tree/b"]) as presence:
            presence.show(Status("running", "/tree/a/x.py", tuple(f"/tree/{n}.py" for n in range(5)), 0))
            session.app.look_at_watches()
            await session.settle()
            assert session.workspace.status.watch == "watch running, 5 queued"
            await session.press("ctrl+g")
            assert "running /tree/a, /tree/b" in note(session)
            assert "editing /tree/a/x.py, 5 queued; next /tree/0.py, /tree/1.py, /tree/2.py and 2 more" in note(session)
            presence.show(Status("idle", None, (), 0))
            session.app.look_at_watches()
            await session.settle()
            assert "idle /tree/a" in note(session)
            await session.press("s", "n")
            assert not stopped
            await session.press("s", "y")
            assert stopped == [OTHER_PID] and "was asked to stop" in note(session)
        session.app.look_at_watches()
        await session.settle()
        assert "none runs" in note(session) and session.workspace.status.watch == ""
        await session.press("s")
        assert "Mark a watch to stop it." in note(session)

    drive(client(), steps, file=file)


# --- proposals --------------------------------------------------------------------------------------------------------


def test_a_proposal_is_reviewed_and_applied_and_the_list_is_back(file: Path, watches: Watches) -> None:
    proposed(file)

    async def steps(session: Session) -> None:
        session.app.look_at_watches()
        await session.settle()
        assert session.workspace.status.watch == "1 to review" and "1 to review" in session.shown()
        await session.press("ctrl+g")
        assert "current" in session.shown() and "Add [types]" in session.shown()
        await session.press("enter")
        assert isinstance(session.app.screen, ProposalReview)
        await session.press("f2", "f7", "ctrl+g", "ctrl+p")
        assert isinstance(session.app.screen, ProposalReview)
        await session.press("a", "ctrl+s", "escape")
        assert isinstance(session.app.screen, WatchesScreen) and "none waits" in session.shown()
        await session.press("escape")
        assert isinstance(session.app.screen, WorkspaceScreen) and session.workspace.status.watch == ""

    drive(client(), steps, file=file)
    assert file.read_text() == CHANGED and store().count() == 0


def test_a_proposal_of_which_all_is_rejected_is_gone(file: Path, watches: Watches) -> None:
    proposed(file)

    async def steps(session: Session) -> None:
        await open_first(session)
        await session.press("d", "ctrl+s")
        assert any("stays as it is" in said for said in session.said())
        await session.press("escape")
        assert isinstance(session.app.screen, WatchesScreen) and "none waits" in session.shown()

    drive(client(), steps, file=file)
    assert file.read_text() == SOURCE


def test_decisions_are_not_lost_without_a_word(file: Path, watches: Watches) -> None:
    proposed(file)

    async def steps(session: Session) -> None:
        await open_first(session)
        await session.press("y", "escape")
        assert "1 hunk decided and not applied" in note(session)
        await session.press("n")
        assert isinstance(session.app.screen, ProposalReview)
        await session.press("escape", "y")
        assert isinstance(session.app.screen, WatchesScreen)

    drive(client(), steps, file=file)
    assert file.read_text() == SOURCE and store().count() == 1


@pytest.mark.parametrize("answer", ["y", "ctrl+q"])
def test_quitting_loses_no_decision_about_proposals_without_a_word(file: Path, watches: Watches, answer: str) -> None:
    proposed(file)

    async def steps(session: Session) -> None:
        await open_first(session)
        await session.press("y", "ctrl+q")
        assert "1 hunk decided and not applied" in note(session) and "Quit" in session.shown()
        await session.press("escape")
        assert isinstance(session.app.screen, ProposalReview) and session.app.screen.decided == 1
        await session.press("ctrl+q", answer)
        assert session.client.closed

    drive(client(), steps, file=file)
    assert file.read_text() == SOURCE and store().count() == 1


def test_all_are_reviewed_together_and_one_can_be_let_go(file: Path, watches: Watches) -> None:
    other = file.parent / "other.py"
    other.write_text(SOURCE)
    proposed(file)
    proposed(other)

    async def steps(session: Session) -> None:
        await session.press("ctrl+g")
        await session.press("a")
        assert len(session.app.screen.reviews) == 2  # type: ignore[attr-defined]
        await session.press("escape", "end", "d", "n")
        assert store().count() == 2
        await session.press("d", "y")
        assert store().count() == 1 and [waiting.path for waiting in store().entries()] == [str(other.resolve())]

    drive(client(), steps, file=file)


def test_the_list_follows_a_file_that_changes_and_a_proposal_that_is_damaged(file: Path, watches: Watches) -> None:
    stored = proposed(file)

    async def steps(session: Session) -> None:
        await session.press("ctrl+g")
        assert "current" in session.shown()
        file.write_text("nothing of it\n")
        session.app.look_at_watches()
        await session.settle()
        assert "stale" in session.shown()
        path = proposals_dir() / f"{stored.id}.proposal"
        path.write_bytes(path.read_bytes()[:-3])
        await session.press("enter")
        assert "damaged" in note(session) and isinstance(session.app.screen, WatchesScreen)

    drive(client(), steps, file=file, size=NARROW)


def test_proposals_that_cannot_be_read_are_said_and_no_more(
    file: Path, watches: Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_: ProposalStore) -> int:
        raise ProposalError("The proposals cannot be read: it is broken.")

    monkeypatch.setattr(ProposalStore, "count", unreadable)

    async def steps(session: Session) -> None:
        session.app.look_at_watches()
        await session.settle()
        assert session.workspace.status.watch == "proposals unreadable"
        await session.press("ctrl+g")
        assert "cannot be read: it is broken." in note(session)
        await session.press("a", "enter", "d", "s")
        assert isinstance(session.app.screen, WatchesScreen)

    drive(client(), steps, file=file)
