"""What the `redraft models` commands have in common: saying what they found, failing, asking, and showing progress.

Knows no command in particular. Invariant: with `--json`, stdout carries JSON lines only and the last is a `result`,
also after a failure; talk goes to stderr.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from app.errors import AppError, ExitCode, InterruptedByUserError
from app.json_events import JsonWriter, ending_in_a_result
from editor_engine.errors import EngineError
from editor_engine.store.catalogue import gigabytes

if TYPE_CHECKING:  # fetching is needed when a command runs, not for its help
    from editor_engine.store.sources import FetchEvent

_PROGRESS_LINES = 200
"""Lines of progress that a pull with `--json` writes at most, for each source."""

Command = TypeVar("Command", bound=Callable[..., object])


def json_option(command: Command) -> Command:
    """The option every command has."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON lines to stdout.")(command)


class Output:
    """Where a command says what it found: a line for a person, or an `item` for a program."""

    def __init__(self, as_json: bool) -> None:
        self.lines = JsonWriter(sys.stdout) if as_json else None

    def item(self, fields: Mapping[str, object], words: str) -> None:
        """One entry of the answer."""
        if self.lines:
            self.lines.write("item", **fields)
        else:
            click.echo(words)

    def note(self, words: str) -> None:
        """Talk."""
        click.echo(words, err=True)


@contextmanager
def answering(
    as_json: bool, outcome: Callable[[], str] = lambda: "unchanged", interrupted: str = "Interrupted."
) -> Iterator[Output]:
    """Turn the engine's errors into the application's, and end a JSON answer with its result; `interrupted` is what is
    said after ctrl-C."""
    from app.clients.in_process import app_error

    output = Output(as_json)
    with ending_in_a_result(output.lines):
        try:
            yield output
        except (EngineError, AppError, KeyboardInterrupt, click.Abort) as error:
            raise _as_app_error(error, app_error, interrupted) from error
    if output.lines:
        output.lines.result(outcome=outcome(), exit_code=ExitCode.OK)


def _as_app_error(error: BaseException, convert: Callable[[EngineError], AppError], interrupted: str) -> AppError:
    if isinstance(error, EngineError):
        return convert(error)
    if isinstance(error, AppError):
        return error
    return InterruptedByUserError(interrupted)


def at_a_terminal() -> bool:
    """Somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def progress(name: str, total: int, output: Output) -> "Iterator[Callable[[FetchEvent], None]]":
    """A bar with rate and time left on a terminal; elsewhere a line when a source begins or fails; JSON where asked."""
    from rich.console import Console  # rich takes 0.1 s
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from editor_engine.store.sources import SourceFailed, Waiting

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)
    task = bar.add_task(name, total=total, visible=False)
    sources: list[str] = []
    written = [-1]

    def report(event: "FetchEvent") -> None:
        if isinstance(event, SourceFailed):
            output.note(f"The {event.source} cannot be used: {event.reason}.")
        elif isinstance(event, Waiting):
            output.note(f"Another process is fetching {event.model_id}; waiting for it.")
        else:
            if event.source not in sources:
                sources.append(event.source)
                output.note(f"Fetching {name} ({gigabytes(event.total)}) from the {event.source}.")
                bar.reset(task, total=event.total, completed=event.done, visible=True)
            bar.update(task, completed=event.done)
            step = event.done * _PROGRESS_LINES // max(1, event.total)
            if output.lines and step != written[-1]:
                written[:] = [step]
                output.lines.write("progress", source=event.source, done=event.done, total=event.total)

    with bar:
        yield report
