"""The file half of the workspace: what is open, what was asked and decided, the file on disk, apply and undo.

Knows no engine. What keeps, applies and takes back is imported when there is something to keep, apply or take back:
50 ms that the first picture need not wait for. Invariant: what was decided is in `turns` and, while anything is
left of any turn, on disk; the file is written by `app.editing.apply` alone, after the user asked for it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from textual import on
from textual.content import Content

from app.editing.document import Document, open_document, require_replaceable
from app.editing.reread import look_again
from app.editing.session_store import SessionKeeper
from app.editing.turns import Turns, hunk_words, taken_back_words, unfit_words
from app.errors import AppError, FileHardLinkedError
from app.paths import journal_dir, shown
from app.tui.line_compositor import KeyFirstScreen
from app.tui.messages import FileChanged, ReviewChanged
from app.tui.widgets.banner import Banner
from app.tui.widgets.diff_view import DiffView
from app.tui.widgets.source_view import SourceView

if TYPE_CHECKING:
    from app.editing.apply import Receipt
    from app.tui.app import RedraftApp

LOOK_AGAIN_S = 2.0
"""Between two looks at the file on disk."""
_LONGEST_TITLE = 40
NEXT = "Say below what to change next."
WELCOME = "Say below what to change, and press enter. Nothing is written before you apply."


class FileScreen(KeyFirstScreen):
    """A screen with a source, a diff and a banner; `at_work` is for the half that has the engine."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: Turns | None = None
        self.at_work = False
        self._keeper = SessionKeeper()
        self._applied: list[tuple[str, Turns]] = []
        self._seen_on_disk = ""
        self._is_unkept = False

    @property
    def ui(self) -> "RedraftApp":
        """The app, by its own type."""
        from app.tui.app import RedraftApp  # the app imports this screen

        assert isinstance(self.app, RedraftApp)
        return self.app

    def tell(self, sentence: str, severity: Literal["information", "warning", "error"] = "information") -> None:
        """Say one sentence."""
        self.ui.tell(sentence, severity)

    # --- what is open -------------------------------------------------------------------------------------------------

    def may_change_file(self) -> bool:
        """True when no run depends on what is open; else says how to stop it."""
        if self.at_work:
            self.tell("The model is at work on this file; escape stops it.", "warning")
        return not self.at_work

    def open(self, document: Document) -> None:
        """Show a file, with nothing asked of it yet."""
        self._keep_what_is_new()
        self._keeper.close()
        self._keeper = SessionKeeper()
        self._applied = []
        self.turns = Turns(document)
        self.query_one(DiffView).show_empty(WELCOME)
        self.show_base()
        self._say_replaceable(document)

    def resume(self, turns: Turns, keeper: SessionKeeper) -> None:
        """Go on where a session was left."""
        self._keep_what_is_new()
        self._keeper.close()
        self._keeper = keeper
        self._applied = []
        self.turns = turns
        self.show_base()
        self.show_turn()

    def show_base(self, *, keep_place: bool = False) -> None:
        """Show what the next instruction works on."""
        assert self.turns is not None
        base = self.turns.document_of(self.turns.base)
        source = self.query_one(SourceView)
        source.show(base, keep_place=keep_place)
        left = f"as turn {self.turns.base} left it: " if self.turns.base else ""
        source.border_title = Content(left + _short(base.name))  # a name is no markup
        source.border_subtitle = f"{len(base.lines)} lines, {base.codec.label}, {base.newline}"

    def show_turn(self) -> None:
        """Show the review of the current turn, or what became of it."""
        turn = None if self.turns is None else self.turns.current
        diff = self.query_one(DiffView)
        if turn is None:
            diff.show_empty(WELCOME)
        elif turn.proposal is None or turn.review is None:
            diff.show_empty(turn.failure or WELCOME)
        elif not turn.review.hunks:
            diff.show_empty(f"Nothing is left to decide. {NEXT}{self.elsewhere()}")
        else:
            diff.show_review(turn.review, turn.proposal)
            self.post_message(ReviewChanged(turn.review))

    def elsewhere(self) -> str:
        """Says, behind another sentence, what waits in turns that are not shown; empty where nothing does."""
        if self.turns is None:
            return ""
        others = [turn for turn in self.turns.waiting if turn is not self.turns.current]
        if not others:
            return ""
        count = sum(len(turn.left) for turn in others)
        where = f"turn {others[0].number}" if len(others) == 1 else f"{len(others)} turns"
        return f" {hunk_words(count)} left in {where}; f7 leads there."

    def review_turn(self, number: int) -> None:
        """Let another turn be decided, over the file as it is."""
        if self.turns is None or not self.may_change_file():
            return
        self.turns, lost = self.turns.review_of(number)
        self._say_unfit(lost)
        if self.turns.reviewed != number:
            if not lost:
                self.tell(f"Nothing of turn {number} is left to decide.", "warning")
            return
        self.show_base(keep_place=True)
        self.show_turn()
        self.keep()

    def throw_away(self, number: int) -> None:
        """Reject what is left of a turn."""
        if self.turns is None or not self.may_change_file():
            return
        self.turns = self.turns.thrown_away(number)
        self.tell(f"Nothing of turn {number} is left to decide.{self.elsewhere()}")
        if self.turns.reviewed == number:
            self.show_turn()
        self.keep()

    def export_turn(self, number: int) -> None:
        """Write what is left of a turn as a patch of the file that it is about."""
        if self.turns is None:
            return
        from app.editing.export import export_patch

        turn = self.turns.turns[number - 1]
        try:
            self.tell(f"Written to {shown(export_patch(turn.base, turn.rest.wanted))}.")
        except AppError as error:
            self.tell(str(error), "error")

    def _say_unfit(self, lost: int) -> None:
        """Hunks that cannot be carried over are not gone."""
        if lost:
            self.tell(f"The file has changed; {unfit_words(lost)}. f7 leads there, f5 asks again.", "warning")

    def _say_replaceable(self, document: Document) -> None:
        """Before time is spent on an edit, say where it cannot be written."""
        self._seen_on_disk = ""
        try:
            require_replaceable(document, break_links=True)
        except AppError as error:
            self.query_one(Banner).say(f"{error} You can still edit, and export the patch.")
        else:
            self.query_one(Banner).say("")

    def keep_soon(self) -> None:
        """Keep what is new once the screen shows it: a key waits for no disk."""
        self._is_unkept = True
        self.call_after_refresh(self._keep_what_is_new)

    def _keep_what_is_new(self) -> None:
        if self._is_unkept:
            self.keep()

    def keep(self) -> bool:
        """Keep what is left of any turn on disk, or nothing when all is decided. False, and a sentence: it is not kept.

        What was kept before stays while a reply comes: there is no going on with a part of one.
        """
        self._is_unkept = False
        turn = None if self.turns is None else self.turns.current
        try:
            if self.turns is None or turn is None or not self.turns.waiting:
                self._keeper.forget()
            elif turn.proposal is not None or turn.failure is not None:
                from app.editing.resume import saved_session

                self._keeper.save(saved_session(self.turns))
        except AppError as error:
            self.tell(str(error), "error")
            return self.turns is None or not self.turns.waiting
        return True

    def discard(self) -> None:
        """Forget what is undecided: the user does not want it at the next start."""
        self._is_unkept = False
        try:
            self._keeper.forget()
        except AppError as error:
            self.tell(str(error), "error")

    def on_unmount(self) -> None:
        self._keep_what_is_new()
        self._keeper.close()

    # --- the file on disk ---------------------------------------------------------------------------------------------

    async def look_again(self) -> None:
        """Compare the file on disk with what was read."""
        if self.turns is None:
            return
        document = self.turns.document
        newer = await asyncio.to_thread(look_again, document)
        if self.turns is None or self.turns.document is not document:
            return
        if newer is not None:
            self.post_message(FileChanged(newer.document, newer.sentence))
        elif self._seen_on_disk:
            self._say_replaceable(document)

    @on(FileChanged)
    def file_changed(self, message: FileChanged) -> None:
        assert self.turns is not None
        if message.newer is None:
            sentence = f"{message.sentence} What you have here is kept."
        else:
            _, lost = self.turns.moved_to(message.newer)
            carried = f"; {unfit_words(lost)}" if lost else ""
            sentence = f"{message.sentence} Press f8 to read it again{carried}."
        if sentence != self._seen_on_disk:
            self._seen_on_disk = sentence
            self.query_one(Banner).say(sentence)

    def action_reload(self) -> None:
        if self.turns is None or not self.may_change_file():
            return
        document = self.turns.document
        try:
            newer = open_document(document.name, document.codec.name)
        except AppError as error:
            self.tell(str(error), "error")
            return
        self._move_to(newer)

    def _move_to(self, newer: Document) -> None:
        """Show the file's new state, with what is still to decide."""
        assert self.turns is not None
        self.turns, lost = self.turns.moved_to(newer)
        self._say_unfit(lost)
        self.show_base(keep_place=True)
        self.show_turn()
        self._say_replaceable(newer)
        self.keep()

    # --- apply and undo -----------------------------------------------------------------------------------------------

    async def action_apply_review(self) -> None:
        await self._apply()

    async def _apply(self, *, break_links: bool = False, take_back: bool = False) -> None:
        turns = self.turns
        turn = None if turns is None else turns.current
        if turns is None or turn is None or turn.review is None or not turn.review.accepted:
            waiting = turn is not None and turn.review is not None and bool(turn.review.undecided)
            self.tell(f"Nothing is accepted yet{'; y accepts a hunk' if waiting else ''}.", "warning")
            return
        if not self.may_change_file():
            return
        undone = turns.taken_back
        if undone and not take_back:
            sentence = f"This is about an older state of the file: it would undo {taken_back_words(undone)}. Apply it?"
            self._ask(sentence, ("Apply", "Leave it"), partial(self._apply, take_back=True))
            return
        from app.editing.apply import apply_hunks
        from app.editing.journal import Journal

        try:
            hunks = turns.to_apply()
            receipt = await asyncio.to_thread(
                apply_hunks,
                turns.document,
                hunks,
                Journal(journal_dir()),
                note=turn.instruction,
                break_links=break_links,
            )
            newer = open_document(turns.document.name, turns.document.codec.name)
        except FileHardLinkedError as error:
            again = partial(self._apply, break_links=True, take_back=take_back)
            self._ask(f"{error} Apply to this name only?", ("Part it", "Leave it"), again)
            return
        except AppError as error:
            self.tell(str(error), "error")
            return
        self._applied.append((receipt.journal_id, turns))
        self.turns = turns.applied(newer)
        self.tell(receipt_sentence(receipt, turn.review.undecided))
        self._move_to(newer)
        if not self.is_current_left():
            self.query_one(DiffView).show_empty(f"{receipt_sentence(receipt, 0)} {NEXT}{self.elsewhere()}")
            self.await_instruction()

    def is_current_left(self) -> bool:
        """True while something of the turn that is shown waits."""
        return self.turns is not None and self.turns.current is not None and bool(self.turns.current.left)

    def await_instruction(self) -> None:
        """Everything is decided: whatever comes next, it is an instruction."""

    def _ask(self, sentence: str, labels: tuple[str, str], agreed: Callable[[], Coroutine[None, None, None]]) -> None:
        from app.tui.screens.question import Question

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(agreed(), exit_on_error=False)

        self.app.push_screen(Question(sentence, *labels), answered)

    async def action_undo_apply(self) -> None:
        if self.turns is None or not self.may_change_file():
            return
        from app.editing.history import undo_edit
        from app.editing.journal import Journal

        document = self.turns.document
        try:
            step = await asyncio.to_thread(undo_edit, document.name, Journal(journal_dir()))
            older = open_document(document.name, document.codec.name)
        except AppError as error:
            self.tell(str(error), "error")
            return
        self.tell(f"{shown(document.name)} is as it was before the last apply.")
        if not self._applied or self._applied[-1][0] != step.entry.id:
            self._move_to(older)  # another redraft's apply
            return
        _, then = self._applied.pop()
        self.turns = then.unapplied(self.turns)
        if self.turns.document.data != older.data:
            self._move_to(older)  # the file had changed before the apply
            return
        self.turns = self.turns.reread(older)
        self.show_base(keep_place=True)
        self.show_turn()
        self.keep()


def _short(name: str) -> str:
    """A path as a title: below the current folder where it is, and its end where it is long."""
    with contextlib.suppress(ValueError):
        name = str(Path(name).absolute().relative_to(Path.cwd()))
    said = shown(name)
    return said if len(said) <= _LONGEST_TITLE else f"…{said[-_LONGEST_TITLE:]}"


def receipt_sentence(receipt: "Receipt", left: int) -> str:
    """What was written, proved and left out."""
    outside = "every other byte is as it was" if receipt.outside_identical else "OTHER BYTES CHANGED AS WELL"
    rebased = " The file had changed meanwhile; the hunks were carried over." if receipt.rebased else ""
    undecided = f" {left} undecided left out." if left else ""
    return f"Applied to {shown(receipt.path)}; {outside}.{rebased}{undecided} f10 takes it back."
