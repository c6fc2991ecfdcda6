"""Models that are folders, by their names on the model hub: where they lie, and whether they are what was fetched.

    <models>/hf/<publisher>--<name>[@<revision>]/     fetched by `redraft models pull`, with a record `.redraft.json`
    the cache of Hugging Face's own tools             read where a model is there, never written to

Knows nothing of what is in a checkpoint or how it is fetched. Invariant: a folder in the first place appears only
whole; its record names every file with size and SHA-256, and holds while no file has been written to since.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from editor_engine.atomic_file import write_atomically
from editor_engine.config import models_dir
from editor_engine.errors import ModelFileError, ModelMissingError
from editor_engine.foreign_json import read_bytes, read_object
from editor_engine.store.hashing import OnBytes, hash_file

RECORD = ".redraft.json"
_REF_LIMIT = 1 << 10

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.]|-(?!-)){0,95}"
_HUB_ID = re.compile(rf"({_NAME}/{_NAME})(?:@([A-Za-z0-9_.][A-Za-z0-9_./-]{{0,199}}))?")


@dataclass(frozen=True)
class HubId:
    """A model on the hub as a user names it: `publisher/name` or `publisher/name@revision`."""

    repository: str
    revision: str | None
    """Branch, tag or commit; None: the main branch."""

    def __str__(self) -> str:
        return self.repository if self.revision is None else f"{self.repository}@{self.revision}"

    @property
    def folder(self) -> Path:
        """Where it lies once it was fetched."""
        revision = "" if self.revision is None else "@" + quote(self.revision, safe="")
        return hub_dir() / (self.repository.replace("/", "--") + revision)


@dataclass(frozen=True)
class HubFolder:
    """A folder that was fetched, or put where a fetch would have."""

    id: str
    path: Path
    bytes: int
    """Of all its files."""
    sha256: str | None
    """Over names and hashes of its files, from a record that still holds; None: no record, or written to since."""


def hub_dir() -> Path:
    """Folder of the fetched folders."""
    return models_dir() / "hf"


def parse_hub_id(text: str) -> HubId | None:
    """The id that `text` spells; None where it spells none, or a file's path."""
    match = _HUB_ID.fullmatch(text)
    if match is None or ".." in text or text.endswith((".", "/", "-", ".gguf")):
        return None
    return HubId(match[1], match[2])


def hub_folders() -> list[HubFolder]:
    """Every folder in its place, by name. Hashes nothing. Raises ModelMissingError."""
    try:
        paths = sorted(path for path in hub_dir().iterdir() if path.is_dir() and not path.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ModelMissingError(f"The folder {hub_dir()} cannot be read: {error.strerror}.") from error
    return [folder for path in paths if (folder := _folder(path)) is not None]


def find_folder(hub_id: HubId) -> Path | None:
    """The folder to load: the one that was fetched, else one in the cache of Hugging Face's own tools."""
    if hub_id.folder.is_dir():
        return hub_id.folder
    place = _hugging_face_cache() / ("models--" + hub_id.repository.replace("/", "--"))
    revision = hub_id.revision or "main"
    try:
        commit = read_bytes(place / "refs" / revision, _REF_LIMIT).decode("ascii").strip()
    except (ModelMissingError, ModelFileError, ValueError):
        commit = revision  # no branch or tag that was fetched; it may be a commit
    snapshot = place / "snapshots" / commit
    return snapshot if re.fullmatch(r"[0-9a-f]{7,64}", commit) and snapshot.is_dir() else None


def _hugging_face_cache() -> Path:
    """Where huggingface_hub keeps what it fetches; asking it costs 0.2 s."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if place := os.environ.get(variable):
            return Path(place).expanduser()
    home = os.environ.get("HF_HOME")
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(home).expanduser() if home else Path(cache or "~/.cache").expanduser() / "huggingface") / "hub"


def write_folder_record(folder: Path, revision: str, hashes: Mapping[str, str]) -> None:
    """Remember the SHA-256 of each of the folder's files as they are now, and the commit they are of."""
    files = {}
    for name, sha256 in sorted(hashes.items()):
        status = (folder / name).stat()
        files[name] = {"sha256": sha256, "bytes": status.st_size, "mtime_ns": status.st_mtime_ns}
    write_atomically(folder / RECORD, json.dumps({"revision": revision, "files": files}).encode())


def verify_folder(path: Path, on_bytes: OnBytes = lambda done: None) -> HubFolder:
    """Hash every file of the record again and renew it. Raises ModelFileError for a damaged folder or one of no record.

    A damaged one loses its record, so that nothing takes it for whole.
    """
    revision, files = _record(path)
    if not files:
        raise ModelFileError(f"{path} has no record of what was fetched, so nobody can say whether it is whole.")
    done = 0

    def on_read(read: int) -> None:
        on_bytes(done + read)

    for name, facts in files.items():
        sha256 = hash_file(path / name, on_read)
        if sha256 != facts["sha256"]:
            (path / RECORD).unlink(missing_ok=True)
            raise ModelFileError(f"{path / name} is damaged: its SHA-256 is {sha256}, not {facts['sha256']}.")
        done += (path / name).stat().st_size
    write_folder_record(path, revision, {name: str(facts["sha256"]) for name, facts in files.items()})
    folder = _folder(path)
    if folder is None:
        raise ModelFileError(f"{path} was renamed while it was verified.")
    return folder


def remove_folder(path: Path) -> int:
    """Delete a folder in its place; returns bytes freed. Raises ModelFileError when the system refuses."""
    freed = _size(path)
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be removed: {error.strerror}.") from error
    return freed


def _folder(path: Path) -> HubFolder | None:
    """What lies at `path`; None where its name is none of ours."""
    name, _, revision = path.name.partition("@")
    hub_id = parse_hub_id(name.replace("--", "/") + (f"@{unquote(revision)}" if revision else ""))
    if hub_id is None:
        return None
    digest = hashlib.sha256()
    _, files = _record(path)
    for file, facts in files.items():
        try:
            status = (path / file).stat()
        except OSError:
            files = {}
            break
        if (status.st_size, status.st_mtime_ns) != (facts["bytes"], facts["mtime_ns"]):
            files = {}
            break
        digest.update(f"{file}\0{facts['sha256']}\n".encode())
    return HubFolder(str(hub_id), path, _size(path), digest.hexdigest() if files else None)


def _record(path: Path) -> tuple[str, dict[str, dict[str, object]]]:
    """(commit, file -> facts) of the folder's record; no files where there is none of ours."""
    try:
        record = read_object(path / RECORD)
        files = {
            str(name): {key: facts[key] for key in ("sha256", "bytes", "mtime_ns")}
            for name, facts in record["files"].items()
            if Path(name).name == name
        }
        return str(record["revision"]), files
    except (ModelFileError, ModelMissingError, KeyError, TypeError, AttributeError):
        return "", {}  # no record, or not one of ours: nobody vouches for the folder


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
