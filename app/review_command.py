"""`redraft review`: a patch file, or proposals that a watch stored, decided hunk by hunk.

Knows which way the answer is asked for: the terminal UI, plain lines, or JSON for programs. Invariant: stdout carries
JSON lines or the plain review, nothing else; a hunk that does not fit is never applied, and ends with the code of a
conflict.
"""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from app.editing.apply import Receipt
from app.editing.journal import Journal
from app.editing.proposals import ProposalStore, StoredProposal
from app.editing.review import Decision, Review
from app.editing.under_review import UnderReview, apply_reviews, from_patch, from_patch_stream, from_store
from app.errors import AppError, ConflictError, ExitCode, UsageError
from app.headless import Streams, standard_streams
from app.json_events import JsonWriter, ending_in_a_result
from app.paths import journal_dir, proposals_dir, shown
from app.plain import PlainLines, PlainReview
from app.reporter import hunk_fields


@click.command("review")
@click.argument("what", required=False, metavar="[PATCH|ID|FILE]")
@click.option("--list", "as_list", is_flag=True, help="List what waits for review.")
@click.option("--plain", is_flag=True, help="Ask in plain lines, as `git add -p` does.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines; decide nothing.")
@click.option("--apply", is_flag=True, help="With --json: apply all hunks, if every one of them fits.")
def review(what: str | None, as_list: bool, plain: bool, as_json: bool, apply: bool) -> int:
    """Review a patch file, or proposals that a watch left: all, one by its id, or one by its file.

    With - and --json the patch comes from stdin.
    """
    if plain and as_json:
        raise UsageError("--plain and --json are two ways to be asked; give one of them.")
    if apply and not as_json:
        raise UsageError("--apply goes with --json; the other ways ask before they write.")
    writer = JsonWriter(sys.stdout) if as_json else None
    store = ProposalStore(proposals_dir())
    if writer is not None:
        return _answered(what, store, writer, as_list=as_list, apply=apply)
    if as_list:
        return _listed(store.entries(), store, None)
    if what == "-":
        raise UsageError("Answers come from stdin, so a patch from there goes with --json only.")
    files = _wanted(what, store)
    if not files:
        click.echo("Nothing waits for review.", err=True)
        return ExitCode.OK
    return _in_plain_lines(files, store, standard_streams()) if plain else _in_terminal_ui(files, store)


def _answered(what: str | None, store: ProposalStore, writer: JsonWriter, *, as_list: bool, apply: bool) -> int:
    """The answer for programs, which ends in a result whatever happens."""
    try:
        with ending_in_a_result(writer, hunks=0, receipts=[]):
            if as_list:
                return _listed(store.entries(), store, writer)
            return _for_programs(_wanted(what, store), store, writer, apply=apply)
    except AppError as error:
        return error.exit_code


def _wanted(what: str | None, store: ProposalStore) -> tuple[UnderReview, ...]:
    if what is None:
        return from_store(store, store.entries())
    if what == "-":
        return from_patch_stream(standard_streams().stdin, "from stdin")
    # A stored proposal goes by its id or by the file it is for; anything else that exists is a patch.
    try:
        return from_store(store, [store.find(what)])
    except AppError:
        if not os.path.exists(what):
            raise
        return from_patch(what)


def _listed(found: Sequence[StoredProposal], store: ProposalStore, writer: JsonWriter | None) -> int:
    for stored in found:
        standing = store.standing(stored).value
        if writer is None:
            when = datetime.fromtimestamp(stored.created, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
            count = f"{stored.hunks} hunk{'s' * (stored.hunks != 1)}"
            line = f"{stored.id}  {when}  {standing:8}  {count:9}  {shown(stored.path)}  {shown(stored.instruction)}"
            click.echo(line.rstrip())
        else:
            writer.write(
                "item",
                id=stored.id,
                path=stored.path,
                instruction=stored.instruction,
                model=stored.model,
                created=stored.created,
                standing=standing,
                hunks=stored.hunks,
                warnings=stored.warnings,
                base_sha256=stored.base_sha256,
                new_sha256=stored.new_sha256,
            )
    if writer is not None:
        writer.result(outcome="unchanged", exit_code=ExitCode.OK)
    elif not found:
        click.echo("Nothing waits for review.", err=True)
    return ExitCode.OK


def _for_programs(files: Sequence[UnderReview], store: ProposalStore, writer: JsonWriter, *, apply: bool) -> int:
    conflicts = [sentence for file in files for sentence in file.conflicts]
    count = 0
    for file in files:
        writer.write("item", path=file.name, id=file.proposal_id, hunks=len(file.hunks), conflicts=file.conflicts)
        for hunk in file.hunks:
            count += 1
            writer.write("hunk", path=file.name, **hunk_fields(hunk))
    receipts: list[Receipt] = []
    error: AppError | None = None
    if conflicts:
        error = ConflictError(f"{conflicts[0]} Nothing was written.")
    elif apply:
        all_of_it = [(file, begun.decide_rest(Decision.ACCEPTED)) for file, begun in _begun(files)]
        try:
            apply_reviews(all_of_it, Journal(journal_dir()), store, receipts.append)
        except AppError as failure:
            error = failure
    # `receipt` is that of the first file, so that one file's answer reads as an edit's does.
    said = {"hunks": count, "receipt": receipts[0] if receipts else None, "receipts": receipts}
    if error is not None:
        writer.failed(error, **said)
        return error.exit_code
    writer.result(outcome="applied" if receipts else "changed" if count else "unchanged", exit_code=ExitCode.OK, **said)
    return ExitCode.OK


def _begun(files: Sequence[UnderReview]) -> list[tuple[UnderReview, Review]]:
    return [(file, begun) for file in files if (begun := file.start()) is not None]


def _in_plain_lines(files: Sequence[UnderReview], store: ProposalStore, streams: Streams) -> int:
    lines = PlainLines(streams.stdin, streams.stdout)
    decided: list[tuple[UnderReview, Review]] = []
    for file in files:
        count = len(file.hunks)
        lines.say(f"{shown(file.name)}: {count} hunk{'s' * (count != 1)}. {shown(file.note)}")
        for sentence in file.conflicts:
            lines.say(f"Conflict: {sentence}")
        begun = file.start()
        if begun is not None:
            decided.append((file, PlainReview(lines).run(begun)))
    changed = [done for _, done in decided if done.accepted]
    hunks, count = sum(len(done.accepted) for done in changed), len(changed)
    question = f"Apply {hunks} hunk{'s' * (hunks != 1)} to {count} file{'s' * (count != 1)}?"
    if changed and not lines.confirm(question):
        lines.say("Nothing was written.")
    else:  # also where all was rejected: the proposal is done with
        journal = Journal(journal_dir())
        apply_reviews(decided, journal, store, lambda receipt: lines.say(f"Applied to {shown(receipt.path)}."))
    return ExitCode.CONFLICT if any(file.conflicts for file in files) else ExitCode.OK


def _in_terminal_ui(files: Sequence[UnderReview], store: ProposalStore) -> int:
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("The review needs a terminal; --plain asks in plain lines, --json prints for programs.")
    from app.settings import load_settings
    from app.tui.look import choose_look, tell_textual

    settings = load_settings()
    look = choose_look(settings, os.environ)
    tell_textual(look, os.environ)
    # Deferred: textual costs 0.3 s that the other ways must not pay, and reads what it is told when it is imported.
    from app.tui.review_app import ReviewApp

    app = ReviewApp(files, store, settings.keys, look.theme)
    app.run(mouse=look.mouse)
    return app.return_code or (ExitCode.CONFLICT if any(file.conflicts for file in files) else ExitCode.OK)
