"""The one emitter: events in order, with the present names of their folders; limits and overflows are said."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent, InotifyFD, Mask

from app.watch.inotify import FolderEvent, InotifySource, WatchLimitError, What


class Ear:
    """A source, and a way to wait until it has heard of something."""

    def __init__(self) -> None:
        self._woken = threading.Event()
        self.source = InotifySource(self._woken.set)
        self.events: list[FolderEvent] = []

    def until(self, what: What, name: str) -> FolderEvent:
        """Everything up to this event has been taken down."""
        while True:
            self.events += self.source.drain()
            found = [event for event in self.events if (event.what, event.name) == (what, name)]
            if found:
                return found[-1]
            assert self._woken.wait(30)
            self._woken.clear()


@pytest.fixture
def ear() -> Iterator[Ear]:
    ear = Ear()
    yield ear
    ear.source.close()
    ear.source.close()  # safe twice


def test_what_happens_to_names_is_told_in_order(ear: Ear, tmp_path: Path) -> None:
    ear.source.add(str(tmp_path))
    path = tmp_path / os.fsdecode(b"a\xff.py")
    path.write_text("x")
    path.chmod(0o600)
    path.rename(tmp_path / "b")
    (tmp_path / "b").unlink()
    (tmp_path / "c").mkdir()
    made = ear.until(What.CHANGED, "c")
    assert made.is_folder
    told = [(event.what, event.name) for event in ear.events]
    order = [
        (What.CHANGED, path.name),
        (What.ATTRIBUTES, path.name),
        (What.MOVED_AWAY, path.name),
        (What.CHANGED, "b"),
        (What.GONE, "b"),
        (What.CHANGED, "c"),
    ]
    assert [event for event in dict.fromkeys(told)] == order
    away = next(event for event in ear.events if event.what is What.MOVED_AWAY)
    here = next(event for event in ear.events if event.name == "b")
    assert away.cookie == here.cookie != 0


def test_a_removed_folder_is_told_of(ear: Ear, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    ear.source.add(str(folder))
    folder.rmdir()
    assert ear.until(What.FOLDER_GONE, "").folder == str(folder)


def test_a_folder_that_was_let_go_is_silent(ear: Ear, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        ear.source.add(str(folder))
    ear.source.add(str(one))  # a second root asks for it
    ear.source.remove(str(one))
    (one / "a").touch()
    ear.until(What.CHANGED, "a")
    ear.source.remove(str(one))
    ear.source.remove(str(one))
    (one / "b").touch()
    (two / "c").touch()
    ear.until(What.CHANGED, "c")
    assert "b" not in {event.name for event in ear.events}


def test_a_renamed_folder_goes_by_its_new_name(ear: Ear, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    ear.source.add(str(old))
    old.rename(new)
    ear.source.add(str(new))
    (new / "a").touch()
    assert ear.until(What.CHANGED, "a").folder == str(new)
    ear.source.remove(str(old))
    (new / "b").touch()
    assert ear.until(What.CHANGED, "b").folder == str(new)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ENOMEM])
def test_the_limit_of_watches_is_an_error(
    ear: Ear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*given: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(InotifyFD, "add_callback", full)
    with pytest.raises(WatchLimitError):
        ear.source.add(str(tmp_path))


def test_no_descriptor_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(InotifyFD, "_create_inotify_fd", full)
    with pytest.raises(WatchLimitError):
        InotifySource(print)


def test_what_is_gone_or_closed_is_left_out(ear: Ear, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ear.source.add(str(tmp_path / "nowhere"))
    monkeypatch.setattr("watchdog.observers.inotify_c.inotify_add_watch", lambda *given: -1)
    monkeypatch.setattr("ctypes.get_errno", lambda: errno.EACCES)
    ear.source.add(str(tmp_path))
    ear.source.add(str(tmp_path / "other"))
    monkeypatch.undo()
    ear.source.remove(str(tmp_path))


def test_an_overflow_and_an_unmounted_folder_are_told_of(ear: Ear, tmp_path: Path) -> None:
    ear.source.add(str(tmp_path))
    (tmp_path / "a").touch()
    ear.until(What.CHANGED, "a")
    fd = ear.source._fd
    [wd] = ear.source._folders
    fd.handle_event(InotifyEvent(wd, InotifyConstants.IN_UNMOUNT, 0, b""))  # type: ignore[arg-type]
    assert ear.until(What.FOLDER_GONE, "").folder == str(tmp_path)
    fd.handle_event(InotifyEvent(-1, Mask(InotifyConstants.IN_Q_OVERFLOW), 0, b""))  # type: ignore[arg-type]
    assert ear.until(What.OVERFLOW, "").folder == ""
    fd.handle_event(InotifyEvent(wd, InotifyConstants.IN_IGNORED, 0, b""))  # type: ignore[arg-type]
    ear.until(What.FOLDER_GONE, "")
