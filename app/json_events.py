"""The machine interface (`--json`): one JSON object a line, the last one of type `result`, nothing else on stdout.

Knows the shape of a line, not what the program does. Invariant: unknown is null, never 0; text that is not valid
Unicode (file names with stray bytes) is written with JSON's own escapes, never dropped.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any, TextIO

SCHEMA_VERSION = 1
"""Fields are only ever added within a version."""


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

    def result(
        self,
        *,
        outcome: str,
        exit_code: int,
        error: Mapping[str, str] | None = None,
        **fields: object,
    ) -> None:
        """The last line. `error` is {code, message} or None."""
        self.write("result", outcome=outcome, exit_code=int(exit_code), error=error, **fields)
