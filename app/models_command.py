"""`redraft models`: what can be installed, what is, and getting from one to the other.

Parses options, asks for consent, shows progress; all the work is in `editor_engine.store`. Invariant: with `--json`,
stdout carries JSON lines only and the last is a `result`, also after a failure; talk goes to stderr.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app import models_talk
from app.errors import UsageError
from app.load_flags import load_flags
from app.load_options import Given
from app.model_info import listed, see_model
from app.model_rows import ModelRow, model_row
from app.models_pull import pull
from app.models_talk import answering, json_option
from editor_engine.errors import EngineError
from editor_engine.store.catalogue import catalogue, find, gigabytes

if TYPE_CHECKING:  # hashing and fetching are needed when a command runs, not for its help
    from editor_engine.store.installed import InstalledModel


@click.group()
def models() -> None:
    """List, pull, verify, import, export and remove model weights."""


models.add_command(pull)


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
@json_option
def list_models(load: Given, as_json: bool) -> None:
    """Show every model: size, licence, memory needed, whether it fits this machine, whether it is installed."""
    from app.settings import load_settings
    from editor_engine.store.installed import installed

    with answering(as_json) as output:
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
@json_option
def info(model_id: str, load: Given, as_json: bool) -> None:
    """Show all that is known of one model: where it would come from, and what a load takes of this machine's memory."""
    from app.settings import load_settings

    with answering(as_json) as output:
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


# --- verify, rm, import -----------------------------------------------------------------------------------------------


@models.command()
@click.argument("model_ids", metavar="[ID]...", nargs=-1)
@json_option
def verify(model_ids: tuple[str, ...], as_json: bool) -> None:
    """Hash installed models again, all of them by default, and compare with what they should be."""
    from editor_engine.errors import ModelFileError
    from editor_engine.store.installed import installed
    from editor_engine.store.installed import verify as verify_file

    with answering(as_json) as output:
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
@json_option
def remove(model_id: str, yes: bool, as_json: bool) -> None:
    """Delete a model, what was made from it (packed weights, tokenizer), and what a stopped pull of it left."""
    from editor_engine.store.fetch import discard_partial
    from editor_engine.store.fetch_folder import discard_partial_folder
    from editor_engine.store.hub_folders import parse_hub_id
    from editor_engine.store.installed import find_installed
    from editor_engine.store.installed import remove as remove_file

    outcomes = ["changed"]
    with answering(as_json, lambda: outcomes[-1]) as output:
        model, entry = find(model_id), find_installed(model_id)
        if entry is not None:
            if not yes and not models_talk.at_a_terminal():
                raise UsageError(f"`--yes` is needed to remove {entry.path} without a terminal to ask on.")
            if not yes and not click.confirm(f"Remove {entry.path} ({gigabytes(entry.bytes)})?", err=True):
                outcomes.append("declined")
                return

        def wait(event: object) -> None:
            output.note(f"Waiting for a pull of {model_id}.")

        hub_id = parse_hub_id(model_id)
        freed = discard_partial(model, wait) if model else discard_partial_folder(hub_id, wait) if hub_id else 0
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
@json_option
def import_model(file: Path, name: str | None, as_json: bool) -> None:
    """Copy a GGUF file from this machine into the models folder."""
    from editor_engine.store.importing import import_file

    with answering(as_json, lambda: "changed") as output:
        entry = import_file(file, name)
        if entry.model is None:
            _require_usable(entry)
            output.note(f"{entry.id} is not in the catalogue, so nobody vouches for it; its SHA-256 is {entry.sha256}.")
        output.item(vars(model_row(entry.model, entry, None)), f"{entry.id}: {entry.path}")


# --- export -----------------------------------------------------------------------------------------------------------


@models.command("export-hf")
@click.argument("model_id", metavar="ID|FILE")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--dtype", type=click.Choice(["float16", "bfloat16", "float32"]), default="float16", show_default=True,
    help="What the weights are written in; float32 is exact and twice as large.",
)  # fmt: skip
@json_option
def export_hf(model_id: str, folder: Path, dtype: str, as_json: bool) -> None:
    """Write a GGUF model as a FOLDER with a Hugging Face checkpoint: safetensors, configuration, tokenizer.

    Its weights are dequantised. `--model FOLDER` runs it through transformers; other tools read it, too.
    """
    from app.editing.interrupts import ends_as_interrupts
    from editor_engine.export import export_folder  # numpy and the tokenizer library: 0.2 s
    from editor_engine.store.installed import locate

    interrupted = f"Interrupted; {folder} was not written."
    with ends_as_interrupts(), answering(as_json, lambda: "changed", interrupted) as output:
        source = locate(model_id).path
        if source.is_dir():
            raise UsageError(f"{source} is a folder already.")
        done = export_folder(source, folder, dtype)
        item = {"id": model_id, "path": done.folder, "dtype": dtype, "bytes": done.weights_bytes, "files": done.files}
        output.item(item, f"{done.folder}: {gigabytes(done.weights_bytes)} in {dtype}, {len(done.files)} file(s)")
