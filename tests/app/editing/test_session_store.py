"""Left sessions: byte for byte what was saved, offered once nobody has them, damaged ones named and left alone."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing import session_store
from app.editing.session_store import KEPT_SECONDS, SavedSession, SavedTurn, SessionKeeper, left_sessions
from app.errors import StateError
from app.paths import sessions_dir
from tests.support.headless_edit import assert_sentence
from tests.support.saboteur import die, fail_with, in_child

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TURNS = st.builds(
    SavedTurn,
    instruction=st.text(max_size=20),
    lines=st.none() | st.just("2:5"),
    based_on=st.integers(0, 3),
    base=st.binary(max_size=40),
    asked_of=st.none() | st.binary(max_size=40),
    proposed=st.none() | st.binary(max_size=40),
    failure=st.none() | st.text(max_size=20),
    facts=st.dictionaries(st.text(max_size=8), JSON, max_size=3),
)
SESSIONS = st.builds(
    SavedSession,
    path=st.text(max_size=20),
    name=st.text(max_size=20),
    encoding=st.sampled_from(["utf-8", "cp932"]),
    source=st.binary(max_size=40),
    turns=st.lists(TURNS, max_size=3).map(tuple),
    base=st.integers(0, 3),
)
TURN = SavedTurn("Do.", None, 0, b"a\n", b"a\n", b"b\n", None, {"review": {"decisions": [1]}})
SESSION = SavedSession("/src/sums.py", "/src/sums.py", "utf-8", b"a\n", (TURN,), 0)


def keep(session: SavedSession, now: float = 1000.0) -> SessionKeeper:
    """A session that was left."""
    keeper = SessionKeeper(clock=lambda: now)
    keeper.save(session)
    keeper.close()
    return keeper


def left(now: float = 1000.0) -> list[SavedSession]:
    return [entry.session for entry in left_sessions(clock=lambda: now).sessions]


def test_nothing_at_the_first_start() -> None:
    assert left_sessions() == session_store.LeftSessions((), ())
    assert not sessions_dir().exists()


@settings(derandomize=True, deadline=None, max_examples=80)
@given(SESSIONS)
def test_what_was_saved_comes_back(tmp_path_factory: pytest.TempPathFactory, session: SavedSession) -> None:
    folder = tmp_path_factory.mktemp("sessions")
    keeper = SessionKeeper(folder=folder, clock=lambda: 5.0)
    keeper.save(session)
    keeper.close()
    (entry,) = left_sessions(folder, lambda: 6.0).sessions
    assert entry.session == replace(session, saved=5.0)


def test_private_and_replaced_whole_at_every_step() -> None:
    keeper = SessionKeeper()
    keeper.save(SESSION)
    keeper.save(replace(SESSION, base=1))
    (file,) = sessions_dir().glob("*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    keeper.close()
    assert [session.base for session in left()] == [1]


def test_an_open_session_is_not_offered_and_cannot_be_taken_over() -> None:
    keeper = SessionKeeper()
    keeper.save(SESSION)
    assert left_sessions() == session_store.LeftSessions((), ())
    assert not SessionKeeper(keeper.id).take_over()
    with pytest.raises(StateError, match="open"):
        SessionKeeper(keeper.id).save(SESSION)
    keeper.close()
    assert SessionKeeper(keeper.id).take_over()


def test_a_process_that_is_killed_leaves_its_session() -> None:
    def work() -> None:
        SessionKeeper(clock=lambda: 1000.0).save(SESSION)
        die()

    assert in_child(work) == -9
    assert left() == [replace(SESSION, saved=1000.0)]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_killed_while_saving_the_step_before_is_left(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def work() -> None:
        keeper = SessionKeeper(clock=lambda: 1000.0)
        keeper.save(SESSION)
        monkeypatch.setattr(os, call, lambda *_: die())
        keeper.save(replace(SESSION, base=1))

    assert in_child(work) == -9
    assert left() == [replace(SESSION, saved=1000.0)]


def test_a_full_disk_is_said_and_the_step_before_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = keep(SESSION)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda *_: fail_with(28)())
        with pytest.raises(StateError, match="No space left") as caught:
            keeper.save(replace(SESSION, base=1))
    assert_sentence(str(caught.value))
    keeper.close()
    assert [session.base for session in left()] == [0]


def test_decided_sessions_are_gone_and_the_next_is_a_new_one() -> None:
    keeper = SessionKeeper()
    keeper.save(SESSION)
    first = keeper.id
    keeper.forget()
    assert left() == [] and list(sessions_dir().iterdir()) == []
    keeper.forget()
    keeper.save(SESSION)
    assert keeper.id != first
    keeper.close()


def test_two_sessions_on_one_file_both_stay_newest_first() -> None:
    keep(SESSION, 1000.0)
    keep(replace(SESSION, base=1), 2000.0)
    assert [session.base for session in left(2000.0)] == [1, 0]


def test_old_ones_are_removed_and_said_to_be() -> None:
    keep(SESSION)
    found = left_sessions(clock=lambda: 1001.0 + KEPT_SECONDS)
    assert found.sessions == () and "older than 30 days" in found.notes[0]
    assert_sentence(found.notes[0])
    assert left_sessions().notes == ()


@settings(derandomize=True, deadline=None, max_examples=120)
@given(st.data())
def test_damage_anywhere_is_named_and_the_file_left(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("sessions")
    for _ in range(2):
        keeper = SessionKeeper(folder=folder, clock=lambda: 5.0)
        keeper.save(SESSION)
        keeper.close()
    path = folder / f"{keeper.id}.json"
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 2))
    damaged = data.draw(st.sampled_from([whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], b"\xff"]))
    path.write_bytes(damaged)
    found = left_sessions(folder, lambda: 6.0)
    assert len(found.sessions) == 1 and len(found.notes) == 1
    assert str(path) in found.notes[0] and "damaged" in found.notes[0]
    assert path.read_bytes() == damaged


def test_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(session_store, "VERSION", 99)
        keep(SESSION)
    (note,) = left_sessions().notes
    assert "another version, 99" in note


def test_an_unreadable_file_and_folder_are_said(tmp_path: Path) -> None:
    keep(SESSION)
    (path,) = sessions_dir().glob("*.json")
    path.unlink()
    path.mkdir()
    assert "cannot be read" in left_sessions().notes[0]
    (tmp_path / "file").write_text("")
    assert "cannot be read" in left_sessions(tmp_path / "file").notes[0]
