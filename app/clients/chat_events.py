"""Chunks of a chat completion of another program's server -> the events of an engine.

What the server leaves to us is done here: the end at the stop line, at the anchor or in a loop, and the figures, each
from where the server reports it. Knows nothing of HTTP. Invariants: text is released as an engine of ours would release
it (the same `ReplyEnd`), whatever the server's chunks are; what the server does not report is None.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from editor_engine.decode.stopping import RepetitionGuard, ReplyEnd
from editor_engine.events import EngineEvent, Finished, FinishReason, Prefill, Span, Stats, Text
from editor_engine.requests import CompletionRequest

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TOKEN = re.compile(r"\w+|\W")
_MOST = 1 << 53
"""No figure is greater; a server that sends one is not believed."""

_REASONS = {"stop": FinishReason.STOP, "eos": FinishReason.STOP, "length": FinishReason.LENGTH}


@dataclass(frozen=True)
class Usage:
    """The figures of a server, as far as it gives any."""

    prompt: int | None = None
    cached: int | None = None
    output: int | None = None
    prefill_tok_s: float | None = None
    decode_tok_s: float | None = None
    passes: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    prediction: tuple[int, int] | None = None


class ChatEvents:
    """One reply as its chunks come in."""

    def __init__(self, request: CompletionRequest, clock: Callable[[], float], *, opened: bool) -> None:
        """`opened`: the reply goes on from the request's prefill; else it is free text, and only the server ends it."""
        self._clock = clock
        self._began = clock()
        self._first: float | None = None
        self._last = self._began
        self._end = ReplyEnd(
            request.stop_line if opened else None, request.anchor if opened else (), request.anchor_blank_lines
        )
        ids: dict[str, int] = {}
        self._id_of: Callable[[str], int] = lambda token: ids.setdefault(token, len(ids))
        self._guard = RepetitionGuard([self._id_of(token) for token in _TOKEN.findall(request.source)])
        self._line = ""  # tokens of a line are counted when it is whole, so that they do not depend on the chunks
        self._reported: FinishReason | None = None
        self._said: str | None = None
        self._usage = Usage()

    @property
    def over(self) -> bool:
        """Nothing that may still come is part of the reply."""
        return self._end.reason is not None

    @property
    def begun(self) -> bool:
        """There was text."""
        return self._first is not None

    @property
    def unfinished(self) -> str | None:
        """The end of a sentence: why what came is no reply. None where it ended, or was cut at the limit."""
        if self.over or self._said in _REASONS:
            return None
        if self._said:
            return f"ended its reply for a reason of its own: {' '.join(self._said.split())[:80]}."
        if self.begun:
            return "ended its reply without saying that it is whole."
        return "answered with no stream of chat completion chunks; is this the address of an OpenAI-compatible server?"

    @property
    def usage(self) -> Usage:
        """The figures so far."""
        return self._usage

    def take(self, chunk: Mapping[str, Any]) -> Iterator[EngineEvent]:
        """The events of one chunk. A chunk of the wrong shape says nothing."""
        progress = _dict(chunk.get("prompt_progress"))
        done, total, cached = (_count(progress.get(name)) for name in ("processed", "total", "cache"))
        if done is not None and total is not None:
            yield Prefill(max(done - (cached or 0), 0), max(total - (cached or 0), 0))
        self._usage = usage_of(chunk, self._usage)
        for choice in _list(chunk.get("choices"))[:1]:
            choice = _dict(choice)
            content = _dict(choice.get("delta")).get("content")
            if isinstance(content, str) and content and not self.over:
                yield from self._text(content)
            reason = choice.get("finish_reason")
            if isinstance(reason, str):
                self._reported = _REASONS.get(reason, FinishReason.LENGTH)
                self._said = reason

    def finish(self, reason: FinishReason | None = None) -> Iterator[EngineEvent]:
        """The stream is over: for `reason`, or as the server said; one that did not say why was cut."""
        if self._end.reason is None:
            yield from _texts(self._end.finish(reason or self._reported or FinishReason.LENGTH))
        assert self._end.reason is not None
        yield Finished(self._end.reason, (), self._stats())

    def with_drafts(self, drafted: int, accepted: int) -> None:
        """Counts that came some other way than in a chunk."""
        self._usage = usage_of({"timings": {"draft_n": drafted, "draft_n_accepted": accepted}}, self._usage)

    def _text(self, content: str) -> Iterator[EngineEvent]:
        self._last = self._clock()
        if self._first is None:
            self._first = self._last
        for piece in _LINE.findall(content):
            yield from _texts(self._end.feed(piece))
            self._line += piece
            if piece.endswith("\n"):
                line, self._line = self._line, ""
                looped = any([self._guard.feed(self._id_of(token)) for token in _TOKEN.findall(line)])
                if looped and not self.over:
                    yield from _texts(self._end.finish(FinishReason.REPETITION))
            if self.over:
                return

    def _stats(self) -> Stats:
        usage = self._usage
        decode_tok_s = usage.decode_tok_s
        if decode_tok_s is None and usage.output is not None and self._first is not None and self._last > self._first:
            decode_tok_s = (usage.output - 1) / (self._last - self._first)
        return Stats(
            prompt_tokens=usage.prompt,
            cached_tokens=usage.cached,
            output_tokens=usage.output,
            ttft_s=None if self._first is None else self._first - self._began,
            prefill_tok_s=usage.prefill_tok_s,
            decode_tok_s=decode_tok_s,
            wall_s=self._clock() - self._began,
            passes=usage.passes,
            drafted=usage.drafted,
            accepted=usage.accepted,
            prediction=usage.prediction,
        )


def usage_of(chunk: Mapping[str, Any], before: Usage) -> Usage:
    """`before`, and what this chunk adds to it: OpenAI's usage, llama-server's timings, vLLM's metrics."""
    usage, timings = _dict(chunk.get("usage")), _dict(chunk.get("timings"))
    spec = _dict(_dict(chunk.get("metrics")).get("speculative_decoding"))
    details = _dict(usage.get("completion_tokens_details"))
    used, unused = (_count(details.get(f"{kind}_prediction_tokens")) for kind in ("accepted", "rejected"))
    output = _first(_count(usage.get("completion_tokens")), _count(timings.get("predicted_n")), before.output)
    predicted_ms = _measure(timings.get("predicted_ms"))
    decode_tok_s = before.decode_tok_s
    if predicted_ms is not None and output is not None and output > 1:
        decode_tok_s = (output - 1) / predicted_ms * 1000  # its own rate counts the first token, too
    return Usage(
        prompt=_first(_count(usage.get("prompt_tokens")), before.prompt),
        cached=_first(
            _count(_dict(usage.get("prompt_tokens_details")).get("cached_tokens")),
            _count(timings.get("cache_n")),
            before.cached,
        ),
        output=output,
        prefill_tok_s=_measure(timings.get("prompt_per_second")) or before.prefill_tok_s,
        decode_tok_s=decode_tok_s,
        passes=_first(_count(spec.get("num_spec_steps")), before.passes),
        drafted=_first(_count(timings.get("draft_n")), _count(spec.get("num_draft_tokens")), before.drafted),
        accepted=_first(
            _count(timings.get("draft_n_accepted")), _count(spec.get("num_accepted_draft_tokens")), before.accepted
        ),
        # Servers that know nothing of predictions report zeros.
        prediction=(used, unused) if used is not None and unused is not None and used + unused else before.prediction,
    )


def _texts(text: str) -> Iterator[Text]:
    if text:
        yield Text(text, (Span(len(text), None, None),))


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST else None


def _measure(value: object) -> float | None:
    """A time or a rate; JSON's numbers have no bounds, and Python reads its Infinity and NaN."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 1 / _MOST <= value <= _MOST:
        return float(value)
    return None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
