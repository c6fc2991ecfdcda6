"""What a watch says while it runs: typed, frozen events, for a terminal, a program, a notifier or the terminal UI.

Light on purpose: no parsers, no engine. Paths are absolute and without links.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.errors import AppError

if TYPE_CHECKING:
    from app.editing.apply import Receipt
    from app.editing.proposals import StoredProposal


@dataclass(frozen=True)
class Status:
    """Where a watch stands; always known."""

    state: str
    """`starting`, `idle`, `settling`, `queued` (something waits and may not run yet), `running` or `stopped`."""
    running: str | None
    """The file that is being edited."""
    queued: tuple[str, ...]
    """Files that wait, the next first."""
    pending: int | None
    """Proposals that wait for review, of this watch and of others; None is unknown."""


@dataclass(frozen=True)
class Ready:
    """The watch has seen its tree and hears of every change from now on."""

    roots: tuple[str, ...]
    folders: int
    files: int
    events: bool
    """False: the tree is asked again and again instead."""
    seconds: float
    """From the start to here, the engine not counted in."""


@dataclass(frozen=True)
class Timing:
    """Where the time between a save and its proposal went, in seconds; None is unknown."""

    settle_s: float
    """First event of the save to its place in the queue: settle time and the reading of the file."""
    queue_s: float
    """In the queue."""
    prefill_s: float | None
    """Out of the queue to the first token; what the warm start has read before is not in it."""
    decode_s: float | None
    """First token to last."""
    total_s: float
    """First event of the save to the finished proposal (storing it comes after), or to the file written."""


@dataclass(frozen=True)
class StatusChanged:
    """The state, the running file, the queue or the number of proposals is another one."""

    status: Status


@dataclass(frozen=True)
class Proposed:
    """An edit waits for review."""

    proposal: "StoredProposal"
    timing: Timing
    why_not_applied: str | None = None
    """With --apply: why this one was not."""


@dataclass(frozen=True)
class Applied:
    """An edit was written; `redraft undo` takes it back."""

    path: str
    receipt: "Receipt"
    timing: Timing


@dataclass(frozen=True)
class Unchanged:
    """The model had nothing to change. Its triggers stay in the file."""

    path: str


@dataclass(frozen=True)
class Superseded:
    """A newer save of the file ended its run, or the file is gone."""

    path: str


@dataclass(frozen=True)
class Held:
    """The breaker holds the file back: it ran too often lately."""

    path: str
    for_s: float


@dataclass(frozen=True)
class Failed:
    """An edit came to nothing; the watch goes on."""

    path: str
    error: AppError


@dataclass(frozen=True)
class Note:
    """Something a user should know, said once."""

    sentence: str


WatchEvent = Ready | StatusChanged | Proposed | Applied | Unchanged | Superseded | Held | Failed | Note
