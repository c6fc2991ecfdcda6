"""The machine interface (`--json`): one JSON object a line, the last one of type `result`, nothing else on stdout.

Knows the shape of a line, not what the program does. Invariant: unknown is null, never 0; text that is not valid
Unicode (file names with stray bytes) is written with JSON's own escapes, never dropped.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import PurePath
from typing import Any, TextIO

from app.errors import AppError, ExitCode, foreseen

SCHEMA_VERSION = 1
"""Fields are only ever added within a version."""

OUTCOMES = {
    ExitCode.REFUSED: "refused",
    ExitCode.UNCHANGED: "unchanged",
    ExitCode.CONFLICT: "conflict",
    ExitCode.INTERRUPTED: "cancelled",
}
"""Exit code of an error -> outcome; every other error is `failed`."""


def plain_data(value: object) -> Any:
    """Dataclasses, enums, paths and tuples as JSON's own kinds."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(plain_data(key)): plain_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_data(item) for item in value]
    return value


class JsonWriter:
    """Writes lines to a stream; every line has `schema_version`, `type` and `t_ms` since the writer was made."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._started = clock()
        self.ended = False
        """The result has been written."""

    def write(self, kind: str, **fields: object) -> None:
        """One line, flushed at once: a reader on the other end of a pipe follows live."""
        line = {
            "schema_version": SCHEMA_VERSION,
            "type": kind,
            "t_ms": round((self._clock() - self._started) * 1000, 1),
            **{name: plain_data(value) for name, value in fields.items()},
        }
        self._stream.write(json.dumps(line, ensure_ascii=True, allow_nan=False) + "\n")
        self._stream.flush()

    def result(self, *, outcome: str, exit_code: int, **fields: object) -> None:
        """The last line, of one shape for every command; `error` is {code, message} or None."""
        shape: dict[str, object] = {"error": None, "hunks": None, "stats": None, "warnings": [], "receipt": None}
        self.ended = True
        self.write("result", outcome=outcome, exit_code=int(exit_code), **{**shape, **fields})

    def failed(self, error: AppError, **fields: object) -> None:
        """The last line of what did not work."""
        said = {"code": error.code, "message": str(error)}
        outcome = OUTCOMES.get(error.exit_code, "failed")
        self.result(outcome=outcome, exit_code=error.exit_code, error=said, **fields)


@contextmanager
def ending_in_a_result(writer: JsonWriter | None, **fields: object) -> Iterator[None]:
    """Inside, whatever goes wrong is told in a result, with `fields`, if none was written; then it goes on its way."""
    try:
        yield
    except BrokenPipeError:  # nobody reads what we would say about it
        raise
    except (Exception, KeyboardInterrupt) as error:
        if writer is not None and not writer.ended:
            writer.failed(foreseen(error), **fields)
        raise
