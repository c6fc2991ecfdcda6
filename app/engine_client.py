"""The one door to an engine: whoever decodes, a front end sees a description, token counts and a stream of events.

Knows the light records of the engine (requests, events) and nothing of how they travel; `app/clients/` has the ways.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from editor_engine.events import EngineEvent
from editor_engine.requests import CancelFlag, CompletionRequest


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do; front ends ask this, never which engine it is."""

    prefill: bool = True
    """The reply can be opened by us. Without it one outer fence is parsed out of the reply."""
    tokenise: bool = True
    """Token counts are exact. Without it they are estimates."""
    region: bool = True
    """A part of a file can be edited; needs `prefill`."""
    prediction: bool = True
    """The source is of use to the engine: it drafts from it."""


@dataclass(frozen=True)
class EngineDescription:
    """Which engine decodes, and what it promises. None is unknown: another program's server need not say."""

    model_id: str
    sha256: str | None
    """Of the model file."""
    device: str | None
    threads: int | None
    exactness: str
    """Of an edit, which is greedy: `exact`, `checked` or `not guaranteed`."""
    policy: str | None
    """Name of the policy that output is exact under; `strict` is none."""
    context_length: int | None
    """Tokens that prompt and reply share."""
    notes: tuple[str, ...] = ()
    """What happened at load that a user should know (a fallback, a cache that could not be written)."""
    choice: str | None = None
    """Which model was chosen and why, a sentence; None where the user named one, or another program chose."""
    capabilities: Capabilities = Capabilities()
    reached: str = "in this process"
    """How the engine is reached, for people and for `start.model` of the machine interface."""
    backend: str | None = None
    """Whose arithmetic it is: `native` or `transformers`."""
    arithmetic: str | None = None
    """Kernels, types and attention: `avx2`, `nf4 (compute bfloat16) sdpa`."""

    @property
    def told(self) -> tuple[str, ...]:
        """All that is said of the engine before it works: the choice, then the notes."""
        return self.notes if self.choice is None else (self.choice, *self.notes)

    @property
    def where(self) -> str | None:
        """The device, and what it computes in where that is a choice of the user's."""
        return f"{self.device}, {self.arithmetic}" if self.backend == "transformers" else self.device


@dataclass(frozen=True)
class TokenCounts:
    """Token counts of a request before it runs."""

    prompt: int
    """Chat prompt and the reply's opening."""
    source: int
    """The text that the reply is expected to follow."""
    estimated: bool = False
    """The engine has no tokeniser to ask: the counts are guessed from the characters, on the high side."""


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
