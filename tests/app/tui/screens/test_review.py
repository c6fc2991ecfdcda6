"""`redraft review` in the terminal: several files, what does not fit, apply and undo."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from app.editing.document import open_document
from app.editing.proposals import ProposalStore
from app.editing.result import make_result
from app.editing.review import Decision
from app.editing.under_review import UnderReview, from_patch, from_store
from app.paths import proposals_dir
from app.tui.review_app import ReviewApp
from app.tui.screens.help import HelpScreen
from app.tui.widgets.diff_view import DiffView
from tests.app.test_review_command import CONFLICT, PATCH, SOURCE
from tests.support.tui import screen_text

A, U = Decision.ACCEPTED, Decision.UNDECIDED


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("one.txt", SOURCE), ("two.txt", SOURCE), ("p.diff", PATCH), ("c.diff", CONFLICT)):
        (tmp_path / name).write_text(text)
    return tmp_path


Press = Callable[..., Awaitable[None]]


def review(
    files: tuple[UnderReview, ...],
    steps: Callable[[ReviewApp, Press], Awaitable[None]],
    store: ProposalStore | None = None,
    size: tuple[int, int] = (110, 30),
) -> None:
    async def run() -> None:
        app = ReviewApp(files, store, {})
        async with app.run_test(size=size, notifications=True) as pilot:
            await pilot.pause()

            async def press(*keys: str) -> None:
                await pilot.press(*keys)
                await app.workers.wait_for_complete()
                await pilot.pause()

            await steps(app, press)

    asyncio.run(run())


def said(app: ReviewApp) -> str:
    return " ".join(note.message for note in app._notifications)


def test_files_are_decided_one_after_the_other_and_applied_together(folder: Path) -> None:
    async def steps(app: ReviewApp, press: Press) -> None:
        assert "? one.txt: 0 of 2" in screen_text(app) and "? two.txt: 0 of 1" in screen_text(app)
        await press("y", "n")
        assert "✓ one.txt: 2 of 2" in screen_text(app)
        await press("f6", "down", "f6", "y")
        first, second = app.review_screen.reviews
        assert first is not None and second is not None
        assert (first.decisions, second.decisions) == ((A, Decision.REJECTED), (A,))
        await press("ctrl+s")
        assert (folder / "one.txt").read_text() == SOURCE.replace("line 2\n", "two\n", 1)
        assert (folder / "two.txt").read_text() == SOURCE.replace("line 0\n", "zero\n", 1)
        assert "Applied to one.txt" in said(app) and "Nothing is left to decide" in screen_text(app)
        await press("U")
        assert (folder / "two.txt").read_text() == SOURCE
        assert "? two.txt: 0 of 1" in screen_text(app)
        await press("f6", "f10", "f10")  # the list of files has the key, too
        assert (folder / "one.txt").read_text() == SOURCE and "nothing to undo" in said(app)

    review(from_patch("p.diff"), steps)


@pytest.mark.parametrize("answer", ["y", "ctrl+q"])
def test_decisions_are_not_lost_by_one_key(folder: Path, answer: str) -> None:
    async def steps(app: ReviewApp, press: Press) -> None:
        await press("y", "ctrl+q")
        assert "1 hunk decided and not applied" in " ".join(screen_text(app).split())
        await press("escape")
        assert app.screen is app.review_screen and app.review_screen.decided == 1
        await press("ctrl+q", answer)
        assert app._exit

    review(from_patch("p.diff"), steps)


def test_what_was_changed_in_a_hunk_is_not_lost_by_one_key(folder: Path) -> None:
    async def steps(app: ReviewApp, press: Press) -> None:
        await press("e", "x", "ctrl+q")
        assert "not taken yet" in " ".join(screen_text(app).split())
        await press("escape", "ctrl+s")
        assert app.review_screen.decided == 1

    review(from_patch("p.diff"), steps)


def test_nothing_decided_is_left_at_once(folder: Path) -> None:
    async def steps(app: ReviewApp, press: Press) -> None:
        await press("ctrl+q")
        assert app._exit

    review(from_patch("p.diff"), steps)


def test_what_does_not_fit_is_said_beside_what_does(folder: Path) -> None:
    async def steps(app: ReviewApp, press: Press) -> None:
        assert "1 of 2" not in screen_text(app) and "1 conflict" in screen_text(app)
        assert "Hunk 2 of one.txt does not fit" in " ".join(screen_text(app).split())
        await press("ctrl+s")
        assert "Nothing is accepted yet" in said(app)
        await press("a", "ctrl+s")
        assert (folder / "one.txt").read_text() == SOURCE.replace("line 2\n", "two\n", 1)

    review(from_patch("c.diff"), steps)


def test_a_file_that_cannot_be_edited_is_listed(folder: Path) -> None:
    (folder / "one.txt").unlink()

    async def steps(app: ReviewApp, press: Press) -> None:
        assert "! one.txt" in screen_text(app)
        await press("f6", "up", "f6", "y", "r", "question_mark")
        assert "one.txt does not exist" in screen_text(app) or isinstance(app.screen, HelpScreen)
        await press("escape", "ctrl+q")

    review(from_patch("p.diff"), steps, size=(80, 24))


def test_a_file_changed_meanwhile_is_a_conflict_that_writes_nothing_there(folder: Path) -> None:
    async def steps(app: ReviewApp, press: Press) -> None:
        await press("a", "f6", "down", "f6", "a")
        (folder / "two.txt").write_text(SOURCE.replace("line 0\n", "other\n"))
        await press("ctrl+s")
        assert "changed meanwhile" in said(app) and "Written before that" in said(app)
        assert "thirty" in (folder / "one.txt").read_text()
        assert (folder / "two.txt").read_text().startswith("other\n")
        assert app.review_screen.reviews[0] is None and app.review_screen.reviews[1] is not None

    review(from_patch("p.diff"), steps)


def test_a_stored_proposal_goes_when_it_is_applied(folder: Path) -> None:
    store = ProposalStore(proposals_dir())
    result = make_result(open_document(folder / "one.txt"), SOURCE.replace("line 5\n", "five\n"))
    store.put(result, "Spell five.", "scripted", hunks=1)

    async def steps(app: ReviewApp, press: Press) -> None:
        assert app.review_screen.query_one(DiffView).has_focus
        await press("y", "ctrl+s")

    review(from_store(store, store.entries()), steps, store)
    assert (folder / "one.txt").read_text() == SOURCE.replace("line 5\n", "five\n")
    assert store.count() == 0
