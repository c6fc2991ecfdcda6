"""Reads the task files that `--tasks` names: JSON lines, one object a line, written by anybody.

Knows nothing of what a workload needs of a task. Invariant: whatever the bytes are, the answer is objects with their
line numbers or a RequestError that says which line cannot be used.
"""

from collections.abc import Mapping
from pathlib import Path

from editor_engine.errors import ModelFileError, RequestError
from editor_engine.foreign_json import parse_object

LIMIT = 256 << 20
"""Most bytes of a task file; a thousand edits have some 10 million."""


def numbered_tasks(path: Path) -> list[tuple[int, Mapping[str, object]]]:
    """(number from 1, object) of every line of `path` that is not blank. Raises RequestError."""
    try:
        with path.open("rb") as file:  # a pipe is as good as a file: `--tasks <(head -5 all.jsonl)`
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise RequestError(f"Cannot read the tasks in {path}: {error.strerror or error}.") from error
    if len(data) > LIMIT:
        raise RequestError(f"Cannot read the tasks in {path}: it has more than {LIMIT} bytes.")
    try:
        return [
            (number, parse_object(f"Line {number} of {path}", line))
            for number, line in enumerate(data.split(b"\n"), 1)
            if line.strip()
        ]
    except ModelFileError as error:
        raise RequestError(str(error)) from error
