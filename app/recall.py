"""What was asked and opened before: instructions and files, newest first, so that nobody types them twice.

One small private file in the state folder. Knows nothing of screens. Invariant: bounded, without repetitions, and never
an error: a lost or damaged file means that nothing is remembered.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from app.errors import AppError
from app.paths import state_dir
from app.private_files import held, write_private

MOST_INSTRUCTIONS = 200
MOST_FILES = 50
MOST_CHARACTERS = 20_000
"""An instruction longer than this is not remembered: it was pasted, and it would be read at every start."""


@dataclass(frozen=True)
class Recall:
    """What is remembered."""

    instructions: tuple[str, ...] = ()
    """Newest first."""
    files: tuple[str, ...] = ()
    """Absolute paths, newest first; they need not exist any more."""


def recall_file() -> Path:
    """Where it is kept: state/redraft/recall.json."""
    return state_dir() / "recall.json"


def load_recall() -> Recall:
    """What is remembered; nothing where the file is missing or damaged."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        table = json.loads(recall_file().read_bytes())
        if isinstance(table, dict):
            instructions, files = _texts(table.get("instructions")), _texts(table.get("files"))
            return Recall(_kept(instructions, MOST_INSTRUCTIONS), _kept(files, MOST_FILES))
    return Recall()


def remember_instruction(instruction: str) -> None:
    """Put an instruction first; white space at its ends does not make it another one."""
    text = instruction.strip()
    if text and len(text) <= MOST_CHARACTERS:
        _change(lambda old: replace(old, instructions=_kept((text, *old.instructions), MOST_INSTRUCTIONS)))


def remember_file(path: str | os.PathLike[str]) -> None:
    """Put a file first."""
    name = os.path.abspath(path)
    _change(lambda old: replace(old, files=_kept((name, *old.files), MOST_FILES)))


def _change(change: Callable[[Recall], Recall]) -> None:
    """Read, change and write, with other redrafts kept out meanwhile. What cannot be remembered is no loss."""
    with contextlib.suppress(AppError), held(recall_file()):
        new = change(load_recall())
        table = {"instructions": new.instructions, "files": new.files}
        write_private(recall_file(), json.dumps(table).encode("ascii"))


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str) and text] if isinstance(value, list) else []


def _kept(texts: Iterable[str], most: int) -> tuple[str, ...]:
    """The first `most` without repetitions, in order."""
    return tuple(dict.fromkeys(texts))[:most]
