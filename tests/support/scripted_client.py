"""An engine client that says what a test wants: a given text, a given end, a given failure, at a given token.

Knows nothing of models; a token is a word or one other character. Invariant: replies end as in the real engine (the
same `ReplyEnd` and `RepetitionGuard`, token by token), and nothing waits for time to pass.
"""

import asyncio
import inspect
import itertools
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from app.engine_client import Capabilities, EngineDescription, TokenCounts
from app.errors import AppError
from editor_engine.decode.stopping import RepetitionGuard, ReplyEnd
from editor_engine.events import (
    EngineEvent,
    Finished,
    FinishReason,
    Pass,
    Prefill,
    Provenance,
    Span,
    Started,
    Stats,
    Text,
)
from editor_engine.requests import CancelFlag, CompletionRequest

ALL_CAPABILITIES = Capabilities()

Reply = str | Callable[[CompletionRequest], Iterable[str]]
"""What the model says after the reply's opening: a text, or the tokens of an answer to a request, endless perhaps."""

_TOKEN = re.compile(r"\w+|\W")


def tokens_of(text: str) -> list[str]:
    """Words, and single characters of everything else."""
    return _TOKEN.findall(text)


def fenced(text: str) -> Callable[[CompletionRequest], Iterable[str]]:
    """The reply of a model that does what it was asked: the text, then the closing fence."""
    return lambda request: tokens_of(f"{text}{request.stop_line}\n")


def endless(text: str) -> Callable[[CompletionRequest], Iterable[str]]:
    """A reply that says `text` again and again."""
    return lambda request: itertools.cycle(tokens_of(text))


def unending() -> Callable[[CompletionRequest], Iterable[str]]:
    """A reply that never ends and never repeats itself."""
    return lambda request: (f"value_{number} = {number}\n" for number in itertools.count())


@dataclass
class ScriptedClient:
    """An `EngineClient` that follows its script."""

    reply: Reply
    context_length: int = 100_000
    capabilities: Capabilities = ALL_CAPABILITIES
    choice: str | None = None
    notes: tuple[str, ...] = ()
    failures: dict[str, AppError] = field(default_factory=dict)
    """Call (`describe`, `count`, `complete`) to what it raises."""
    at_token: dict[int, Callable[[], object]] = field(default_factory=dict)
    """Called, and awaited where it can be, right before that token (from 0) is emitted: a change made meanwhile, a
    ctrl-C, a wait until the test has looked."""
    requests: list[CompletionRequest] = field(default_factory=list)
    """What was asked to be completed."""
    open_calls: int = 0
    """Completions that were begun and not left yet."""
    closed: bool = False

    async def describe(self) -> EngineDescription:
        self._may_fail("describe")
        return EngineDescription(
            model_id="scripted",
            sha256="5" * 64,
            device="cpu",
            threads=2,
            exactness="exact",
            policy="strict",
            context_length=self.context_length,
            capabilities=self.capabilities,
            choice=self.choice,
            notes=self.notes,
        )

    async def count(self, request: CompletionRequest) -> TokenCounts:
        self._may_fail("count")
        return TokenCounts(prompt_tokens(request), len(tokens_of(request.source)), not self.capabilities.tokenise)

    async def complete(self, request: CompletionRequest, cancel: CancelFlag) -> AsyncGenerator[EngineEvent, None]:
        self._may_fail("complete")
        self.requests.append(request)
        if not self.capabilities.prefill:  # as servers that cannot open a reply: it is free text, which they end
            request = replace(request, prefill="", stop_line=None, anchor=())
        self.open_calls += 1
        try:
            count = prompt_tokens(request)
            yield Started(count, 0, len(tokens_of(request.source)))
            yield Prefill(count, count)
            run = _Run(request)
            if request.max_tokens == 0:
                run.end(FinishReason.LENGTH)
                yield run.finished(count)
                return
            for number, token in enumerate(self._said(request)):
                happens = self.at_token.get(number, bool)()
                if inspect.isawaitable(happens):
                    await happens
                await asyncio.sleep(0)  # a real engine lets ctrl-C in between passes, too
                if cancel.is_set():
                    run.end(FinishReason.CANCELLED)
                else:
                    run.take(token)
                for event in run.events():
                    yield event
                if run.reason is not None:
                    break
            else:
                run.end(FinishReason.STOP)
                for event in run.events():
                    yield event
            yield run.finished(count)
        finally:
            self.open_calls -= 1

    async def close(self) -> None:
        self.closed = True

    def _said(self, request: CompletionRequest) -> Iterable[str]:
        return tokens_of(self.reply) if isinstance(self.reply, str) else self.reply(request)

    def _may_fail(self, call: str) -> None:
        if call in self.failures:
            raise self.failures[call]


def prompt_tokens(request: CompletionRequest) -> int:
    """Tokens of everything before the reply's first."""
    return sum(len(tokens_of(message.content)) for message in request.messages) + len(tokens_of(request.prefill))


class _Run:
    """One reply as it grows."""

    def __init__(self, request: CompletionRequest) -> None:
        self._request = request
        self._source = tokens_of(request.source)
        ids: dict[str, int] = {}
        self._id_of: Callable[[str], int] = lambda token: ids.setdefault(token, len(ids))
        self._end = ReplyEnd(request.stop_line, request.anchor, request.anchor_blank_lines)
        self._guard = RepetitionGuard([self._id_of(token) for token in self._source])
        self._pending: list[EngineEvent] = []
        self._ids: list[int] = []
        self._copied = 0
        self.reason: FinishReason | None = None

    def take(self, token: str) -> None:
        at = len(self._ids)
        copied = self._request.draft and at < len(self._source) and self._source[at] == token
        self._copied += copied
        self._ids.append(self._id_of(token))
        line = self._request.source_line + "".join(self._source[:at]).count("\n") if copied else None
        drafted = int(copied)
        self._pending.append(Pass(1 + drafted, drafted, drafted, 1, "cursor" if copied else None, line, 0.5))
        self._text(self._end.feed(token), Provenance.COPIED if copied else Provenance.GENERATED, line)
        if self._end.reason is not None:
            self.reason = self._end.reason
        elif self._guard.feed(self._ids[-1]):
            self.end(FinishReason.REPETITION)
        elif len(self._ids) == self._request.max_tokens:
            self.end(FinishReason.LENGTH)

    def end(self, reason: FinishReason) -> None:
        self._text(self._end.finish(reason), Provenance.GENERATED, None)
        self.reason = self._end.reason

    def _text(self, text: str, provenance: Provenance, line: int | None) -> None:
        if text:
            self._pending.append(Text(text, (Span(len(text), provenance, line),)))

    def events(self) -> Iterator[EngineEvent]:
        pending, self._pending = self._pending, []
        return iter(pending)

    def finished(self, prompt: int) -> Finished:
        assert self.reason is not None
        count = len(self._ids)
        stats = Stats(
            prompt_tokens=prompt,
            cached_tokens=0,
            output_tokens=count,
            ttft_s=0.25,
            prefill_tok_s=400.0,
            decode_tok_s=50.0,
            wall_s=1.5,
            passes=count,
            drafted=self._copied,
            accepted=self._copied,
            by_drafter={"cursor": (self._copied, self._copied)},
            by_provenance={Provenance.COPIED: self._copied, Provenance.GENERATED: count - self._copied},
            peak_rss_bytes=None,
        )
        return Finished(self.reason, tuple(self._ids), stats)
