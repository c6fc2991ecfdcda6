"""What lies in the models folder, and whether it is what it should be.

A model file has a record beside it (`.<file>.json`): its SHA-256, and the size and time stamp it had when that was
worked out. Knows nothing of fetching. Invariant: a file of the catalogue is handed out only when its bytes once hashed
to the catalogue's SHA-256 and nothing has written to it since; without such a record it is hashed again first.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from editor_engine.atomic_file import write_atomically
from editor_engine.config import default_threads, model_cache_dir, models_dir
from editor_engine.errors import ModelFileError, ModelMissingError
from editor_engine.foreign_json import read_kept, shown
from editor_engine.machine import available_bytes
from editor_engine.store.catalogue import CatalogueModel, catalogue, default_model, find, gigabytes
from editor_engine.store.hashing import OnBytes, hash_file
from editor_engine.store.hub_folders import (
    HubFolder,
    find_folder,
    hub_folders,
    parse_hub_id,
    remove_folder,
    verify_folder,
)

_PARTS = (".safetensors", ".json", ".jinja", ".bin", ".pt", ".pth")
"""Ends of the names of files that a checkpoint has."""


@dataclass(frozen=True)
class InstalledModel:
    """A model file or a fetched folder in the models folder."""

    id: str
    """Of the catalogue; for other files the name without `.gguf`, for folders `publisher/name`."""
    path: Path
    bytes: int
    sha256: str | None
    """From a record that still holds; None: never hashed, or written to since. Of a folder, over those of its files."""
    model: CatalogueModel | None
    """None: not in the catalogue."""

    @property
    def whole(self) -> bool | None:
        """True: known to be right. False: known to be damaged. None: not known before it is hashed."""
        if self.model is None:
            return None if self.sha256 is None else True
        if self.bytes != self.model.bytes:
            return False
        return None if self.sha256 is None else self.sha256 == self.model.sha256


@dataclass(frozen=True)
class LocatedModel:
    """A model file or folder to load."""

    path: Path
    sha256: str | None
    """None: a folder, or a file outside the store; whoever loads it works the hash out."""
    id: str
    reason: str | None = None
    """Why this one, when nobody named it; None when it was named."""

    @property
    def choice(self) -> str | None:
        """What a user is told of a model that nobody named."""
        return None if self.reason is None else f"Model: {self.id}, {self.reason}."


def record_path(file: Path) -> Path:
    """Where the record of a model file lies."""
    return file.with_name(f".{file.name}.json")


def write_record(file: Path, sha256: str) -> None:
    """Remember that the bytes of `file`, as it is now, hash to `sha256`; written whole or not at all."""
    status = file.stat()
    facts = {"sha256": sha256, "bytes": status.st_size, "mtime_ns": status.st_mtime_ns}
    write_atomically(record_path(file), json.dumps(facts).encode())


def _recorded(file: Path, status: os.stat_result | None) -> str | None:
    """The SHA-256 on record; with `status` only if nothing has written to the file since."""
    facts = read_kept(record_path(file))
    try:
        if status is not None and (facts["bytes"], facts["mtime_ns"]) != (status.st_size, status.st_mtime_ns):
            return None
        sha256 = facts["sha256"]
    except KeyError:
        return None  # no record, or not one of ours: the file is hashed again
    return sha256 if isinstance(sha256, str) and len(sha256) == 64 and set(sha256) <= set("0123456789abcdef") else None


def _entry(file: Path) -> InstalledModel:
    status = file.stat()
    model = next((model for model in catalogue() if model.file == file.name), None)
    name = model.id if model else file.stem
    return InstalledModel(name, file, status.st_size, _recorded(file, status), model)


def installed() -> list[InstalledModel]:
    """Every .gguf file in the models folder: the catalogue's in its order, then others by name; then the folders.

    Hashes nothing. Raises ModelMissingError.
    """
    order = [model.id for model in catalogue()]
    try:
        files = [path for path in models_dir().iterdir() if path.suffix == ".gguf" and path.is_file()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ModelMissingError(f"The models folder {models_dir()} cannot be read: {error.strerror}.") from error
    entries = [_entry(path) for path in files if not path.name.startswith(".")]
    entries.sort(key=lambda e: (order.index(e.id) if e.model else len(order), e.id))
    return [*entries, *map(_of_folder, hub_folders())]


def _of_folder(folder: HubFolder) -> InstalledModel:
    return InstalledModel(folder.id, folder.path, folder.bytes, folder.sha256, None)


def find_installed(model_id: str) -> InstalledModel | None:
    """The installed model of that id, whole or not; None when there is no such file."""
    return next((entry for entry in installed() if entry.id == model_id), None)


def verify(entry: InstalledModel, on_bytes: OnBytes = lambda done: None) -> InstalledModel:
    """Hash the file again, whatever its record says, and renew the record.

    Raises ModelFileError for a damaged one, which loses its record so that nothing takes it for whole. A file outside
    the catalogue is damaged when its hash is not the one recorded when it was imported, a folder when a file of it is.
    """
    if entry.path.is_dir():
        return _of_folder(verify_folder(entry.path, on_bytes))
    sha256 = hash_file(entry.path, on_bytes)
    expected = entry.model.sha256 if entry.model else _recorded(entry.path, None)
    right = expected in (None, sha256)
    if right:
        write_record(entry.path, sha256)
        return _entry(entry.path)
    record_path(entry.path).unlink(missing_ok=True)
    damage = f"{entry.id} ({entry.path}) is damaged: its SHA-256 is {sha256}"
    if entry.model:
        raise ModelFileError(f"{damage}, not {entry.model.sha256}; `redraft models pull {entry.id}` fetches it again.")
    raise ModelFileError(f"{damage}, not {expected}; import it again.")


def locate(name: str | None = None) -> LocatedModel:
    """What to load for a model id, the path of a .gguf file or of a folder, the hub's name of a model that is here, or
    None for the default among the installed ones. A path is taken before a name of the hub.

    Raises ModelMissingError (the sentence says what to type) and ModelFileError for a damaged file.
    """
    if name is None:
        return _default()
    try:
        return _named(name)
    except OSError as error:  # a name too long for a path, a folder that may not be looked into
        raise ModelMissingError(f"The model {shown(name)} cannot be looked up: {error.strerror or error}.") from error


def _named(name: str) -> LocatedModel:
    path = Path(name).expanduser().absolute()
    if os.sep in name and path.is_dir():
        return LocatedModel(path, None, path.name)
    if hub_id := parse_hub_id(name):
        folder = find_folder(hub_id)
        if folder is not None:
            return LocatedModel(folder, None, str(hub_id))
        if not path.is_file():
            raise ModelMissingError(f"{name} is not here; `redraft models pull {name}` fetches it from the model hub.")
    if path.suffix in _PARTS and path.is_file() and (path.parent / "config.json").is_file():
        raise ModelMissingError(
            f"{path.name} is one file of a Hugging Face checkpoint; give the folder it lies in, {path.parent}."
        )
    entry = find_installed(name)
    if entry is not None:
        return _located(entry, None)
    if find(name) is None and path.is_dir():
        return LocatedModel(path, None, path.name)
    if name.endswith(".gguf") or os.sep in name:
        if not path.is_file():
            raise ModelMissingError(f"There is no model file or folder {path}.")
        return LocatedModel(path, None, path.stem)
    if find(name) is not None:
        raise ModelMissingError(f"{name} is not installed; `redraft models pull {name}` fetches it.")
    known = ", ".join(model.id for model in catalogue())
    raise ModelMissingError(
        f"No model is called {name!r}; give the path of a .gguf file or of a folder, "
        f"publisher/name of the model hub, or one of: {known}."
    )


def _default() -> LocatedModel:
    entries = {entry.id: entry for entry in installed() if entry.whole is not False}
    memory = available_bytes()
    choice = default_model(memory, default_threads(), entries)
    if choice.id in entries:
        return _located(entries[choice.id], choice.reason)
    fitting = [
        e for e in entries.values() if e.model and not e.model.for_tests and e.model.memory_bytes <= (memory or 0)
    ]
    if fitting:
        return _located(max(fitting, key=lambda e: e.bytes), "it is the largest installed one that fits this machine")
    size = gigabytes(next(model.bytes for model in catalogue() if model.id == choice.id))
    hint = f"; or name an installed one with --model: {', '.join(entries)}" if entries else ""
    raise ModelMissingError(
        f"No model to edit with is installed; `redraft models pull` fetches {choice.id} ({size}){hint}."
    )


def _located(entry: InstalledModel, reason: str | None) -> LocatedModel:
    if entry.whole is False and entry.model is not None and entry.bytes != entry.model.bytes:
        raise ModelFileError(
            f"{entry.path} has {entry.bytes} bytes, not {entry.model.bytes}; "
            f"`redraft models pull {entry.id}` fetches it again."
        )
    if entry.whole is not True:
        entry = verify(entry)
    return LocatedModel(entry.path, entry.sha256, entry.id, reason)


def remove(entry: InstalledModel) -> int:
    """Delete a model file, its record and what was derived from it (packed weights, tokenizer), or a fetched folder;
    returns bytes freed.

    Raises ModelFileError when the system refuses.
    """
    if entry.path.is_dir():
        return remove_folder(entry.path)
    try:
        freed = entry.path.stat().st_size
        entry.path.unlink()
    except OSError as error:
        raise ModelFileError(f"{entry.path} cannot be removed: {error.strerror}.") from error
    record_path(entry.path).unlink(missing_ok=True)
    sha256 = entry.sha256 or (entry.model.sha256 if entry.model else None)
    if sha256 is not None:
        derived = model_cache_dir() / sha256
        freed += sum(path.stat().st_size for path in derived.rglob("*") if path.is_file())
        shutil.rmtree(derived, ignore_errors=True)
    return freed
