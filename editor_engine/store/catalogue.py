"""The models Redraft knows: facts from catalogue.toml, and which of them suits a machine.

Knows nothing of what is installed or how bytes are fetched. Light: the standard library only, and nothing is read
before it is asked for. Invariant: every file of the catalogue has a size and a SHA-256, so trust never rests on where
the bytes came from.
"""

import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from editor_engine.errors import ModelMissingError
from editor_engine.memory import CHECKED_TOKENS, Need

ENOUGH_MEMORY = 6 * 10**9
"""Bytes of available memory from which the larger default model is sensible."""
ENOUGH_PROCESSORS = 2
LARGER_DEFAULT, SMALLER_DEFAULT = "qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"


@dataclass(frozen=True)
class Part:
    """A piece of a model file, carried as data inside a wheel of the Python package index."""

    distribution: str
    version: str
    member: str
    """Path inside the wheel."""
    bytes: int
    sha256: str
    """Of the member's bytes, lower-case hex."""
    wheel_sha256: str
    """Of the wheel itself, checked before it is opened."""


@dataclass(frozen=True)
class IndexSource:
    """Where the package index carries a model."""

    uploader: str
    """Who published the parts, in their metadata's words; the hash is what is trusted."""
    parts: tuple[Part, ...]
    """In the order in which their bytes make the file."""


@dataclass(frozen=True)
class CatalogueModel:
    """One model."""

    id: str
    file: str
    """Name of the GGUF file in the models folder, and on the hub."""
    bytes: int
    sha256: str
    """Of the whole file, lower-case hex."""
    licence: str
    licence_notice: str | None
    """What must be agreed to before fetching; None for a free licence."""
    kv_bytes_per_token: int
    """KV cache of one token, fp16 keys and values of all layers."""
    for_tests: bool
    """Too small to edit with; tests use it."""
    repository: str | None
    """On the model hub; None: not fetched from there."""
    revision: str | None
    """The commit that is fetched, never a branch."""
    index: IndexSource | None
    """Fallback source; None: the hub only."""

    @property
    def memory_bytes(self) -> int:
        """Memory a load needs, estimated: weights, KV cache of 8192 tokens, workspace."""
        return self.need.bytes(CHECKED_TOKENS)

    @property
    def need(self) -> Need:
        """As far as it is known before the file is opened."""
        return Need(self.id, self.bytes, self.kv_bytes_per_token)


@dataclass(frozen=True)
class DefaultModel:
    """The model to take on a machine where nobody named one, and why."""

    id: str
    reason: str
    """A clause that stands after the id."""


@cache
def catalogue() -> tuple[CatalogueModel, ...]:
    """Every model, smallest first, test models last."""
    table = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text("utf-8"))
    return tuple(_model(dict(row)) for row in table["model"])


def _model(row: dict[str, object]) -> CatalogueModel:
    index = row.pop("index", None)
    source = None
    if isinstance(index, dict):
        source = IndexSource(index["uploader"], tuple(Part(**part) for part in index["part"]))
    optional = {"licence_notice": None, "for_tests": False, "repository": None, "revision": None}
    return CatalogueModel(**{**optional, **row, "index": source})  # type: ignore[arg-type]  # our own file


def find(model_id: str) -> CatalogueModel | None:
    """The model of that id, or None."""
    return next((model for model in catalogue() if model.id == model_id), None)


def require(model_id: str) -> CatalogueModel:
    """The model of that id. Raises ModelMissingError with the known ids."""
    model = find(model_id)
    if model is None:
        raise ModelMissingError(f"No model is called {model_id!r}; known: {', '.join(m.id for m in catalogue())}.")
    return model


def default_model(memory_available: int | None, processors: int, installed: Collection[str]) -> DefaultModel:
    """The larger default where the machine can carry it, else the smaller; an installed one beats a download.

    `memory_available` in bytes, None when unknown; `installed` are ids.
    """
    large = memory_available is not None and memory_available >= ENOUGH_MEMORY and processors >= ENOUGH_PROCESSORS
    memory = "unknown" if memory_available is None else gigabytes(memory_available)
    machine = f"{memory} of memory available, {processors} processor{'s' if processors != 1 else ''}"
    if large and LARGER_DEFAULT in installed:
        return DefaultModel(LARGER_DEFAULT, f"it is installed and suits this machine ({machine})")
    if SMALLER_DEFAULT in installed:
        return DefaultModel(SMALLER_DEFAULT, f"it is installed ({machine})")
    if LARGER_DEFAULT in installed and (memory_available or 0) >= require(LARGER_DEFAULT).memory_bytes:
        return DefaultModel(LARGER_DEFAULT, f"it is installed and fits ({machine})")
    if large:
        return DefaultModel(LARGER_DEFAULT, f"this machine can carry it ({machine})")
    needed = f"the next larger one wants {gigabytes(ENOUGH_MEMORY)} and {ENOUGH_PROCESSORS} processors"
    return DefaultModel(SMALLER_DEFAULT, f"{needed} (here: {machine})")


def gigabytes(size: int) -> str:
    """A size for people, decimal units: `491 MB`, `1.1 GB`."""
    return f"{size / 1e9:.1f} GB" if size >= 999_500_000 else f"{size / 1e6:.0f} MB"
