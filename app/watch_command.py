"""`redraft watch`: options in, a watch run until it is stopped, exit code out.

The watch is `app/watch/watcher.py`. Invariant: with `--json` stdout carries JSON lines only, the last one of type
`result`, also after a failure; without it nothing goes to stdout, and talk goes to stderr.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from app.errors import AppError, ExitCode, UsageError
from app.json_events import JsonWriter, ending_in_a_result
from app.load_flags import load_flags
from app.load_options import Given

if TYPE_CHECKING:  # the edit brings the language tables and parsers: 0.1 s that `--help` must not pay
    from app.engine_client import EngineClient
    from app.watch.events import WatchEvent
    from app.watch.options import WatchOptions
    from app.watch_report import WatchListener


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("-i", "--instruction", metavar="TEXT", help="What to do about every saved file, besides triggers.")
@click.option("--rules", metavar="FILE", help="TOML file of patterns, each with the instruction for files that fit.")
@click.option("--apply", is_flag=True, help="Write edits that raise no warning, instead of proposing them.")
@click.option("--once", is_flag=True, help="Edit files that have a trigger, and with -i those named; then end.")
@click.option("--poll", is_flag=True, help="Look again and again: for file systems that give no events.")
@click.option("--notify", metavar="CMD", help="Run CMD for every edit: a sentence as argument, JSON on stdin.")
@click.option("--strict", is_flag=True, default=None, help="New syntax errors block.")
@click.option("--no-draft", is_flag=True, default=None, help="Decode plainly: the same output, slower.")
@click.option("--max-deletions", type=click.IntRange(0), metavar="N", help="Most lines that may be deleted.")
@click.option("--engine", metavar="URL", help="Address of another engine, as http://localhost:8000/v1 or unix:SOCKET.")
@load_flags()
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines to stdout.")
@click.option("--until-eof", is_flag=True, help="End when stdin ends, too: for a program that starts a watch.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def watch(
    paths: tuple[str, ...],
    instruction: str | None,
    rules: str | None,
    apply: bool,
    once: bool,
    poll: bool,
    notify: str | None,
    strict: bool | None,
    no_draft: bool | None,
    max_deletions: int | None,
    engine: str | None,
    load: Given,
    as_json: bool,
    until_eof: bool,
    quiet: bool,
) -> int:
    """Propose an edit whenever a file of PATH is saved; `redraft review` shows what waits.

    A comment such as `# redraft: use pathlib here` in a saved file says what to do; the comment is taken out. With -i,
    or --rules, every saved file is edited. Runs until ctrl-C.
    """
    from app.clients.choose import choose
    from app.settings import load_settings
    from app.watch.job import EditLimits
    from app.watch.options import WatchOptions
    from app.watch.rules import StandingRules, read_rules
    from app.watch_report import JsonListener, TalkListener

    lines = JsonWriter(sys.stdout) if as_json else None
    listener: WatchListener = TalkListener(sys.stderr, quiet) if lines is None else JsonListener(lines)
    with ending_in_a_result(lines):
        try:
            if instruction is not None and not instruction.strip():
                raise UsageError("The instruction is empty; say what to change.")
            settings = load_settings()
            options = WatchOptions(
                paths=paths,
                standing=StandingRules(instruction) if rules is None else read_rules(rules, instruction),
                apply=apply,
                once=once,
                poll=poll,
                limits=EditLimits(
                    strict=settings.strict if strict is None else strict,
                    draft=settings.draft if no_draft is None else not no_draft,
                    max_deletions=max_deletions,
                ),
            )
            client = choose(settings, engine=engine, load=load, child=True, on_note=listener.note)
            code = asyncio.run(_run(options, client, notify, listener, until_eof=until_eof))
        except AppError as error:
            return listener.failed(error)
        return listener.finished(code)


async def _run(
    options: "WatchOptions",
    client: "EngineClient",
    notify: str | None,
    listener: "WatchListener",
    *,
    until_eof: bool,
) -> ExitCode:
    from app.editing.journal import Journal
    from app.editing.proposals import ProposalStore
    from app.paths import journal_dir, proposals_dir
    from app.watch.events import StatusChanged
    from app.watch.notify import Notifier
    from app.watch.overdue import ended_by_signals
    from app.watch.presence import present
    from app.watch.watcher import Watcher

    notifier = None if notify is None else Notifier(notify, listener.note)
    with present([os.path.realpath(path) for path in options.paths]) as presence:

        def listen(event: "WatchEvent") -> None:
            if isinstance(event, StatusChanged):
                presence.show(event.status)
            listener.hear(event)
            if notifier is not None:
                notifier.hear(event)

        watcher = Watcher(options, client, ProposalStore(proposals_dir()), Journal(journal_dir()), listen)
        loop = asyncio.get_running_loop()
        if until_eof:
            _stop_at_eof(loop, watcher.stop)
        try:
            with ended_by_signals(loop, watcher.stop):
                return await watcher.run()
        finally:
            if notifier is not None:
                await notifier.close()
            await client.close()


def _stop_at_eof(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Stop when whoever holds the other end of our stdin lets go of it. Raises UsageError where it is no pipe."""
    stdin = sys.stdin.fileno()

    def read() -> None:
        if not os.read(stdin, 4096):
            loop.remove_reader(stdin)
            stop()

    try:
        loop.add_reader(stdin, read)
    except OSError as error:
        raise UsageError("--until-eof needs a pipe or a terminal on stdin.") from error
