"""One edit without a terminal UI: data to stdout, talk to stderr, an exit code back.

    open -> `pipeline.plan_edit` -> `pipeline.run_edit` -> diff, patch or new file -> (apply) -> exit code

Knows what goes to which stream; the edit itself is `app/editing`. Invariant: stdout carries one kind of data (a diff,
the new file, or JSON lines); a filter always gets a whole file back, the original one on any failure.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from typing import BinaryIO, TextIO, TypeVar

from app.editing.apply import apply_hunks
from app.editing.document import Document, open_bytes, open_document, require_replaceable
from app.editing.interrupts import ends_as_interrupts
from app.editing.journal import Journal
from app.editing.language import detect_language
from app.editing.live import LiveDiff
from app.editing.patch import patch_bytes
from app.editing.pipeline import EditOrder, EditPlan, Proposal, Replied, plan_edit, run_edit
from app.editing.prompt import ContextFile
from app.editing.settle import settle_all, settlement_sentence
from app.engine_client import EngineClient
from app.errors import (
    AppError,
    CheckFailedError,
    ExitCode,
    FileUnwritableError,
    InterruptedByUserError,
    UnchangedError,
    UsageError,
    foreseen,
)
from app.paths import journal_dir, shown
from app.proof import Witness
from app.rates import last_rates, remember_rates
from app.reporter import JsonReporter, Reporter, TalkReporter
from app.stream_reporter import StreamReporter
from app.terminal_text import diff_lines, takes_colour
from editor_engine.events import Started
from editor_engine.requests import CancelFlag

Result = TypeVar("Result")


@dataclass(frozen=True)
class EditOptions:
    """The options of `redraft edit`, as given."""

    file: str
    """A path, or `-` for stdin to stdout."""
    instruction: str
    lines: str | None = None
    symbol: str | None = None
    context: tuple[str, ...] = ()
    """Paths of files the model may read."""
    name: str | None = None
    """`--path`: what stdin is called."""
    encoding: str | None = None
    apply: bool = False
    patch: str | None = None
    stdout: bool = False
    json: bool = False
    dry_run: bool = False
    strict: bool = False
    draft: bool = True
    prove: bool = False
    """Decode once more the other way, and compare."""
    max_deletions: int | None = None
    quiet: bool = False
    verbose: bool = False
    stream: bool = False


@dataclass(frozen=True)
class Streams:
    """Where an edit reads and writes; tests give their own."""

    stdin: BinaryIO
    stdout: TextIO
    stdout_bytes: BinaryIO
    stderr: TextIO
    interactive: bool
    """A person is at both ends: questions may be asked."""


def standard_streams() -> Streams:
    """The process's own. One that was closed before we started reads or writes nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal's encoding may lack what a file has
    interactive = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    return Streams(sys.stdin.buffer, sys.stdout, sys.stdout.buffer, sys.stderr, interactive)


def hush_joined_stderr() -> None:
    """Where stderr and stdout are the same file, as in an editor's filter command: say nothing on stderr from here on.

    The descriptor itself is redirected, so that neither a library's words nor a crash reach the user's text.
    """
    try:
        out, err = os.fstat(1), os.fstat(2)
    except OSError:  # one of them is closed
        return
    if (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)


def give_back_stdin() -> None:
    """A filter whose options cannot be parsed still prints the text that came in."""
    streams = standard_streams()
    if sys.stdin.isatty():  # nobody filters anything, and waiting for text would look like a hang
        return
    hush_joined_stderr()
    _write(streams, streams.stdin.read())


Connect = Callable[[EditOptions], tuple[EditOptions, EngineClient]]
"""Fills settings into options and finds the engine; raises SettingsError and the like."""


def edit(options: EditOptions, connect: Connect, streams: Streams) -> ExitCode:
    """Run one edit from its options to its exit code; an AppError is reported here, none is raised."""
    if options.file == "-":
        return _filter(options, connect, streams)
    if options.stdout and options.json:
        raise UsageError("stdout carries one kind of data: give --stdout or --json.")
    if options.dry_run and (options.apply or options.stdout or options.patch is not None):
        raise UsageError("--dry-run runs nothing, so there is nothing for --apply, --stdout or --patch to write.")
    reporter = JsonReporter(streams.stdout) if options.json else _talk(options, streams)
    try:
        with ends_as_interrupts() as raise_earlier:
            raise_earlier()
            options, client = connect(options)
            say_end = _edit_file(options, client, streams, reporter)
        say_end()
    except AppError as error:
        return _failed(error, reporter)
    except KeyboardInterrupt as error:
        return _failed(foreseen(error), reporter)
    except BrokenPipeError:  # nobody reads what we would say about it
        raise
    except Exception as error:
        if options.json:  # for people, the command line says it
            reporter.failed(foreseen(error))
        raise
    return ExitCode.OK


def _talk(options: EditOptions, streams: Streams) -> TalkReporter:
    kind = StreamReporter if options.stream else TalkReporter
    return kind(streams.stderr, quiet=options.quiet, verbose=options.verbose)


def _failed(error: AppError, reporter: Reporter) -> ExitCode:
    reporter.failed(error)
    return error.exit_code


def _run(work: Coroutine[None, None, Result], client: EngineClient) -> Result:
    """Run the part that needs the engine, and let the engine go.

    Nothing is written in here: ctrl-C only marks the running task, which may still come to its end.
    """

    async def closing() -> Result:
        try:
            return await work
        finally:
            await client.close()

    running = closing()
    try:
        return asyncio.run(running)
    except KeyboardInterrupt as error:
        raise InterruptedByUserError("Interrupted; nothing was written.") from error
    finally:  # ctrl-C may come before the loop has begun with either, of which Python would warn
        running.close()
        work.close()


def _order(options: EditOptions) -> EditOrder:
    return EditOrder(
        instruction=options.instruction,
        lines=options.lines,
        symbol=options.symbol,
        context=tuple(_context_file(path) for path in options.context),
        draft=options.draft,
        score=options.verbose,
        strict=options.strict,
        max_deletions=options.max_deletions,
    )


def _context_file(path: str) -> ContextFile:
    document = open_document(path)
    return ContextFile(path, document.text, detect_language(path, document.lines[0]))


async def propose(
    document: Document, order: EditOrder, client: EngineClient, reporter: Reporter, *, prove: bool = False
) -> Proposal:
    """Follow the pipeline to its proposal, reporting every step; with `prove`, decode twice before it."""
    return await carry_out(await plan_edit(document, order, client), client, reporter, prove=prove)


async def carry_out(
    plan: EditPlan, client: EngineClient, reporter: Reporter, live: LiveDiff | None = None, *, prove: bool = False
) -> Proposal:
    """From a plan to its proposal, as `propose`; `live` has, also where that fails, what the reply said."""
    rates = last_rates(plan.engine)
    witness = Witness()
    async with aclosing(run_edit(plan, client, CancelFlag(), live)) as events:
        async for event in events:
            witness.see(event)
            if isinstance(event, Started):
                reporter.started(plan, event, None if rates is None else rates.seconds(plan.budget))
            elif isinstance(event, Replied):
                reporter.replied(event.stats)
                remember_rates(plan.engine, event.stats)
                if prove:
                    reporter.note(f"Decoding once more with drafting {'off' if plan.order.draft else 'on'}.")
                    reporter.proved(await witness.prove(plan, client))
            elif isinstance(event, Proposal):
                proposal = event
            else:
                reporter.progress(plan, event)
    reporter.proposed(proposal.hunks, proposal.report)
    for note in proposal.report.notes:
        reporter.note(note)
    return proposal


def _refuse_blocked(proposal: Proposal) -> None:
    blocking = [warning for warning in proposal.report.warnings if warning.blocking]
    if blocking:
        raise CheckFailedError(f"Not applicable ({blocking[0].code}): {blocking[0].message}")


def _edit_file(options: EditOptions, client: EngineClient, streams: Streams, reporter: Reporter) -> Callable[[], None]:
    """One edit but for its last words, which are returned: they are said when no signal can add other ones."""
    if options.name is not None:
        raise UsageError("--path names what comes through stdin; it goes with - as FILE.")
    journal = Journal(journal_dir())
    if options.apply or streams.interactive:
        for settlement in settle_all(journal):
            reporter.note(settlement_sentence(settlement))
    document = open_document(options.file, options.encoding)
    asking = _may_ask(options, document, journal, streams, reporter)
    if options.apply:
        _require_appliable(document, journal)
    _require_patch_apart(options)
    order = _order(options)
    if options.dry_run:
        plan = _run(plan_edit(document, order, client), client)
        return partial(reporter.planned, plan, last_rates(plan.engine), streams.stdout)
    proposal = _run(propose(document, order, client, reporter, prove=options.prove), client)
    if options.patch is not None:
        _write_patch(options.patch, patch_bytes(document, proposal.hunks))
    if not options.json and not options.stdout:
        _print_diff(proposal, streams)
    _refuse_blocked(proposal)
    if options.stdout:
        _write(streams, proposal.result.data)
    if not options.apply and not asking:
        return partial(reporter.finished, "changed")
    if asking and not _confirmed(proposal, streams):
        return partial(reporter.finished, "declined")
    receipt = apply_hunks(document, proposal.hunks, journal, note=options.instruction)
    return partial(reporter.finished, "applied", receipt)


def _require_appliable(document: Document, journal: Journal) -> None:
    """What would keep a result from being written is told before the model runs."""
    require_replaceable(document)
    with journal.locked():
        pass


def _may_ask(options: EditOptions, document: Document, journal: Journal, streams: Streams, reporter: Reporter) -> bool:
    """True where a person will be asked after seeing the diff; a file that cannot be replaced is only shown."""
    if not streams.interactive or options.apply or options.json or options.stdout or options.dry_run or options.patch:
        return False
    try:
        _require_appliable(document, journal)
    except AppError as error:
        reporter.note(f"Diff only: {error}")
        return False
    return True


def _confirmed(proposal: Proposal, streams: Streams) -> bool:
    count = len(proposal.hunks)
    question = f"Apply {count} hunk{'s' if count > 1 else ''} to {shown(proposal.plan.document.name)}? [y/N] "
    streams.stderr.write(question)
    streams.stderr.flush()
    return streams.stdin.readline().strip().lower() in {b"y", b"yes"}


def _print_diff(proposal: Proposal, streams: Streams) -> None:
    if not streams.stdout.isatty():
        _write(streams, patch_bytes(proposal.plan.document, proposal.hunks))
        return
    for line in diff_lines(proposal.hunks, colour=takes_colour(streams.stdout)):
        streams.stdout.write(line + "\n")
    streams.stdout.flush()


def _write(streams: Streams, data: bytes) -> None:
    streams.stdout.flush()
    streams.stdout_bytes.write(data)
    streams.stdout_bytes.flush()


def _require_patch_apart(options: EditOptions) -> None:
    """`--patch` must be a file that can be written, and not one that is read: said before the model runs."""
    patch = options.patch
    if patch is None:
        return
    if patch == "-":
        raise UsageError("--patch takes the name of a file; stdout carries the diff already.")
    folder = os.path.dirname(os.path.abspath(patch))
    if os.path.isdir(patch) or not os.access(patch if os.path.exists(patch) else folder, os.W_OK):
        raise FileUnwritableError(f"The patch {shown(patch)} cannot be written: it is a folder or not writable.")
    if not os.path.exists(patch):
        return
    if any(os.path.exists(read) and os.path.samefile(patch, read) for read in (options.file, *options.context)):
        raise UsageError(f"--patch {shown(patch)} is a file of this edit, which the diff would overwrite.")


def _write_patch(path: str, data: bytes) -> None:
    try:
        # O_NONBLOCK: opening a pipe that nobody reads would wait for ever.
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK, 0o666)) as stream:
            os.set_blocking(stream.fileno(), True)
            stream.write(data)
    except OSError as error:
        raise FileUnwritableError(f"The patch {shown(path)} cannot be written: {error.strerror}.") from error


def _filter(options: EditOptions, connect: Connect, streams: Streams) -> ExitCode:
    """stdin to stdout: the new file, or the very bytes that came in and a code that says why."""
    with ends_as_interrupts() as raise_earlier:
        return _give_back_or_answer(options, connect, streams, raise_earlier)


def _give_back_or_answer(
    options: EditOptions, connect: Connect, streams: Streams, raise_earlier: Callable[[], None]
) -> ExitCode:
    data = streams.stdin.read()
    reporter = _talk(options, streams)
    answer, code = data, ExitCode.OK
    try:
        raise_earlier()
        answer = _filtered(data, options, connect, reporter)
    except UnchangedError:
        pass
    except AppError as error:
        code = _failed(error, reporter)
    except BaseException:
        _write(streams, data)
        raise
    _write(streams, answer)
    return code


def _filtered(data: bytes, options: EditOptions, connect: Connect, reporter: Reporter) -> bytes:
    if options.json or options.apply or options.dry_run:
        raise UsageError("With - as FILE stdout carries the new file; --json, --apply and --dry-run do not go with it.")
    _require_patch_apart(options)
    document = open_bytes(data, options.name or "-", options.encoding)
    options, client = connect(options)
    proposal = _run(propose(document, _order(options), client, reporter, prove=options.prove), client)
    if options.patch is not None:
        _write_patch(options.patch, patch_bytes(document, proposal.hunks))
    _refuse_blocked(proposal)
    return proposal.result.data
