"""What a server says when it refuses, as one clear sentence for the user.

Knows statuses, and the shapes in which OpenAI, vLLM, llama-server, Ollama and `redraft serve` report errors. Invariant:
no key is in a sentence, even where the server repeats it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_MOST_QUOTED = 300
"""Characters of a server's own words that are passed on."""

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|(length|size|window).{0,20}context|maximum.{0,20}(context|length)"
    r"|too (long|many tokens)",
    re.IGNORECASE | re.DOTALL,
)
_NO_MODEL = re.compile(r"model", re.IGNORECASE)


@dataclass(frozen=True)
class Refusal:
    """An answer other than the one asked for."""

    sentence: str
    status: int
    """HTTP status; 200 for an error inside a stream."""
    code: str | None = None
    """The server's own word."""
    too_long: bool = False
    """Prompt and reply do not fit the context."""
    no_model: bool = False
    """The server has no model of that name."""
    passing: bool = False
    """It may be gone on the next try."""
    wait_s: float | None = None
    """What the server asks to wait; None where it does not say."""


def refusal_of(place: str, status: int, headers: Mapping[str, str], text: str, key: str | None) -> Refusal:
    """The refusal in a response."""
    words, code = _words(text)
    words = _clean(words, key)
    wait = _wait_s(headers)
    too_long = status in (400, 413, 422) and (_known_too_long(code) or bool(_TOO_LONG.search(words)))
    no_model = status in (400, 404) and (code == "model_not_found" or (status == 404 and bool(_NO_MODEL.search(words))))
    return Refusal(
        _sentence(place, status, words, key is not None, wait, too_long, no_model),
        status,
        code,
        too_long,
        no_model,
        status in _PASSING,
        wait,
    )


def refusal_in_stream(place: str, data: object, key: str | None) -> Refusal:
    """The refusal in an event `{"error": ...}`."""
    words, code = _words(json.dumps(data))
    words = _clean(words, key)
    too_long = _known_too_long(code) or bool(_TOO_LONG.search(words))
    return Refusal(f"The engine at {place} failed while it answered: {words}", 200, code, too_long)


def _sentence(
    place: str, status: int, words: str, has_key: bool, wait: float | None, too_long: bool, no_model: bool
) -> str:
    name = f"The engine at {place}"
    if too_long:
        return f"{name} says that prompt and reply are too long for its context: {words}"
    if no_model:
        return f"{name} does not have this model: {words}"
    match status:
        case 401:
            way = "does not accept the key in REDRAFT_ENGINE_KEY" if has_key else "wants a key; set REDRAFT_ENGINE_KEY"
            return f"{name} {way}: {words}"
        case 403:
            return f"{name} forbids the request: {words}"
        case 404:
            return f"There is no OpenAI-compatible server at {place} (404): {words}"
        case 429:
            when = "try again later" if wait is None else f"it asks to wait {wait:.0f} s"
            return f"{name} has too many requests; {when}: {words}"
        case 413:
            return f"{name} says that the request is too large: {words}"
    if 300 <= status < 400:
        return f"{name} sends on to another address ({status}), which is not followed; give that address."
    return f"{name} answered {status}: {words}"


def _words(text: str) -> tuple[str, str | None]:
    """The message in a body, whatever its shape, and the server's own code."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    found = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(found, dict):
        return str(found), None
    message = next((found[name] for name in ("message", "detail", "error") if found.get(name)), text)
    code = next((found[name] for name in ("code", "type") if isinstance(found.get(name), str)), None)
    return message if isinstance(message, str) else json.dumps(message), code


def _clean(words: str, key: str | None) -> str:
    if key:
        words = words.replace(key, "***")
    words = " ".join(words.split()) or "it gives no reason."
    if len(words) > _MOST_QUOTED:
        words = f"{words[:_MOST_QUOTED]}…"
    return words if words.endswith((".", "…", "!", "?")) else f"{words}."


def _known_too_long(code: str | None) -> bool:
    return code in ("context_length_exceeded", "exceed_context_size_error")


def _wait_s(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    now = datetime.now(UTC) if moment.tzinfo else datetime.now()
    return max((moment - now).total_seconds(), 0.0)
