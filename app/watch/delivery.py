"""What becomes of an edit: written, or stored for review, with what that took.

Knows the store, the journal and no queue. Invariant: only an edit without a warning is ever written, only over the very
bytes it was made from, and an edit that could not be stored is kept and tried again.
"""

from collections.abc import Callable

from app.editing.apply import apply_hunks
from app.editing.checks import CheckWarning
from app.editing.journal import Journal
from app.editing.proposals import ProposalStore
from app.errors import ConflictError, FileBusyError, FileError, ProposalError
from app.json_events import plain_data
from app.reporter import warning_fields
from app.stats_words import stats_fields
from app.watch.events import Applied, Failed, Proposed, Timing, WatchEvent
from app.watch.job import Edited
from app.watch.saves import Save

MOST_UNSAVED = 20
"""Edits kept in memory while they cannot be stored; the oldest goes first."""


class Delivery:
    """Takes finished edits."""

    def __init__(
        self,
        store: ProposalStore,
        journal: Journal,
        listen: Callable[[WatchEvent], None],
        *,
        apply: bool,
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._journal = journal
        self._listen = listen
        self._apply = apply
        self._now = now
        self._unsaved: dict[str, tuple[Edited, Timing, str | None]] = {}

    @property
    def pending(self) -> int | None:
        """Proposals that wait for review; None when that cannot be told."""
        try:
            return self._store.count() + len(self._unsaved)
        except ProposalError:
            return None

    def start(self) -> None:
        """Let go of proposals that nobody has reviewed for too long. Raises ProposalError."""
        self._store.expire()

    def deliver(self, edited: Edited, save: Save, began: float, read_s: float) -> str | None:
        """Write or store an edit; the hash of the file where it was written.

        `began`: when the edit left the queue; `read_s`: how long it then waited for its warm start.

        Raises ConflictError when the file is no longer what the edit was made from (nothing is written or stored).
        """
        refusal = None

        def timing() -> Timing:
            return _timing(edited, save, began, read_s, self._now())

        if self._apply:
            refusal = _refusal(edited.warnings)
            if refusal is None:
                try:
                    return self._write(edited, save, timing)
                except FileBusyError as error:
                    refusal = str(error)
                except ConflictError:
                    raise
                except FileError as error:
                    refusal = str(error)
        self._propose(edited, timing(), refusal)
        return None

    def retry(self) -> ProposalError | None:
        """Store what could not be stored before; the error that is still in the way."""
        for path, (edited, timing, refusal) in list(self._unsaved.items()):
            try:
                self._store_now(edited, timing, refusal)
            except ProposalError as error:
                return error
            self._unsaved.pop(path, None)
        return None

    def _write(self, edited: Edited, save: Save, timing: Callable[[], Timing]) -> str:
        document = edited.asked.document
        note = edited.asked.instruction
        receipt = apply_hunks(document, edited.hunks, self._journal, note=note, carry_over=False)
        self._listen(Applied(save.path, receipt, timing()))
        self._unsaved.pop(save.path, None)
        try:
            self._store.drop_for(save.path)
        except ProposalError as error:
            self._listen(Failed(save.path, error))
        return receipt.after_sha256

    def _propose(self, edited: Edited, timing: Timing, refusal: str | None) -> None:
        path = str(edited.asked.document.target)
        self._unsaved.pop(path, None)
        try:
            self._store_now(edited, timing, refusal)
        except ProposalError as error:
            self._unsaved[path] = (edited, timing, refusal)
            while len(self._unsaved) > MOST_UNSAVED:
                del self._unsaved[next(iter(self._unsaved))]
            self._listen(Failed(path, error))

    def _store_now(self, edited: Edited, timing: Timing, refusal: str | None) -> None:
        stored = self._store.put(
            edited.result,
            edited.asked.instruction,
            edited.model,
            hunks=len(edited.hunks),
            warnings=tuple(plain_data(warning_fields(warning)) for warning in edited.warnings),
            stats=plain_data(stats_fields(edited.stats)),
        )
        self._listen(Proposed(stored, timing, refusal))


def _timing(edited: Edited, save: Save, began: float, read_s: float, now: float) -> Timing:
    ttft_s, wall_s = edited.stats.ttft_s, edited.stats.wall_s
    return Timing(
        settle_s=save.queued_at - save.touched_at,
        queue_s=began - save.queued_at,
        prefill_s=None if ttft_s is None else read_s + ttft_s,
        decode_s=None if ttft_s is None else wall_s - ttft_s,
        total_s=now - save.touched_at,
    )


def _refusal(warnings: tuple[CheckWarning, ...]) -> str | None:
    """Why an edit with these warnings is not written unseen."""
    return f"({warnings[0].code}) {warnings[0].message}" if warnings else None
