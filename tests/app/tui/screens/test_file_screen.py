"""The file under the workspace: opened or refused, changed meanwhile, applied, taken back, and never lost."""

import os
from pathlib import Path

import pytest

from app.editing.journal import Journal
from app.editing.resume import resumed_turns
from app.editing.review import Decision
from app.editing.session_store import SavedSession, SessionKeeper, left_sessions
from app.paths import journal_dir
from app.tui.messages import ReviewChanged
from app.tui.screens.question import Question
from app.tui.widgets.banner import Banner
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.instruction_box import InstructionBox
from tests.support.headless_edit import CHANGED, SOURCE
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session, drive

TWICE = SOURCE.replace('"""Sums."""', '"""Sums and more."""').replace("high - low", "abs(high - low)")
"""A reply with two hunks."""


def banner(session: Session) -> str:
    """What the banner says; empty when it is not there."""
    found = session.workspace.query_one(Banner)
    assert found.display == bool(found.sentence)
    return found.sentence


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_bytes(b"a\0b"), "is binary"),
        (lambda path: path.write_bytes(b"\xff\xfa\n"), "--encoding"),
        (lambda path: path.mkdir(), "is a folder"),
    ],
    ids=["missing", "empty", "binary", "undecodable", "folder"],
)
def test_what_cannot_be_opened_is_a_sentence(tmp_path: Path, make: object, sentence: str) -> None:
    path = tmp_path / "odd"
    make(path)  # type: ignore[operator]

    async def steps(session: Session) -> None:
        assert len(session.said()) == 1 and sentence in session.said()[0]
        assert session.workspace.turns is None
        await session.press("f8", "ctrl+s", "f10", "f6", "f6", "up", "s", "d")

    drive(ScriptedClient(""), steps, file=path)


def test_a_name_is_text_and_an_encoding_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "[b]x[red]\x1b[31m.py"
    path.write_bytes("name = 'é'\n".encode("cp1252"))

    async def steps(session: Session) -> None:
        assert "[b]x[red]\\x1b[31m.py" in session.shown()
        assert "1 lines, cp1252" in session.shown() and "é" in session.shown()

    drive(ScriptedClient(""), steps, file=path, encoding="cp1252")


def test_accepted_hunks_are_applied_with_a_receipt_and_taken_back(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("ctrl+s")
        assert session.said()[-1] == "Nothing is accepted yet."
        await session.ask("Do.")
        await session.press("ctrl+s")
        assert session.said()[-1] == "Nothing is accepted yet; y accepts a hunk." and file.read_text() == SOURCE
        await session.accept_all()
        await session.press("ctrl+s")
        assert file.read_text() == CHANGED
        assert session.said()[-1].startswith("Applied to ") and "every other byte is as it was" in session.said()[-1]
        assert [entry.note for entry in Journal(journal_dir()).entries()] == ["Do."]
        assert "return 0.0" in session.shown() and not session.workspace.turns.waiting  # type: ignore[union-attr]
        assert "Say below what to change next." in session.shown() and session.focused() == "instruction"
        assert session.workspace.query_one(InstructionBox).text == ""
        assert session.workspace.status.state == "ready" and session.workspace.status.decided is None
        await session.press("f10")
        assert file.read_text() == SOURCE
        assert session.workspace.turns is not None and session.workspace.turns.waiting
        assert session.workspace.status.decided == (1, 1)
        await session.press("ctrl+s")
        assert file.read_text() == CHANGED

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)


def test_what_was_undecided_can_be_decided_after_an_apply(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.decide(2)
        await session.press("ctrl+s")
        assert "1 undecided left out" in session.said()[-1]
        assert file.read_text() == SOURCE.replace("high - low", "abs(high - low)")
        assert session.workspace.status.decided == (0, 1)
        await session.accept_all()
        await session.press("ctrl+s")

    drive(ScriptedClient(fenced(TWICE)), steps, file=file)
    assert file.read_text() == TWICE


def test_an_apply_over_a_changed_file_gives_its_hunks_back_when_it_is_taken_back(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.accept_all()
        file.write_text(SOURCE + "# mine\n")
        await session.press("ctrl+s")
        assert file.read_text() == CHANGED + "# mine\n" and "f10 takes it back" in session.said()[-1]
        await session.press("f10")
        assert file.read_text() == SOURCE + "# mine\n"
        review = session.last_turn().review
        assert review is not None and len(review.accepted) == 1
        await session.press("ctrl+s")
        assert file.read_text() == CHANGED + "# mine\n"

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)


def test_nothing_to_undo_is_a_sentence(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.press("f10")
        assert "no applied edit" in session.said()[-1]

    drive(ScriptedClient(""), steps, file=file)


def test_a_change_on_disk_is_said_and_the_decisions_move(file: Path) -> None:
    theirs = SOURCE.replace("def mean", "# theirs\ndef mean")

    async def steps(session: Session) -> None:
        await session.workspace.look_again()
        assert banner(session) == ""
        await session.ask("Do.")
        await session.decide(2)
        file.write_text(theirs)
        await session.look()
        assert banner(session) == "sums.py has changed on disk. Press f8 to read it again."
        file.write_text(SOURCE)
        await session.look()
        assert banner(session) == ""
        file.write_text(theirs)
        await session.look()
        await session.press("f8")
        assert banner(session) == "" and "# theirs" in session.shown()
        assert session.workspace.status.decided == (1, 2)
        await session.accept_all()
        await session.press("ctrl+s")
        assert "carried over" not in session.said()[-1]

    drive(ScriptedClient(fenced(TWICE)), steps, file=file)
    assert file.read_text() == TWICE.replace("def mean", "# theirs\ndef mean")


def test_an_apply_over_a_change_elsewhere_merges_and_over_a_change_there_refuses(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.accept_all()
        there = SOURCE.replace("high - low", "0")
        file.write_text(there)
        await session.look()
        assert "1 hunk does not fit it now" in banner(session)
        await session.press("ctrl+s")
        assert "changed meanwhile" in session.said()[-1] and file.read_text() == there
        file.write_text(SOURCE.replace("def mean", "# theirs\ndef mean"))
        await session.press("ctrl+s")
        assert "the hunks were carried over" in session.said()[-1]

    drive(ScriptedClient(fenced(TWICE)), steps, file=file)
    assert file.read_text() == TWICE.replace("def mean", "# theirs\ndef mean")


def test_a_file_that_vanishes_is_said_and_nothing_is_lost(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.accept_all()
        file.unlink()
        await session.look()
        assert "does not exist" in banner(session) and "is kept" in banner(session)
        await session.press("f8")
        assert "does not exist" in session.said()[-1]
        await session.press("ctrl+s")
        assert "nothing was written" in session.said()[-1]
        file.write_text(SOURCE)
        await session.look()
        assert banner(session) == ""
        await session.press("ctrl+s")

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)
    assert file.read_text() == CHANGED


def test_a_file_that_cannot_be_written_is_said_when_it_is_opened(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode & os.W_OK == 0 and access(path, mode))

    async def steps(session: Session) -> None:
        assert "sums.py is not writable for you. You can still edit, and export the patch." in banner(session)
        await session.ask("Do.")
        assert session.last_turn().proposal is not None

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)


@pytest.mark.parametrize("answer", ["y", "escape", "enter"])
def test_hard_links_are_parted_only_when_the_user_says_so(file: Path, answer: str) -> None:
    other = file.with_name("other.py")
    os.link(file, other)

    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.accept_all()
        await session.press("ctrl+s")
        assert isinstance(session.app.screen, Question) and "2 names" in session.shown()
        await session.press(answer)
        assert not isinstance(session.app.screen, Question)

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)
    assert other.read_text() == SOURCE
    assert file.read_text() == (CHANGED if answer == "y" else SOURCE)


def test_what_is_open_is_kept_on_disk_until_it_is_decided(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        session.workspace._keeper.close()  # as if the program had ended: the lock is gone
        (left,) = left_sessions().sessions
        assert left.session.path == str(file) and left.session.turns[0].instruction == "Do."
        await session.accept_all()
        assert left_sessions().sessions == ()  # it is ours again
        await session.press("ctrl+s")
        session.workspace._keeper.close()
        assert left_sessions().sessions == ()

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)


def test_no_hunk_of_a_reply_that_comes_waits_for_the_disk(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"value_{number} = {number}" for number in range(60)]
    file.write_text("".join(f"{line}\n" for line in lines))
    changed = "".join(f"{line}\n" for line in [*lines[:10], "ten = 10", *lines[11:]])
    saved: list[int] = []
    met: list[tuple[int, int]] = []
    save = SessionKeeper.save

    def counted(keeper: SessionKeeper, session: SavedSession) -> None:
        saved.append(len(session.turns))
        save(keeper, session)

    monkeypatch.setattr(SessionKeeper, "save", counted)

    async def steps(session: Session) -> None:
        async def look() -> None:
            session.workspace.query_one(DiffView).advance()
            await session.pilot.pause()
            review = session.last_turn().review
            met.append((0 if review is None else len(review.hunks), len(saved)))

        session.client.at_token = {300: look}
        await session.ask("Do.")
        assert met == [(1, 0)]  # a hunk could be decided by then
        assert saved and session.last_turn().proposal is not None

    drive(ScriptedClient(fenced(changed)), steps, file=file)


def test_a_decision_is_kept_also_when_the_program_ends_before_it_is_painted(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        review = session.last_turn().review
        assert review is not None
        session.workspace.review_changed(ReviewChanged(review.decide(1, Decision.ACCEPTED)))
        session.app.exit()

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)
    (left,) = left_sessions().sessions
    last = resumed_turns(left.session).current
    assert last is not None and last.review is not None and last.review.decisions == (Decision.ACCEPTED,)


def test_a_reading_is_not_changed_while_the_model_is_at_work(file: Path) -> None:
    async def steps(session: Session) -> None:
        await session.ask("Do.")
        await session.accept_all()
        file.with_name("other.py").write_text("x\n")
        session.workspace.at_work = True
        await session.press("f8")
        assert "escape stops it" in session.said()[-1]
        await session.press("f10")
        await session.press("ctrl+s")
        session.app.open_path("other.py")
        session.workspace.switch_base(0)
        await session.settle()
        assert session.said() == ["The model is at work on this file; escape stops it."] * 5
        assert session.workspace.turns is not None and session.workspace.turns.document.name == str(file)
        session.workspace.at_work = False

    drive(ScriptedClient(fenced(CHANGED)), steps, file=file)
