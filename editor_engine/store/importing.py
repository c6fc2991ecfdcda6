"""Take a model file that is already on this machine into the store.

Knows nothing of sources. Invariant: the file appears under its name only when it was copied whole; what it is, is
decided by its SHA-256, never by its name.
"""

import hashlib
import os
from pathlib import Path

from editor_engine.config import models_dir
from editor_engine.errors import ModelFileError
from editor_engine.scratch_file import scratch_file, sweep
from editor_engine.store.catalogue import catalogue, find
from editor_engine.store.hashing import CHUNK, OnBytes
from editor_engine.store.installed import InstalledModel, find_installed, write_record
from editor_engine.store.sources import require_space

_MAGIC = b"GGUF"
_SCRATCH = ".import-"


def import_file(source: Path, model_id: str | None = None, on_bytes: OnBytes = lambda done: None) -> InstalledModel:
    """Copy a GGUF file into the models folder; `.model` of the answer is None when the catalogue lacks its hash.

    `model_id` names it: an id of the catalogue is refused unless the hash is that model's; None takes the catalogue's
    id for the hash, else the file's name. Raises ModelFileError, and FetchError when the disk has no room.
    """
    name = model_id or source.stem
    if name.startswith(".") or any(mark in name for mark in "/\\\0"):
        raise ModelFileError(
            f"{name!r} cannot be the name of a model: it must not begin with a dot or contain a slash."
        )
    folder = models_dir()
    try:
        if source.is_dir():
            raise ModelFileError(
                f"{source} is a folder; a Hugging Face checkpoint is not imported, --model takes its path."
            )
        if source.exists() and not source.is_file():  # a pipe would keep us for ever
            raise ModelFileError(f"{source} is not a regular file.")
        with source.open("rb") as stream:
            if stream.read(len(_MAGIC)) != _MAGIC:
                raise ModelFileError(f"{source} is not a GGUF file.")
            stream.seek(0)
            folder.mkdir(parents=True, exist_ok=True)
            sweep(folder, f"{_SCRATCH}*")
            require_space(folder, os.fstat(stream.fileno()).st_size)
            with scratch_file(folder, _SCRATCH) as copy:
                digest = hashlib.sha256()
                while chunk := stream.read(CHUNK):
                    digest.update(chunk)
                    copy.write(chunk)
                    on_bytes(copy.tell())
                copy.flush()
                os.fsync(copy.fileno())
                file = folder / _file_name(source, name, named=model_id is not None, sha256=digest.hexdigest())
                os.replace(copy.name, file)
        write_record(file, digest.hexdigest())
    except OSError as error:
        raise ModelFileError(f"{source} cannot be imported: {error.strerror or error}.") from error
    entry = next((model for model in catalogue() if model.file == file.name), None)
    imported = find_installed(entry.id if entry else file.stem)
    if imported is None:
        raise ModelFileError(f"{file} was removed while it was imported; import it again.")
    return imported


def _file_name(source: Path, name: str, *, named: bool, sha256: str) -> str:
    same = next((model for model in catalogue() if model.sha256 == sha256), None)
    if same is not None:
        if named and name != same.id:
            raise ModelFileError(f"{source} is {same.id} by its SHA-256, not {name}.")
        return same.file
    claimed = find(name) or next((model for model in catalogue() if model.file == f"{name}.gguf"), None)
    if claimed is not None:
        raise ModelFileError(
            f"{source} is not {claimed.id}: its SHA-256 is {sha256}, not {claimed.sha256}; "
            "`--name` stores it under another name."
        )
    return f"{name}.gguf"
