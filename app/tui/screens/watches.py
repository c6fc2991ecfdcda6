"""Watches that run, of any process, and the proposals that wait for review: start, stop, open, let go.

Shows what the watch worker says. Invariant: the marked row stays marked however the list changes, and nothing is
stopped or let go before the user has agreed to it, but for the watch that was started here.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Label, OptionList
from textual.widgets.option_list import Option

from app.editing.proposals import StoredProposal
from app.editing.under_review import from_store
from app.errors import AppError
from app.paths import shown
from app.terminal_text import visible
from app.tui.messages import WatchesSeen, WatchSaid
from app.tui.screens.dialog import Dialog
from app.tui.screens.proposal_review import ProposalReview
from app.tui.screens.question import Ask, Question
from app.tui.watch_worker import OwnWatch, WatchWorker
from app.watch.presence import RunningWatch, stop_watch
from app.watch.wording import status_sentence
from app.watch_board import Board, Waiting
from app.watch_jobs import WatchOrder

_WORDS = "n starts a watch, s stops one, enter reviews a proposal, a all, d lets one go, escape closes"
_QUEUE_SHOWN = 3


class WatchesScreen(Dialog[None]):
    """Watches above, proposals below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close"),
        Binding("n", "start", "Start"),
        Binding("s", "stop", "Stop"),
        Binding("a", "review_all", "Review all"),
        Binding("d", "let_go", "Let go"),
    ]

    def __init__(self, worker: WatchWorker, options: Sequence[str]) -> None:
        """`options`: of the command line, for a watch that is started here."""
        super().__init__()
        self._worker = worker
        self._options = tuple(options)
        self._board = Board()
        self._rows: list[tuple[str, Text]] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide"):
            yield Label("Watches and proposals", markup=False, classes="title")
            yield OptionList(markup=False)
            yield Label(_WORDS, markup=False, classes="note")

    def on_mount(self) -> None:
        self._show()

    def on_screen_resume(self) -> None:
        """Also after a review, which may have dropped something."""
        self.look_again()

    def look_again(self) -> None:
        """Ask for what is the case now."""
        self.app.run_worker(self._worker.look(whole=True), group="watches", exit_on_error=False)

    @on(WatchesSeen)
    def seen(self, message: WatchesSeen) -> None:
        if message.board is None:
            self.note(str(message.error))
        else:
            self._board = message.board
            self._show()

    @on(WatchSaid)
    def said(self, message: WatchSaid) -> None:
        self.note(message.said.sentence)
        self._show()

    def note(self, sentence: str) -> None:
        """Say something below the list."""
        self.query_one(".note", Label).update(f"{visible(sentence)}\n{_WORDS}")

    def _show(self) -> None:
        rows = board_rows(self._board, self._worker.own)
        if rows == self._rows:
            return
        marked = self.marked
        self._rows = rows
        listed = self.query_one(OptionList)
        listed.set_options([Option(text, disabled=not key) for key, text in rows])
        keys = [key for key, _ in rows]
        if marked not in keys or not marked:  # it is gone, or there was none
            marked = next(filter(None, keys), "")
        listed.highlighted = keys.index(marked) if marked else None

    @property
    def marked(self) -> str:
        """Key of the row under the cursor: `watch PID`, the id of a proposal, or nothing."""
        at = self.query_one(OptionList).highlighted
        return self._rows[at][0] if at is not None and at < len(self._rows) else ""

    def _proposal(self) -> StoredProposal | None:
        marked = self.marked
        return next((waiting.stored for waiting in self._board.waiting if waiting.stored.id == marked), None)

    # --- watches ------------------------------------------------------------------------------------------------------

    def action_start(self) -> None:
        if self._worker.own is not None:
            self.note("A watch that was started here runs already; s stops it.")
        else:
            self.app.push_screen(Ask("Folder or file to watch", os.getcwd()), self._ask_instruction)

    def _ask_instruction(self, path: str | None) -> None:
        if path is None or not path.strip():
            return
        title = "What to do with every saved file; empty: only what `redraft:` comments in it say"
        self.app.push_screen(Ask(title), lambda said: None if said is None else self._start(path, said))

    def _start(self, path: str, instruction: str) -> None:
        self._worker.start(WatchOrder(os.path.expanduser(path.strip()), instruction, self._options))
        self.note("The watch begins; it ends with this program.")
        self._show()

    def action_stop(self) -> None:
        own, marked = self._worker.own, self.marked
        if own is not None and marked in ("watch ", f"watch {own.pid}"):
            self._worker.stop()
            return
        watch = next((watch for watch in self._board.watches if marked == _watch_key(watch.pid)), None)
        if watch is None:
            self.note("Mark a watch to stop it.")
        else:
            sentence = (
                f"Stop the watch over {_names(watch.roots)}? Process {watch.pid}, which is not this one, runs it."
            )
            self.app.push_screen(Question(sentence), lambda agreed: self._stop(watch) if agreed else None)

    def _stop(self, watch: RunningWatch) -> None:
        asked = stop_watch(watch.pid)
        self.note(f"Process {watch.pid} was asked to stop." if asked else "That watch has ended already.")
        self.look_again()

    # --- proposals ----------------------------------------------------------------------------------------------------

    @on(OptionList.OptionSelected)
    def chosen(self) -> None:
        """Enter or a click."""
        stored = self._proposal()
        if stored is not None:
            self._review([stored])
        else:
            self.note("Mark a proposal to review it.")

    def action_review_all(self) -> None:
        if self._board.waiting:
            self._review([waiting.stored for waiting in self._board.waiting])
        else:
            self.note("Nothing waits for review.")

    def _review(self, stored: Sequence[StoredProposal]) -> None:
        try:
            files = from_store(self._worker.store, stored)
        except AppError as error:
            self.note(str(error))
        else:
            self.app.push_screen(ProposalReview(files, self._worker.store))

    def action_let_go(self) -> None:
        stored = self._proposal()
        if stored is None:
            self.note("Mark a proposal to let it go.")
        else:
            sentence = f"Let the proposal for {shown(stored.path)} go? The file stays as it is."
            self.app.push_screen(Question(sentence), lambda agreed: self._let_go(stored) if agreed else None)

    def _let_go(self, stored: StoredProposal) -> None:
        try:
            self._worker.store.drop(stored.id)
        except AppError as error:
            self.note(str(error))
        self.look_again()


def board_rows(board: Board, own: OwnWatch | None) -> list[tuple[str, Text]]:
    """(key, text) of every row; a heading has no key."""
    rows = [("", Text("Watches", "bold"))]
    rows += [(_watch_key(watch.pid), _watch_row(watch, own)) for watch in board.watches]
    if own is not None and all(watch.pid != own.pid for watch in board.watches):
        rows.append((_watch_key(own.pid), _row("starting", shown(own.order.path), _own_hint(own))))
    if len(rows) == 1:
        rows.append(("", Text("  none runs", "dim")))
    rows.append(("", Text("Proposals", "bold")))
    rows += [(waiting.stored.id, _proposal_row(waiting)) for waiting in board.waiting]
    if not board.waiting:
        rows.append(("", Text("  none waits", "dim")))
    return rows


def _watch_key(pid: int | None) -> str:
    return f"watch {pid or ''}"


def _watch_row(watch: RunningWatch, own: OwnWatch | None) -> Text:
    queued = watch.status.queued
    more = f" and {len(queued) - _QUEUE_SHOWN} more" if len(queued) > _QUEUE_SHOWN else ""
    status = status_sentence(watch.status)
    hints = [] if status == watch.status.state else [status]
    if queued:
        hints.append(f"next {_names(queued[:_QUEUE_SHOWN])}{more}")
    is_own = own is not None and own.pid == watch.pid
    hints.append(_own_hint(own) if own is not None and is_own else f"process {watch.pid}")
    return _row(watch.status.state, _names(watch.roots), "; ".join(hints))


def _own_hint(own: OwnWatch) -> str:
    asked = f", {visible(own.order.instruction)}" if own.order.instruction.strip() else ""
    return f"started here, ends with this program{asked}"


def _proposal_row(waiting: Waiting) -> Text:
    stored = waiting.stored
    standing = "damaged" if waiting.standing is None else waiting.standing.value
    when = datetime.fromtimestamp(stored.created, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    count = f"{stored.hunks} hunk{'s' * (stored.hunks != 1)}"
    warned = f", {len(stored.warnings)} warning{'s' * (len(stored.warnings) != 1)}" if stored.warnings else ""
    return _row(standing, shown(stored.path), f"{count}{warned}, {when}, {visible(stored.instruction)}")


def _row(state: str, name: str, hint: str) -> Text:
    row = Text(f"  {state:9} ", no_wrap=True, overflow="ellipsis")
    row.append(name, "bold")
    row.append(f"\n            {hint}", "dim")
    return row


def _names(paths: Sequence[str]) -> str:
    return ", ".join(map(shown, paths))
