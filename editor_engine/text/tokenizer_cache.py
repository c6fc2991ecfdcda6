"""Keeps a built tokenizer on disk, so that a start reads one file instead of the tables of the GGUF.

Knows nothing of what a tokenizer does. Invariant: a file that is damaged, of another version or of another model is
treated as absent, and a file that is there is whole (written aside, synced, renamed).
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from editor_engine.atomic_file import write_atomically
from editor_engine.errors import ModelFileError, ModelMissingError
from editor_engine.foreign_json import parse_object, read_bytes

FILE_NAME = "tokenizer.jsonl"
VERSION = 1
"""Raised when the meaning of the file changes; older files are built anew."""
_LIMIT = 256 << 20
"""Most bytes of the file; those of large vocabularies have some 10 million."""


def read_cache(folder: Path) -> tuple[Mapping[str, object], str] | None:
    """(facts, tokenizer JSON) of `folder`; None when there is no file or it is not one of ours, whole."""
    try:
        head, _, body = read_bytes(folder / FILE_NAME, _LIMIT).partition(b"\n")
        facts = parse_object(FILE_NAME, head)
        text = body.decode("utf-8")
    except (ModelMissingError, ModelFileError, UnicodeDecodeError):
        return None  # absent, unreadable or damaged: building it again is the right answer to all
    if facts.get("version") != VERSION:
        return None
    if facts.get("sha256") != hashlib.sha256(body).hexdigest():
        return None
    return facts, text


def write_cache(folder: Path, facts: Mapping[str, object], tokenizer_json: str) -> None:
    """Put both into `folder`, which is made when missing. Raises OSError when the folder cannot be written."""
    body = tokenizer_json.encode("utf-8")
    head = json.dumps({**facts, "version": VERSION, "sha256": hashlib.sha256(body).hexdigest()})
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FILE_NAME, head.encode("ascii") + b"\n" + body, durable=True)
