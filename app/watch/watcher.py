"""The watch: saves in, proposals out.

    roots -> settle -> read, hash gate, ledger, what is asked -> queue -> engine -> apply, or a proposal for review

One turn of `_turn` does everything that can be done now; `run` takes turns and waits between them. Knows nothing of
terminals. Invariant: the newest settled state of a file is either run to its end or replaced by a newer one, and
nothing is written over a state that is not the one the edit was made from.
"""

import asyncio
import os
from collections.abc import Callable, Sequence

from app.editing.journal import Journal
from app.editing.proposals import ProposalStore
from app.engine_client import EngineClient
from app.errors import (
    AppError,
    ConflictError,
    ExitCode,
    FileBinaryError,
    FileBusyError,
    FileEmptyError,
    FileError,
    FileMissingError,
    InterruptedByUserError,
    UnchangedError,
)
from app.watch.breaker import Breaker
from app.watch.delivery import Delivery
from app.watch.engine_wait import EngineWait
from app.watch.events import Failed, Held, Note, Ready, Status, StatusChanged, Superseded, Unchanged, WatchEvent
from app.watch.gate import Gate
from app.watch.inotify import InotifySource
from app.watch.job import edit_saved
from app.watch.ledger import Ledger
from app.watch.options import WatchOptions
from app.watch.pace import Pace
from app.watch.roots import Roots, SourceMaker, Touched
from app.watch.saves import Pushed, Save, SaveQueue
from app.watch.tree import Kind
from app.watch.warm_start import WarmStart
from editor_engine.requests import CancelFlag

MOST_ENGINE_FAILURES = 3
"""So many edits in a row that the engine could not run end the watch."""
_SLICE = 32
"""Saves that are read before the loop looks at anything else."""

Listen = Callable[[WatchEvent], None]


class Watcher:
    """One watch, on one event loop. `run` once; `stop` from the loop's thread at any time."""

    def __init__(
        self,
        options: WatchOptions,
        client: EngineClient,
        store: ProposalStore,
        journal: Journal,
        listen: Listen,
        pace: Pace | None = None,
        source: SourceMaker = InotifySource,
    ) -> None:
        """Raises FileMissingError and the like for a path that is not there. `pace`, `source`: tests have their own."""
        self._options = options
        self._client = client
        self._listen = listen
        self._pace = pace or Pace()
        self._delivery = Delivery(store, journal, listen, apply=options.apply, now=self._pace.now)
        limit = options.most_queued if not options.once else 1 << 62
        self._queue = SaveQueue(options.breaker or Breaker(), options.settle_s, limit)
        self._gate = Gate(Ledger(journal), self._standing, lambda path: options.once and path in self._roots.named)
        self._held: set[str] = set()
        self._unreadable: set[str] = set()
        self._job: asyncio.Task[None] | None = None
        self._cancel = CancelFlag()
        self._engine = EngineWait(client)
        self._warm = WarmStart(client, options.limits)
        self._stopping = False
        self._failure: AppError | None = None
        """With `once`: the first error. Else: what ended the watch."""
        self._delivered = 0
        self._engine_failures = 0
        self._rescan_at = 0.0
        """On the clock; a first look follows the start at once."""
        self._rescan_took = 0.0
        self._overfull = False
        self._state = "starting"
        self._said_status: Status | None = None
        self._roots = Roots(
            options.paths, poll=options.poll, wake=self._pace.wake_from_thread, note=self._note, source=source
        )

    @property
    def status(self) -> Status:
        """Where the watch stands."""
        running = self._queue.running
        return Status(
            self._state, None if running is None else running.path, self._queue.waiting(), self._delivery.pending
        )

    def stop(self) -> None:
        """End the watch: the running edit is cancelled, and what was proposed stays."""
        self._stopping = True
        self._engine.stop()
        self._cancel_job()
        self._pace.wake()

    async def run(self) -> ExitCode:
        """Watch until `stop`, or, with `once`, until everything is done. Raises AppError for what ended it."""
        try:
            await self._start()
            while not self._finished():
                await self._turn()
                self._say_status()
                if not self._finished():
                    await self._pace.wait(self._wait_s())
        finally:
            await self._end()
        if self._failure is not None:
            raise self._failure
        if self._stopping:
            raise InterruptedByUserError("The watch was stopped.")
        return ExitCode.OK if self._delivered else ExitCode.UNCHANGED

    # --- start, end ---------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        self._pace.attach()
        began = self._pace.now()
        self._delivery.start()
        async for files in self._roots.start():
            if self._stopping:
                return
            if self._options.once:
                for path in files:
                    self._look_at(path, self._pace.now())
                    await asyncio.sleep(0)
        self._rescan_took = self._pace.now() - began
        if not self._options.once:  # what is missing is said now, not at a save
            engine = await self._engine.there()
            if engine is None:
                return
            for sentence in engine.told:
                self._note(sentence)
        roots = self._roots
        self._listen(Ready(roots.paths, roots.folders, roots.files, roots.by_events, self._rescan_took))
        self._state = "idle"

    def _finished(self) -> bool:
        if self._stopping:
            return True
        if self._options.once:
            return self._job is None and not self._queue.queued
        return self._failure is not None

    async def _end(self) -> None:
        self._cancel_job()
        self._roots.close()
        await self._warm.use("")
        if self._job is not None:
            await self._engine.leave(self._job)
            self._job_ended()
        error = self._delivery.retry()
        self._failure = self._failure or error
        self._state = "stopped"
        self._say_status()

    # --- one turn -----------------------------------------------------------------------------------------------------

    async def _turn(self) -> None:
        """Everything that can be done now."""
        if self._job is not None and self._job.done():
            self._job_ended()
        if not self._options.once:
            await self._hear()
            await self._settle()
        self._next_job()

    async def _hear(self) -> None:
        """Take in what happened, and look at everything where that is due."""
        touched = self._roots.take()
        self._take_in(touched)
        room = self._overfull and 2 * self._queue.queued <= self._options.most_queued
        due = self._pace.now() >= self._rescan_at and (self._is_idle() or not self._roots.by_events)
        if touched.lost or room or due:
            self._overfull = self._overfull and not room
            await self._rescan()

    async def _rescan(self) -> None:
        began = self._pace.now()
        async for files in self._roots.rescan():
            if self._stopping:
                return
            self._touch(files)
        self._rescan_took = self._pace.now() - began
        self._rescan_at = self._pace.now() + self._roots.rescan_interval(self._rescan_took)
        self._delivery.retry()

    def _take_in(self, touched: Touched) -> None:
        for old, new in touched.renamed:
            if self._queue.is_busy(old):
                touched.files.append(new)
            else:
                self._gate.rename(old, new)
        for path in touched.gone:
            if path not in touched.files:
                self._gone(path)
        self._touch(touched.files)

    def _touch(self, files: Sequence[str]) -> None:
        for path in files:
            self._queue.touch(path, self._pace.now())
        if len(set(files)) == 1 and self._job is None and not self._queue.queued:
            self._warm.begin(lambda: self._gate.look(files[0]).asked)

    def _gone(self, path: str) -> None:
        self._drop(path)
        self._gate.forget(path)

    def _drop(self, path: str) -> None:
        """Nothing is asked of this file any more."""
        self._queue.forget(path)
        self._held.discard(path)
        if self._queue.running is not None and self._queue.running.path == path:
            self._cancel_job()

    def _cancel_job(self) -> None:
        self._cancel.set()
        self._warm.cancel()

    async def _settle(self) -> None:
        for number, (path, touched_at) in enumerate(self._queue.settled(self._pace.now()), 1):
            kind, changed = self._roots.looks(path)
            if kind is not Kind.FILE:
                self._gone(path)
            elif changed:  # still being written
                self._queue.touch(path, self._pace.now())
            else:
                self._look_at(path, touched_at)
            if number % _SLICE == 0:
                await asyncio.sleep(0)

    def _look_at(self, path: str, touched_at: float) -> None:
        """Queue a file if this state of it is new, not ours, and something is asked of it."""
        try:
            look = self._gate.look(path)
        except FileError as error:
            self._cannot_read(path, error)
            return
        self._unreadable.discard(path)
        if not look.new:
            return
        self._gate.remember(path, look.sha256)
        if look.asked is None:
            self._drop(path)
            return
        pushed = self._queue.push(path, look.sha256, touched_at, self._pace.now())
        if pushed is Pushed.FULL:
            self._overflow(path)
            return
        if pushed is Pushed.SUPERSEDES:
            self._cancel_job()
        self._say_held(path)

    def _standing(self, path: str) -> str | None:
        if self._options.once and path not in self._roots.named:
            return None
        return self._options.standing.instruction(self._roots.relative(path))

    def _cannot_read(self, path: str, error: FileError) -> None:
        """Say once why a saved file is left alone; binary and empty files are no surprise unless they were named."""
        self._drop(path)
        expected = isinstance(error, (FileBinaryError, FileEmptyError, FileMissingError))
        if (expected and path not in self._roots.named) or path in self._unreadable:
            return
        self._unreadable.add(path)
        self._fail(path, error)

    def _overflow(self, path: str) -> None:
        """No room: have the rescan that follows find the file again."""
        self._gate.forget(path)
        self._roots.doubt(path)
        if not self._overfull:
            self._overfull = True
            self._note(f"{self._queue.queued} files wait; more saves are looked at when there is room.")

    def _say_held(self, path: str) -> None:
        now = self._pace.now()
        until = self._queue.held_until(path, now)
        if until is None:
            self._held.discard(path)
        elif path not in self._held:
            self._held.add(path)
            self._listen(Held(path, until - now))

    # --- the engine ---------------------------------------------------------------------------------------------------

    def _next_job(self) -> None:
        save = self._queue.take(self._pace.now()) if self._job is None else None
        if save is None:
            return
        self._held.discard(save.path)
        self._cancel = CancelFlag()
        self._job = asyncio.ensure_future(self._edit(save))
        self._job.add_done_callback(lambda _: self._pace.wake())

    def _job_ended(self) -> None:
        job, self._job = self._job, None
        self._queue.done(self._pace.now())
        if job is not None and not job.cancelled():
            job.result()  # what is not an AppError is a fault of ours and must be seen

    async def _edit(self, save: Save) -> None:
        """One job, whatever it ends in."""
        try:
            after = await self._edited(save)
        except UnchangedError:
            self._listen(Unchanged(save.path))
        except FileBusyError as error:
            self._fail(save.path, error)
        except (InterruptedByUserError, ConflictError):
            self._superseded(save)
        except AppError as error:
            self._fail(save.path, error)
            self._count_engine_failure(error)
            return
        else:
            self._delivered += 1
            if after is not None:
                self._gate.remember(save.path, after)
        self._engine_failures = 0

    async def _edited(self, save: Save) -> str | None:
        began = self._pace.now()
        await self._warm.use(save.sha256)
        read_s = self._pace.now() - began
        asked = self._gate.asked_of_state(save.path, save.sha256)
        if asked is None or self._cancel.is_set():
            raise InterruptedByUserError("A newer save is there.")
        edited = await edit_saved(asked, self._client, self._options.limits, self._cancel)
        if self._cancel.is_set():
            raise InterruptedByUserError("A newer save is there.")
        return self._delivery.deliver(edited, save, began, read_s)

    def _superseded(self, save: Save) -> None:
        """The job's state is not the newest: make sure that the newest is looked at."""
        if self._stopping:
            return
        self._listen(Superseded(save.path))
        if not os.path.lexists(save.path):
            return
        if self._options.once:  # nothing else would look at it again
            self._look_at(save.path, self._pace.now())
        else:
            self._queue.touch(save.path, self._pace.now())

    def _count_engine_failure(self, error: AppError) -> None:
        if error.exit_code is ExitCode.ENGINE:
            self._engine_failures += 1
            if self._engine_failures >= MOST_ENGINE_FAILURES:
                self._failure = error

    def _fail(self, path: str, error: AppError) -> None:
        if self._options.once and self._failure is None:
            self._failure = error
        self._listen(Failed(path, error))

    # --- talk and time --------------------------------------------------------------------------------------------

    def _note(self, sentence: str) -> None:
        self._listen(Note(sentence))

    def _say_status(self) -> None:
        if self._state not in ("starting", "stopped"):
            busy = "queued" if self._queue.queued else "settling" if self._queue.settling else "idle"
            self._state = "running" if self._queue.running is not None else busy
        status = self.status
        if status != self._said_status:
            self._said_status = status
            self._listen(StatusChanged(status))

    def _wait_s(self) -> float | None:
        now = self._pace.now()
        times = [self._queue.next_at(now)]
        if not self._options.once and (self._is_idle() or not self._roots.by_events):
            times.append(self._rescan_at)
        known = [at for at in times if at is not None]
        return max(min(known) - now, 0.0) if known else None

    def _is_idle(self) -> bool:
        return self._job is None and not self._queue.queued
