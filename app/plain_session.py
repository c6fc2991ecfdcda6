"""`redraft --plain FILE`: instructions, reviews and applies in plain lines, one after the other.

    instruction -> `headless.carry_out` -> `plain.PlainReview` -> yes or no -> `apply_hunks` -> next instruction

The line-mode twin of the terminal UI. Knows which question follows which. Invariant: no line is drawn over another, a
failed edit ends with one sentence and the next question, and nothing is written before a yes.
"""

import asyncio
from dataclasses import dataclass

from app.editing.again import continue_plan, redo_order, redone
from app.editing.apply import apply_hunks
from app.editing.document import Document, open_document
from app.editing.journal import Journal
from app.editing.pipeline import EditOrder, Proposal, live_diff, plan_edit
from app.editing.review import Review
from app.editing.review_notes import blast_notes
from app.engine_client import EngineClient
from app.errors import AppError, ExitCode, InterruptedByUserError, ReplyCutError
from app.headless import Streams, carry_out, propose
from app.paths import journal_dir, shown
from app.plain import PlainLines, PlainReview
from app.reporter import TalkReporter


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
        self._document = open_document(options.file, options.encoding)

    def run(self, runner: asyncio.Runner) -> ExitCode:
        code = ExitCode.OK
        document = self._document
        self._lines.say(
            f"{shown(document.name)}: {len(document.lines)} lines, {document.codec.label}, {document.newline}."
        )
        while instruction := self._lines.ask("Instruction (an empty line ends): "):
            try:
                code = self._edit(runner, instruction)
            except AppError as error:
                code = error.exit_code
                self._reporter.failed(error)
            except KeyboardInterrupt:
                code = ExitCode.INTERRUPTED
                self._reporter.failed(InterruptedByUserError("Interrupted; nothing was written."))
        return code

    def _edit(self, runner: asyncio.Runner, instruction: str) -> ExitCode:
        order = EditOrder(instruction, draft=self._options.draft, strict=self._options.strict)
        plan = runner.run(plan_edit(self._document, order, self._client))
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
        review = self._reviewed(proposal, runner)
        count, name = len(review.accepted), shown(self._document.name)
        if not count or not self._lines.confirm(f"Apply {count} hunk{'s' * (count != 1)} to {name}?"):
            self._reporter.finished("declined")
            return ExitCode.OK
        receipt = apply_hunks(self._document, review.accepted, Journal(journal_dir()), note=instruction)
        self._reporter.finished("applied", receipt)
        self._document = _again(self._document)
        return ExitCode.OK

    def _reviewed(self, proposal: Proposal, runner: asyncio.Runner) -> Review:
        for note in blast_notes(proposal.report):
            self._lines.say(note)
        review = Review.start(proposal.plan.document, proposal.hunks)

        def redo(now: Review, index: int, note: str) -> Review:
            order = redo_order(proposal.plan, now.item(index).hunk, note)
            again = runner.run(propose(now.document, order, self._client, self._reporter))
            return redone(now, index, again)

        return PlainReview(self._lines, proposal.report.warnings, redo=redo).run(review)


def _again(document: Document) -> Document:
    return open_document(document.name, document.codec.name)
