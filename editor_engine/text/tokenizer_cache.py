"""Keeps a built tokenizer on disk, so that a start reads one file instead of the tables of the GGUF.

Knows nothing of what a tokenizer does. Invariant: a file that is damaged, of another version or of another model is
treated as absent, and a file that is there is whole (written aside, synced, renamed).
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from editor_engine.atomic_file import write_atomically

FILE_NAME = "tokenizer.jsonl"
VERSION = 1
"""Raised when the meaning of the file changes; older files are built anew."""


def read_cache(folder: Path) -> tuple[Mapping[str, object], str] | None:
    """(facts, tokenizer JSON) of `folder`; None when there is no file or it is not one of ours, whole."""
    try:
        head, _, body = (folder / FILE_NAME).read_bytes().partition(b"\n")
    except OSError:
        return None  # absent, or unreadable: building it again is the right answer to both
    try:
        facts = json.loads(head)
        text = body.decode("utf-8")
    except ValueError:
        return None
    if not isinstance(facts, dict) or facts.get("version") != VERSION:
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
