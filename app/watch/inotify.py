"""Events of many folders through one inotify descriptor and one thread, over watchdog's inotify layer.

watchdog's own observers start a thread for every schedule and drop an overflow; here one emitter serves all folders and
says when events were lost. Knows folders and names; what they mean is for others. Invariant: events come out in the
order the kernel gave them, each with the path its folder has now, and none of a folder that was removed.
"""

import errno
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from app.errors import AppError, ExitCode

_MASK = Mask(
    InotifyConstants.IN_MODIFY
    | InotifyConstants.IN_ATTRIB
    | InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_MOVED_FROM
    | InotifyConstants.IN_MOVED_TO
    | InotifyConstants.IN_CREATE
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR
    | InotifyConstants.IN_DONT_FOLLOW
    | InotifyConstants.IN_EXCL_UNLINK
)


class WatchLimitError(AppError):
    """The system allows no further watch; the sentence says which limit it is."""

    exit_code = ExitCode.FILE
    code = "watch_limit"


class What(Enum):
    """What happened."""

    CHANGED = "changed"
    """The name was written, created, or moved here."""
    ATTRIBUTES = "attributes"
    """Mode, owner or times of the name changed."""
    MOVED_AWAY = "moved_away"
    GONE = "gone"
    """The name was removed."""
    FOLDER_GONE = "folder_gone"
    """The folder itself was removed, moved or unmounted."""
    OVERFLOW = "overflow"
    """Events were lost: nothing is certain any more."""


@dataclass(frozen=True)
class FolderEvent:
    """One thing that happened in a watched folder."""

    what: What
    folder: str
    """Empty for an overflow."""
    name: str = ""
    """Empty where it is about the folder itself."""
    cookie: int = 0
    """The same for the two halves of a rename; 0 for anything else."""
    is_folder: bool = False


class InotifySource:
    """One descriptor, one thread. Everything but the thread's own hand-over is called from one thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called from the reading thread when there is something to drain.

        Raises WatchLimitError when the system has no inotify descriptor left for this user.
        """
        self._wake = wake
        self._raw: deque[tuple[int, InotifyEvent | None]] = deque()
        self._folders: dict[int, str] = {}
        """Watch descriptor to folder."""
        self._watches: dict[str, tuple[WatchDescriptor, CallbackId, int]] = {}
        """Folder to its watch, the callback's id, and how many roots asked for it."""
        self._last_id = 0
        try:
            self._fd = InotifyFD()
        except OSError as error:
            raise WatchLimitError(f"No events from the system ({error.strerror}).") from error
        self._fd.start()

    # --- called by watchdog, from its thread --------------------------------------------------------------------------

    def on_event(self, event: InotifyEvent) -> None:
        """An event of any folder."""
        self._raw.append((event.wd, event))
        self._wake()

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """The kernel has given up a watch: its folder is gone."""
        self._raw.append((wd, None))
        self._wake()

    def on_queue_overflow(self) -> None:
        """The kernel has dropped events."""
        self._raw.append((-1, None))
        self._wake()

    # --- called by the watch ------------------------------------------------------------------------------------------

    def add(self, folder: str) -> None:
        """Watch a folder. One that we may not read is left out without a word: listing it says so.

        Raises WatchLimitError when the system allows no further watch.
        """
        if folder in self._watches:
            wd, id_, count = self._watches[folder]
            self._watches[folder] = (wd, id_, count + 1)
            return
        self._last_id += 1
        id_ = CallbackId(self._last_id)
        try:
            wd = self._fd.add_callback(os.fsencode(folder), _MASK, self, id_)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.ENOMEM):
                raise WatchLimitError(
                    "The system's limit of watched folders is reached (fs.inotify.max_user_watches)."
                ) from error
            return  # gone already, or no folder any more
        if wd < 0:  # no right to read it
            self._fd.remove_callbacks([(wd, id_)])
            return
        moved = self._folders.get(wd)
        if moved is not None:  # the same folder under a former name
            self._fd.remove_callbacks([(wd, self._watches.pop(moved)[1])])
        self._folders[wd] = folder
        self._watches[folder] = (wd, id_, 1)

    def remove(self, folder: str) -> None:
        """Watch a folder no longer."""
        if folder not in self._watches:
            return
        wd, id_, count = self._watches.pop(folder)
        if count > 1:
            self._watches[folder] = (wd, id_, count - 1)
            return
        del self._folders[wd]
        self._fd.remove_callbacks([(wd, id_)])

    def drain(self) -> list[FolderEvent]:
        """What happened since the last call."""
        found: list[FolderEvent] = []
        while self._raw:
            wd, event = self._raw.popleft()
            folder = self._folders.get(wd)
            if wd < 0:
                found.append(FolderEvent(What.OVERFLOW, ""))
            elif folder is not None:
                found.append(FolderEvent(What.FOLDER_GONE, folder) if event is None else _translated(folder, event))
        return found

    def close(self) -> None:
        """Stop the thread and give the descriptor back; safe to call twice."""
        self._fd.stop()
        self._fd.join()


def _translated(folder: str, event: InotifyEvent) -> FolderEvent:
    if not event.name:
        own = event.is_delete_self or event.is_move_self or event.mask & InotifyConstants.IN_UNMOUNT
        return FolderEvent(What.FOLDER_GONE if own else What.ATTRIBUTES, folder)
    if event.is_delete:
        what = What.GONE
    elif event.is_moved_from:
        what = What.MOVED_AWAY
    elif event.is_attrib:
        what = What.ATTRIBUTES
    else:
        what = What.CHANGED
    return FolderEvent(
        what, folder, os.fsdecode(event.name), event.cookie, bool(event.mask & InotifyConstants.IN_ISDIR)
    )
