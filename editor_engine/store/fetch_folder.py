"""Brings a model that is a folder from the model hub: safetensors, JSON, tokenizer, and nothing that could be executed.

Knows which files make a checkpoint; nothing of what is in them. Sends no token. Invariant: the folder appears under its
name only when every file has the size and the hash the hub told before; whenever a pull is killed, the next continues.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from editor_engine.atomic_file import flush_folder
from editor_engine.errors import FetchError, ModelFileError
from editor_engine.foreign_json import read_bytes
from editor_engine.store import hub
from editor_engine.store.continued import download
from editor_engine.store.hashing import hash_file
from editor_engine.store.hub_folders import HubId, hub_dir, verify_folder, write_folder_record
from editor_engine.store.installed import InstalledModel, find_installed
from editor_engine.store.sources import Fetching, Report, alone, require_space

FREE_LICENCES = frozenset({"apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "isc", "cc0-1.0", "unlicense", "zlib"})
"""As the hub writes them; any other, or none, is for the user to agree to."""

_WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?")
_TEXT = frozenset(
    {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    | {"added_tokens.json", "vocab.json", "merges.txt", "tokenizer.model", "chat_template.jinja", "chat_template.json"}
    | {"LICENSE", "LICENSE.txt", "LICENSE.md"}
)
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SMALL = 64 << 20  # what git keeps itself; the hub puts larger files elsewhere


@dataclass(frozen=True)
class HubFile:
    """A file of a repository."""

    name: str
    """At its top level."""
    bytes: int
    sha256: str | None
    """Of a large file; None for one that git itself keeps."""
    git_sha1: str | None
    """Git's name of a small file's content."""


@dataclass(frozen=True)
class HubRepository:
    """What would be fetched."""

    id: HubId
    commit: str
    files: tuple[HubFile, ...]
    """Small ones first."""
    licence: str | None
    """As the model card names it; None where it does not."""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def is_free(self) -> bool:
        """Its licence asks for no agreement."""
        return self.licence in FREE_LICENCES


def ask_hub(hub_id: HubId, endpoint: str | None = None) -> HubRepository:
    """What the hub has under that name. `endpoint` as for the catalogue's models.

    Raises FetchError: out of reach, no such model, terms to agree to there, or nothing that would be loaded.
    """
    # An HTTP client comes with it: 0.3 s that only a fetch pays.
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        with hub.hub_errors():
            found = HfApi(endpoint=endpoint, token=False).model_info(
                hub_id.repository, revision=hub_id.revision, files_metadata=True, timeout=hub.ANSWER_SECONDS
            )
    except FetchError as error:
        if isinstance(error.__cause__, GatedRepoError):
            raise _gated(hub_id) from error
        if isinstance(error.__cause__, RepositoryNotFoundError | RevisionNotFoundError):
            raise FetchError(f"The model hub has no {hub_id} that may be fetched without an account.") from error
        raise FetchError(f"{hub_id} could not be fetched from the model hub: {str(error).rstrip('.')}.") from error
    if found.gated:
        raise _gated(hub_id)
    if not _COMMIT.fullmatch(found.sha or ""):
        raise FetchError(f"The model hub does not say which commit of {hub_id} it has.")
    files = [
        HubFile(sibling.rfilename, sibling.size, sibling.lfs.sha256 if sibling.lfs else None, sibling.blob_id)
        for sibling in found.siblings or ()
        if sibling.size is not None
    ]
    card = found.card_data
    licence = card.get("license") if card is not None else None
    return HubRepository(hub_id, str(found.sha), _wanted(hub_id, files), licence if isinstance(licence, str) else None)


def _gated(hub_id: HubId) -> FetchError:
    return FetchError(
        f"{hub_id} has terms that must be agreed to on the model hub: do so there, fetch it with `hf download "
        f"{hub_id.repository}`, and it is found under the same name."
    )


def _wanted(hub_id: HubId, files: Sequence[HubFile]) -> tuple[HubFile, ...]:
    names = {file.name for file in files}
    if "adapter_config.json" in names:
        raise FetchError(f"{hub_id} is a PEFT adapter, not a whole model: fetch its base model, and merge them.")
    weights = [file for file in files if _WEIGHTS.fullmatch(file.name)]
    if "model.safetensors" in names:  # shards beside it would be a second copy
        weights = [file for file in weights if file.name == "model.safetensors"]
    if not any(file.name.endswith(".safetensors") for file in weights):
        pickled = any(name.endswith(_PICKLES) for name in names)
        found = "only pickled weights, which can run any code when they are opened" if pickled else "no safetensors"
        raise FetchError(f"{hub_id} has {found}; only safetensors are fetched. Name another revision or model.")
    text = [file for file in files if file.name in _TEXT]
    return tuple(sorted([*text, *weights], key=lambda file: (file.bytes, file.name)))


def pull_folder(repository: HubRepository, report: Report, endpoint: str | None = None) -> InstalledModel:
    """Fetch what `ask_hub` found, unless it is here and whole. Raises FetchError."""
    target = repository.id.folder
    try:
        hub_dir().mkdir(parents=True, exist_ok=True)
        with alone(target.name, str(repository.id), hub_dir(), report):
            if not _is_whole(target):
                _fetch(repository, target, report, endpoint)
    except OSError as error:
        raise FetchError(f"{repository.id} cannot be stored in {hub_dir()}: {error.strerror or error}.") from error
    entry = find_installed(str(repository.id))
    if entry is None:
        raise FetchError(f"{target} was removed while it was fetched; pull again.")
    return entry


def _is_whole(target: Path) -> bool:
    try:
        return target.is_dir() and verify_folder(target).sha256 is not None
    except ModelFileError:
        return False  # damaged, or nobody knows: it is fetched again and replaced


def _fetch(repository: HubRepository, target: Path, report: Report, endpoint: str | None) -> None:
    from huggingface_hub import hf_hub_url  # as in `ask_hub`

    scratch = target.with_name(f".{target.name}.part")
    scratch.mkdir(exist_ok=True)
    require_space(scratch, repository.bytes - sum(_here(scratch, file) for file in repository.files))
    report(Fetching(hub.SOURCE, 0, repository.bytes))
    done, hashes = 0, {}

    def on_bytes(read: int) -> None:
        report(Fetching(hub.SOURCE, min(done + read, repository.bytes), repository.bytes))

    for file in repository.files:
        part = _part(scratch, file)
        url = hf_hub_url(repository.id.repository, file.name, revision=repository.commit, endpoint=endpoint)
        try:
            with hub.hub_errors():
                download(url, part, file.bytes, on_bytes)
        except FetchError as error:
            reason = str(error).rstrip(".")
            raise FetchError(
                f"{file.name} of {repository.id} could not be fetched from the model hub: {reason}. "
                "What has arrived is kept; pull again."
            ) from error
        hashes[file.name] = _checked(part, file, repository.id)
        done += file.bytes
        on_bytes(0)
    for file in repository.files:
        os.replace(_part(scratch, file), scratch / file.name)
    _settle(scratch, target, repository.commit, hashes)


def _part(scratch: Path, file: HubFile) -> Path:
    """Where a file lies until all have come; its name says what it will be, so that no other commit's is continued."""
    return scratch / f".{file.name}.{(file.sha256 or file.git_sha1 or '')[:16]}"


def _here(scratch: Path, file: HubFile) -> int:
    path = _part(scratch, file)
    return path.stat().st_size if path.is_file() else 0


def _checked(path: Path, file: HubFile, hub_id: HubId) -> str:
    """The SHA-256 of an arrived file. Raises FetchError for one that is not what the hub said; it is then removed."""
    sha256 = hash_file(path)
    right = path.stat().st_size == file.bytes and file.sha256 in (None, sha256)
    if right and file.sha256 is None and file.git_sha1 is not None:
        data = read_bytes(path, _SMALL)
        right = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest() == file.git_sha1
    if not right:
        path.unlink()
        raise FetchError(f"{file.name} of {hub_id} did not arrive as the model hub describes it; pull again.")
    return sha256


def _settle(scratch: Path, target: Path, commit: str, hashes: dict[str, str]) -> None:
    """Put a folder whose files are right under its name, durably, and nothing else with them."""
    for path in scratch.iterdir():
        if path.name not in hashes:  # of an earlier commit
            path.unlink()
    for name in hashes:
        with (scratch / name).open("rb") as stream:
            os.fsync(stream.fileno())
    write_folder_record(scratch, commit, hashes)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(scratch, target)
    flush_folder(target.parent)


def discard_partial_folder(hub_id: HubId, report: Report) -> int:
    """Delete what a stopped pull left; returns bytes freed. Waits for a pull that is running."""
    scratch = hub_id.folder.with_name(f".{hub_id.folder.name}.part")
    if not scratch.is_dir():
        return 0
    with alone(hub_id.folder.name, str(hub_id), hub_dir(), report):
        freed = sum(path.stat().st_size for path in scratch.rglob("*") if path.is_file())
        shutil.rmtree(scratch, ignore_errors=True)
    return freed
