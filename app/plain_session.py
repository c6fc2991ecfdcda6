"""`redraft --plain FILE`: instructions, reviews and applies in plain lines, one after the other.

    instruction -> `headless.carry_out` -> `plain.PlainReview` -> yes or no -> `apply_hunks` -> next instruction

The line-mode twin of the terminal UI. Knows which question follows which. Invariant: no line is drawn over another, a
failed edit ends with one sentence and the next question, nothing is written before a yes, and what is left undecided is
kept: one letter goes on with it, here or at the next start.
"""

import asyncio
import os
from dataclasses import dataclass

from app.editing.again import continue_plan, redo_order, redone
from app.editing.apply import apply_hunks
from app.editing.document import Document, open_document
from app.editing.journal import Journal
from app.editing.pipeline import EditOrder, Proposal, live_diff, plan_edit
from app.editing.resume import resumed_turns, saved_session
from app.editing.review import Review
from app.editing.session_store import SessionKeeper, left_sessions
from app.editing.turns import Turns, hunk_words, unfit_words
from app.engine_client import EngineClient
from app.errors import AppError, ExitCode, InterruptedByUserError, ReplyCutError
from app.headless import Streams, carry_out, propose
from app.paths import journal_dir, shown
from app.plain import PlainLines, PlainReview
from app.reporter import TalkReporter
from app.terminal_text import visible

_GO_ON = "l"
"""Instead of an instruction: go on with what was left."""


@dataclass(frozen=True)
class PlainOptions:
    """What the command line and the settings say."""

    file: str
    encoding: str | None = None
    draft: bool = True
    strict: bool = False


class PlainReporter(TalkReporter):
    """Talk without a line that is drawn again and again."""

    def _status(self, text: str) -> None:
        pass


def plain_session(options: PlainOptions, client: EngineClient, streams: Streams) -> ExitCode:
    """Ask and edit until the input ends or an instruction is empty; the code of the last failure, else OK.

    Raises AppError for a file that cannot be opened.
    """
    session = _Session(options, client, streams)
    # One loop for all edits: a client may hold connections that belong to it.
    with asyncio.Runner() as runner:
        try:
            return session.run(runner)
        finally:
            runner.run(client.close())


class _Session:
    def __init__(self, options: PlainOptions, client: EngineClient, streams: Streams) -> None:
        self._options = options
        self._client = client
        self._lines = PlainLines(streams.stdin, streams.stdout)
        self._reporter = PlainReporter(streams.stderr)
        self._turns = Turns(open_document(options.file, options.encoding))
        self._keeper = SessionKeeper()

    def run(self, runner: asyncio.Runner) -> ExitCode:
        code = ExitCode.OK
        document = self._turns.document
        self._lines.say(
            f"{shown(document.name)}: {len(document.lines)} lines, {document.codec.label}, {document.newline}."
        )
        self._take_left()
        try:
            while instruction := self._lines.ask(self._question()):
                code = self._answered(runner, instruction)
        finally:
            self._keeper.close()
        return code

    def _question(self) -> str:
        going_on = f"; {_GO_ON} goes on with what was left" if self._turns.waiting else ""
        return f"Instruction (an empty line ends{going_on}): "

    def _answered(self, runner: asyncio.Runner, instruction: str) -> ExitCode:
        try:
            if instruction == _GO_ON and self._turns.waiting:
                return self._go_on(runner)
            return self._edit(runner, instruction)
        except AppError as error:
            self._reporter.failed(error)
            return error.exit_code
        except KeyboardInterrupt:
            self._reporter.failed(InterruptedByUserError("Interrupted; nothing was written."))
            return ExitCode.INTERRUPTED

    def _edit(self, runner: asyncio.Runner, instruction: str) -> ExitCode:
        order = EditOrder(instruction, draft=self._options.draft, strict=self._options.strict)
        plan = runner.run(plan_edit(self._turns.document, order, self._client))
        while True:
            live = live_diff(plan)
            try:
                proposal = runner.run(carry_out(plan, self._client, self._reporter, live))
                break
            except ReplyCutError as error:
                self._reporter.failed(error)
                if not plan.engine.capabilities.prefill or not self._lines.confirm("Go on where it was cut?"):
                    return error.exit_code
                plan = runner.run(continue_plan(plan, live.text, self._client))
        self._turns = self._turns.switch_base(0).begin(instruction, None).proposed(proposal)
        return self._decide(runner)

    def _go_on(self, runner: asyncio.Runner) -> ExitCode:
        """Go on with the turn that has something left; where several have, the user says with which."""
        waiting = {str(turn.number): turn for turn in self._turns.waiting}
        number = next(iter(waiting))
        if len(waiting) > 1:
            for turn in waiting.values():
                self._lines.say(f"{turn.number}: {visible(turn.instruction)} ({hunk_words(len(turn.left))} left)")
            number = self._lines.ask("Which of them? ")
            if number not in waiting:
                self._lines.say(f"Say one of {', '.join(waiting)}.")
                return ExitCode.OK
        turns, lost = self._turns.review_of(int(number))
        if turns is not self._turns:
            self._turns = turns
            self._say_unfit(lost)
            return self._decide(runner)
        self._lines.say(f"The file has changed; {unfit_words(lost)}.")
        if self._lines.confirm("Throw that away?"):
            self._turns = turns.thrown_away(int(number))
        self._keep()
        return ExitCode.OK

    def _decide(self, runner: asyncio.Runner) -> ExitCode:
        """Let the current turn be decided, and write what is accepted and wanted."""
        turn = self._turns.current
        assert turn is not None and turn.proposal is not None and turn.review is not None
        try:
            review = self._reviewed(turn.proposal, turn.review, runner)
            self._turns = self._turns.decided(review)
            count, document = len(review.accepted), self._turns.document
            if count and self._lines.confirm(f"Apply {count} hunk{'s' * (count != 1)} to {shown(document.name)}?"):
                hunks = self._turns.to_apply()
                receipt = apply_hunks(document, hunks, Journal(journal_dir()), note=turn.instruction)
                self._reporter.finished("applied", receipt)
                newer = open_document(document.name, document.codec.name)
                self._move_to(self._turns.applied(newer), newer)
            else:
                self._reporter.finished("declined")
        finally:
            self._keep()
        return ExitCode.OK

    # --- what is left -------------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        """Keep what is undecided, or accepted and not applied, of any turn, and say so."""
        if not self._turns.waiting:
            self._keeper.forget()
            return
        self._keeper.save(saved_session(self._turns))
        self._lines.say(f"What is left is kept; {_GO_ON} goes on with it, here or at the next start.")

    def _take_left(self) -> None:
        """Take over what was left of this file at an earlier end, so that it can be gone on with."""
        document = self._turns.document
        for left in left_sessions().sessions:
            if left.session.path != os.path.realpath(document.name):
                continue
            keeper = SessionKeeper(left.id)
            try:
                turns = resumed_turns(left.session)
                if not turns.waiting or not keeper.take_over():
                    continue
            except AppError as error:
                self._reporter.failed(error)
                continue
            self._keeper = keeper
            asked = "; ".join(visible(turn.instruction) for turn in turns.waiting)
            self._lines.say(f"Something was left undecided: {asked}")
            if turns.document.data == document.data:
                self._turns = turns.reread(document)
            else:
                self._move_to(turns, document)
            return

    def _move_to(self, turns: Turns, document: Document) -> None:
        """Go on with turns over the file as it is now."""
        self._turns, lost = turns.moved_to(document)
        self._say_unfit(lost)

    def _say_unfit(self, lost: int) -> None:
        if lost:
            self._lines.say(f"The file has changed; {unfit_words(lost)}.")

    def _reviewed(self, proposal: Proposal, review: Review, runner: asyncio.Runner) -> Review:
        def redo(now: Review, index: int, note: str) -> Review:
            order = redo_order(proposal.plan, now.item(index).hunk, note)
            again = runner.run(propose(now.document, order, self._client, self._reporter))
            return redone(now, index, again)

        return PlainReview(self._lines, proposal.report.warnings, redo=redo).run(review)
