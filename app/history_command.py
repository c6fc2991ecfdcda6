"""`redraft undo`, `redo` and `history`: parse, call the journal, print.

Knows nothing of how files are replaced. Invariant: stdout carries data only (the list, or JSON); sentences go to
stderr.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from app.editing.history import Step, entries, redo_edit, undo_edit
from app.editing.journal import Entry, Journal
from app.errors import AppError, ExitCode
from app.json_events import JsonWriter, ending_in_a_result
from app.paths import journal_dir, shown

_Act = Callable[[str | None, Journal], Step]


@click.command(
    "undo",
    help="Take back the newest applied edit of FILE (or of the files under it), or of those under the current folder.",
)
@click.argument("file", required=False, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines.")
def undo(file: str | None, as_json: bool) -> int:
    """Take back the newest applied edit."""
    return _step(undo_edit, "Undone", file, as_json)


@click.command("redo", help="Apply again the edit that was undone last.")
@click.argument("file", required=False, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines.")
def redo(file: str | None, as_json: bool) -> int:
    """Apply an undone edit again."""
    return _step(redo_edit, "Redone", file, as_json)


@click.command("history", help="List applied edits, newest first; of FILE, or of the files under it, when given.")
@click.argument("file", required=False, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines.")
def history(file: str | None, as_json: bool) -> int:
    """List applied edits."""
    writer = JsonWriter(sys.stdout) if as_json else None
    with _answered(writer) as codes:
        for entry in entries(file, Journal(journal_dir())):
            if writer is not None:
                writer.write("item", **_fields(entry))
            else:
                line = f"{entry.id}  {_when(entry):20}  {entry.state.value:8}  {shown(entry.path)}  {_note(entry)}"
                click.echo(line.rstrip())
        if writer is not None:
            writer.result(outcome="unchanged", exit_code=ExitCode.OK)
    return codes[-1]


def _step(act: _Act, done: str, file: str | None, as_json: bool) -> int:
    writer = JsonWriter(sys.stdout) if as_json else None
    with _answered(writer) as codes:
        step = act(file, Journal(journal_dir()))
        for entry_id in step.damaged:
            click.echo(f"The journal entry {entry_id} is damaged and was passed over.", err=True)
        if writer is None:
            click.echo(f"{done}: {shown(step.entry.path)} (journal entry {step.entry.id}).", err=True)
        else:
            receipt = {
                "path": step.entry.path,
                "before_sha256": step.before_sha256,
                "after_sha256": step.after_sha256,
                "outside_identical": True,
                "guarded": step.guarded,
                "journal_id": step.entry.id,
            }
            writer.result(outcome="applied", exit_code=ExitCode.OK, receipt=receipt)
    return codes[-1]


@contextmanager
def _answered(writer: JsonWriter | None) -> Iterator[list[ExitCode]]:
    """Gives where the exit code will be, last: a machine's result says what failed, people are told by the command
    line."""
    codes = [ExitCode.OK]
    try:
        with ending_in_a_result(writer):
            yield codes
    except AppError as error:
        if writer is None:
            raise
        codes.append(error.exit_code)


def _fields(entry: Entry) -> dict[str, object]:
    return {
        "id": entry.id,
        "time": _when(entry),
        "state": entry.state.value,
        "path": entry.path or None,
        "note": entry.note,
        "before_sha256": entry.before_sha256 or None,
        "after_sha256": entry.after_sha256 or None,
    }


def _when(entry: Entry) -> str:
    return datetime.fromtimestamp(entry.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _note(entry: Entry) -> str:
    first = shown(entry.note.split("\n")[0])
    return first if len(first) <= 60 else first[:59] + "…"
