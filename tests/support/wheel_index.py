"""A package index of tiny wheels in a folder, and a model that they carry, so that the real pip runs without a network.

Knows the store's records, not what is tested.
"""

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from editor_engine.store import catalogue, importing, installed, smaller
from editor_engine.store.catalogue import CatalogueModel, IndexSource, Part

PART_BYTES = 70_001


def content(length: int = 3 * PART_BYTES - 5) -> bytes:
    """A file of `length` bytes that begins like a GGUF file and repeats nowhere near a part's size."""
    blocks = (hashlib.sha256(number.to_bytes(4, "big")).digest() for number in range(length // 32 + 1))
    return (b"GGUF" + b"".join(blocks))[:length]


def write_wheel(folder: Path, distribution: str, member: str, data: bytes) -> Path:
    """A wheel that pip accepts, with `data` as `member`."""
    stem = f"{distribution.replace('-', '_')}-1.0"
    path = folder / f"{stem}-py3-none-any.whl"
    files = {
        member: data,
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n".encode(),
        f"{stem}.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/RECORD": b"",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)  # a fixed date: the same bytes give the same wheel
    return path


def index_model(folder: Path, data: bytes | None = None) -> CatalogueModel:
    """Write the wheels of a model into `folder` and return its catalogue entry (no hub)."""
    data = content() if data is None else data
    folder.mkdir(exist_ok=True)
    parts = []
    for number, start in enumerate(range(0, len(data), PART_BYTES), 1):
        piece, name = data[start : start + PART_BYTES], f"redraft-test-part{number}"
        wheel = write_wheel(folder, name, f"part{number}/data.bin", piece)
        hashes = [hashlib.sha256(some).hexdigest() for some in (piece, wheel.read_bytes())]
        parts.append(Part(name, "1.0", f"part{number}/data.bin", len(piece), *hashes))
    return CatalogueModel(
        id="tiny",
        file="tiny-q4.gguf",
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        licence="Apache-2.0",
        licence_notice=None,
        kv_bytes_per_token=1,
        for_tests=False,
        repository=None,
        revision=None,
        index=IndexSource("a stranger", tuple(parts)),
    )


def use_catalogue(patch: pytest.MonkeyPatch, *models: CatalogueModel) -> None:
    """Make `models` the whole catalogue."""
    for module in (catalogue, installed, importing, smaller):
        patch.setattr(module, "catalogue", lambda: models)


def use_index(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let pip see the wheels of `folder` and nothing else."""
    patch.setenv("PIP_CONFIG_FILE", "/dev/null")
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(folder))


def on_hub(model: CatalogueModel) -> CatalogueModel:
    """The same model, as one that the hub carries too."""
    return replace(model, repository="owner/tiny", revision="0123456789abcdef0123456789abcdef01234567")
