"""The one door to an engine: whoever decodes, a front end sees a description, token counts and a stream of events.

Knows the light records of the engine (requests, events) and nothing of how they travel; `app/clients/` has the ways.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from editor_engine.events import EngineEvent
from editor_engine.requests import CancelFlag, CompletionRequest


@dataclass(frozen=True)
class EngineDescription:
    """Which engine decodes, and what it promises."""

    model_id: str
    sha256: str
    """Of the model file."""
    device: str
    threads: int
    exactness: str
    """`exact`, `checked` or `not guaranteed`."""
    policy: str
    """Name of the policy that output is exact under; `strict` is none."""
    context_length: int
    """Tokens that prompt and reply share."""
    notes: tuple[str, ...] = ()
    """What happened at load that a user should know (a fallback, a cache that could not be written)."""


@dataclass(frozen=True)
class TokenCounts:
    """Exact token counts of a request before it runs."""

    prompt: int
    """Chat prompt and the reply's opening."""
    source: int
    """The text that the reply is expected to follow."""


class EngineClient(Protocol):
    """An engine, however it is reached. Errors of any call are `app.errors.AppError`s."""

    async def describe(self) -> EngineDescription:
        """Load or reach the engine, if that has not happened yet, and say what it is."""

    async def count(self, request: CompletionRequest) -> TokenCounts:
        """Count the request's tokens without decoding."""

    def complete(self, request: CompletionRequest, cancel: CancelFlag) -> AsyncGenerator[EngineEvent, None]:
        """Decode; the last event is Finished. Closing the generator stops the work first."""

    async def close(self) -> None:
        """Let go of the engine; safe to call twice."""
