"""Reads JSON that someone else wrote: a model's configuration, tokenizer, header, or what we kept ourselves.

Knows nothing of what is in it. Light. Invariant: whatever the bytes are, the answer is a JSON object or an error that
names the file; nothing larger than the caller's limit is read, and nobody waits for a pipe.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from editor_engine.errors import ModelFileError, ModelMissingError

CONFIG_LIMIT = 16 << 20
"""Most bytes of a configuration, or of what we keep ourselves; real ones have a few thousand."""


def read_object(path: Path, limit: int = CONFIG_LIMIT) -> dict[str, Any]:
    """The JSON object in a file of at most `limit` bytes.

    Raises ModelMissingError where there is no such file, ModelFileError for all else.
    """
    return parse_object(path.name, read_bytes(path, limit))


def read_object_if_there(path: Path, limit: int = CONFIG_LIMIT) -> dict[str, Any]:
    """As `read_object`; an empty object where there is no such file."""
    try:
        return read_object(path, limit)
    except ModelMissingError:
        return {}


def read_kept(path: Path) -> dict[str, Any]:
    """As `read_object`, of what an earlier run kept and can be done without: empty where it is lost or damaged."""
    try:
        return read_object(path)
    except (ModelMissingError, ModelFileError):
        return {}


def read_bytes(path: Path, limit: int) -> bytes:
    """All bytes of a regular file, at most `limit` of them. Raises as `read_object`."""
    with open_regular(path) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise ModelFileError(f"{path.name} has more than {limit} bytes, which no such file has; it is damaged.")
    return data


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """The open file, while it is read. Raises ModelMissingError, and ModelFileError also for what fails inside."""
    try:
        # Without O_NONBLOCK a pipe under this name would keep us for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise ModelFileError(f"{path} is not a regular file.")
        with os.fdopen(handle, "rb") as stream:
            yield stream
    except FileNotFoundError as error:
        raise ModelMissingError(f"There is no file {path}.") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from error


def parse_object(name: str, data: bytes) -> dict[str, Any]:
    """The JSON object that `data` spells; `name` stands in the sentence. Raises ModelFileError."""
    try:
        value = json.loads(data, parse_constant=_refuse_constant, object_pairs_hook=_without_twins)
    except RecursionError as error:
        raise ModelFileError(f"{name} is damaged: it is nested too deeply.") from error
    except ValueError as error:  # no JSON, no UTF-8, or a number of thousands of digits
        raise ModelFileError(f"{name} is damaged: {error}.") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{name} is damaged: it holds no JSON object.")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values under one name a reader may take either, so the file does not mean one thing."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twin = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"it has {twin[:60]!r} twice")
    return found


def count(name: str, settings: Mapping[str, object], *keys: str) -> int | None:
    """The first of `keys` that is set, a number from 1 to 2^31 - 1; None where none is. Raises ModelFileError."""
    for key in keys:
        value = settings.get(key)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**31:
            raise ModelFileError(f"{name} is damaged: {key} is {shown(value)}, which cannot be.")
        return value
    return None


def shown(value: object) -> str:
    """A value for a sentence: short, whatever it is."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
