"""Requests, events, errors and the engine's own facts as JSON's plain kinds, and back: for a pipe or a server.

Knows the records and nothing of what carries them. Light on purpose (no numpy, no C++). The codec reads the records'
own type hints, so a field added to a record travels without a change here. Invariant: `X_from_json(X_to_json(value))`
equals `value`, and whatever else comes in ends in a value of the right types or in the one error each reader names.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar, Union

from editor_engine.errors import (
    CancelledError,
    ContextOverflowError,
    EngineError,
    FetchError,
    ModelFileError,
    ModelMissingError,
    NumericsError,
    OptionError,
    OutOfMemoryError,
    ProtocolError,
    RequestError,
    UnsupportedModelError,
)
from editor_engine.events import EngineEvent, Finished, Pass, Prefill, Started, Text
from editor_engine.requests import CompletionRequest

if TYPE_CHECKING:  # a record of the engine's heavy side
    from editor_engine.models.target import ModelInfo

Record = TypeVar("Record")

_EVENTS: dict[str, type[EngineEvent]] = {
    "started": Started,
    "prefill": Prefill,
    "pass": Pass,
    "text": Text,
    "finished": Finished,
}
"""The word under `type` and the event it stands for."""

_EVENT_WORDS = {kind: word for word, kind in _EVENTS.items()}

_ERRORS: dict[str, type[EngineError]] = {
    "model_missing": ModelMissingError,
    "model_file": ModelFileError,
    "unsupported_model": UnsupportedModelError,
    "out_of_memory": OutOfMemoryError,
    "numerics": NumericsError,
    "context_length_exceeded": ContextOverflowError,  # the word other OpenAI-compatible servers use
    "fetch": FetchError,
    "option": OptionError,
    "request": RequestError,
    "cancelled": CancelledError,
    "protocol": ProtocolError,
    "engine": EngineError,
}
"""Stable word and the error it stands for."""

_ERROR_WORDS = {kind: word for word, kind in _ERRORS.items()}

CHAT_FIELDS = frozenset({"messages", "max_tokens", "stop", "temperature", "seed"})
"""Fields of a request that OpenAI's chat completions have under the same name."""

EXTENSION_FIELDS = tuple(field.name for field in dataclasses.fields(CompletionRequest) if field.name not in CHAT_FIELDS)
"""The others: what the `redraft` object of a chat completion carries."""


@dataclass(frozen=True)
class EngineIdentity:
    """What two ends of a wire compare before they trust each other, and what a front end shows."""

    version: str
    """Of the program that runs the engine."""
    contract_version: int
    """Of the arithmetic (exactness contract)."""
    model_id: str
    """Catalogue id, or the file's name."""
    sha256: str
    """Of the model file."""
    device: str
    threads: int
    isa: str
    context_length: int
    """Tokens that prompt and reply share."""
    backend: str = "native"
    """Whose arithmetic it is: `native` or `transformers`."""
    guarantee: str = "exact"
    """`exact`, `exact when greedy` or `not guaranteed`, as in ModelInfo."""
    loaded_as: str = ""
    """What was asked of the load (`EngineConfig.loaded_as`)."""
    notes: tuple[str, ...] = ()
    """What happened at load that a user should know."""
    choice: str | None = None
    """Which model was chosen and why, a sentence; None where the user named one."""


class _MismatchError(Exception):
    """A value is not of the type its place asks for; the sentence names the place."""


def event_to_json(event: EngineEvent) -> dict[str, Any]:
    """The event's fields, and under `type` its word: started, prefill, pass, text or finished."""
    return {"type": _EVENT_WORDS[type(event)], **_plain(event)}


def event_from_json(data: object) -> EngineEvent:
    """The event. Fields that are not known are passed over. Raises ProtocolError on anything else."""
    word = data.get("type") if isinstance(data, Mapping) else None
    if not isinstance(word, str) or word not in _EVENTS:
        raise ProtocolError("The engine said something that is no event of this version of Redraft.")
    return _read(_EVENTS[word], data)


def request_to_json(request: CompletionRequest) -> dict[str, Any]:
    """Every field of the request."""
    return {**_plain(request)}


def request_from_json(data: object) -> CompletionRequest:
    """The request; fields that are left out have their defaults. Raises RequestError, on unknown fields too."""
    if not isinstance(data, Mapping):
        raise RequestError("A request is a JSON object.")
    try:
        return _record(CompletionRequest, data, "", strict=True)
    except _MismatchError as error:
        raise RequestError(str(error)) from None


def extension_to_json(request: CompletionRequest) -> dict[str, Any]:
    """The `redraft` object of a chat completion: what OpenAI's own fields cannot say of this request."""
    return {name: _plain(getattr(request, name)) for name in EXTENSION_FIELDS}


def identity_of(info: "ModelInfo", notes: tuple[str, ...], model_id: str, choice: str | None = None) -> EngineIdentity:
    """The identity of an engine in this process."""
    return EngineIdentity(
        version=version("redraft"),
        contract_version=info.contract_version,
        model_id=model_id,
        sha256=info.sha256,
        device=info.device,
        threads=info.threads,
        isa=info.isa,
        context_length=info.context_length,
        backend=info.backend,
        guarantee=info.guarantee,
        loaded_as=info.loaded_as,
        notes=notes,
        choice=choice,
    )


def identity_to_json(identity: EngineIdentity) -> dict[str, Any]:
    """Every field."""
    return {**_plain(identity)}


def identity_from_json(data: object) -> EngineIdentity:
    """The identity. Fields that are not known are passed over. Raises ProtocolError on anything else."""
    return _read(EngineIdentity, data)


def error_to_json(error: EngineError) -> dict[str, str]:
    """{code, message}: a stable word, and the sentence for the user."""
    word = next(_ERROR_WORDS[kind] for kind in type(error).__mro__ if kind in _ERROR_WORDS)
    return {"code": word, "message": str(error)}


def error_from_json(data: object) -> EngineError:
    """The error to raise on this end; EngineError where the word is not known. Never raises."""
    code = data.get("code") if isinstance(data, Mapping) else None
    message = data.get("message") if isinstance(data, Mapping) else None
    kind = _ERRORS.get(code, EngineError) if isinstance(code, str) else EngineError
    return kind(message if isinstance(message, str) and message else "The engine failed and did not say why.")


def _read(kind: type[Record], data: object) -> Record:
    try:
        return _record(kind, data, "", strict=False)
    except _MismatchError as error:
        raise ProtocolError(f"The engine's answer is damaged: {error}") from None


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _record(kind: type[Record], data: object, where: str, *, strict: bool) -> Record:
    if not isinstance(data, Mapping):
        raise _MismatchError(f"{_shown(where)} must be an object.")
    found: dict[str, Any] = {}
    hints = _hints(kind)  # type: ignore[arg-type]  # a class is hashable; mypy asks again for type variables
    for name, value in data.items():
        if name in hints:
            found[name] = _value(hints[name], value, f"{where}.{name}", strict)
        elif strict:
            raise _MismatchError(f"{_shown(where)} has no field {name!r}.")
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]  # every record here is a dataclass
        missing = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if missing and field.name not in found:
            raise _MismatchError(f"{_shown(where)} lacks the field {field.name!r}.")
    return kind(**found)


def _value(kind: Any, value: object, where: str, strict: bool) -> Any:
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        inner = [part for part in typing.get_args(kind) if part is not type(None)]
        return None if value is None else _value(inner[0], value, where, strict)
    if origin is tuple:
        return _tuple(typing.get_args(kind), value, where, strict)
    if origin is dict:
        key_kind, item_kind = typing.get_args(kind)
        if not isinstance(value, Mapping):
            raise _MismatchError(f"{_shown(where)} must be an object.")
        return {
            _value(key_kind, key, where, strict): _value(item_kind, item, f"{where}.{key}", strict)
            for key, item in value.items()
        }
    if dataclasses.is_dataclass(kind):
        return _record(typing.cast(type[Any], kind), value, where, strict=strict)
    return _scalar(kind, value, where)


def _tuple(kinds: tuple[Any, ...], value: object, where: str, strict: bool) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise _MismatchError(f"{_shown(where)} must be a list.")
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise _MismatchError(f"{_shown(where)} must have {len(kinds)} entries.")
    return tuple(
        _value(kind, item, f"{where}[{at}]", strict) for at, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _scalar(kind: Any, value: object, where: str) -> Any:
    if issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            raise _MismatchError(f"{_shown(where)} must be one of {', '.join(kind)}.") from None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
    # bool is an int to Python and not to JSON; NaN and infinities are not JSON at all, though Python reads them.
    wrong_bool = isinstance(value, bool) and kind is not bool
    if wrong_bool or not isinstance(value, kind) or (isinstance(value, float) and not math.isfinite(value)):
        words = {str: "text", int: "a whole number", float: "a finite number", bool: "true or false"}
        raise _MismatchError(f"{_shown(where)} must be {words[kind]}.")
    return value


def _shown(where: str) -> str:
    return f"`{where.removeprefix('.')}`" if where else "It"
