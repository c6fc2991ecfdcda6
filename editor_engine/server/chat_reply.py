"""The engine's events as OpenAI's objects: a chat completion, or the chunks of a stream, with figures.

Knows both vocabularies, nothing of HTTP. Invariant: the text of the chunks joined is the text of the completion, and
`completion_tokens` are the tokens of the reply, drafted and rejected ones not counted in.
"""

from dataclasses import dataclass, field
from typing import Any

from editor_engine.events import EngineEvent, Finished, FinishReason, Provenance, Started, Stats, Text
from editor_engine.wire import event_to_json

_CUT = frozenset({FinishReason.LENGTH, FinishReason.REPETITION, FinishReason.CANCELLED})


@dataclass
class ChatReply:
    """One reply as it grows."""

    id: str
    created: int
    """Unix time, seconds."""
    model: str
    fingerprint: str
    """Version, arithmetic and weights: what decides the output."""
    events_wanted: bool
    """The request had a `redraft` object: every event is passed on, under `redraft`."""
    _source_tokens: int = 0
    _text: list[str] = field(default_factory=list)

    def opening(self) -> dict[str, Any]:
        """First chunk of a stream."""
        return self._chunk([_choice({"role": "assistant", "content": ""}, None)])

    def take(self, event: EngineEvent) -> dict[str, Any] | None:
        """Note the event; its chunk, or None when the client has no use for it."""
        if isinstance(event, Started):
            self._source_tokens = event.source_tokens
        choices = []
        if isinstance(event, Text):
            self._text.append(event.text)
            choices = [_choice({"content": event.text}, None)]
        elif isinstance(event, Finished):
            choices = [_choice({}, _finish_reason(event))]
        if self.events_wanted:
            return {**self._chunk(choices), "redraft": event_to_json(event)}
        return self._chunk(choices) if choices else None

    def usage_chunk(self, stats: Stats) -> dict[str, Any]:
        """Last chunk of a stream whose client asked for figures."""
        return {**self._chunk([]), "usage": self.usage(stats)}

    def completion(self, finished: Finished) -> dict[str, Any]:
        """The whole reply, for a client that does not stream."""
        message = {"role": "assistant", "content": "".join(self._text), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(finished)}
        whole = {**self._head("chat.completion"), "choices": [choice], "usage": self.usage(finished.stats)}
        return {**whole, "redraft": event_to_json(finished)} if self.events_wanted else whole

    def usage(self, stats: Stats) -> dict[str, Any]:
        """Token counts. A prediction's tokens are accepted where the output has them, rejected where it has not."""
        prompt, output = stats.prompt_tokens or 0, stats.output_tokens or 0
        kept = stats.by_provenance.get(Provenance.COPIED, 0) + stats.by_provenance.get(Provenance.AGREED, 0)
        accepted = min(kept, self._source_tokens)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": stats.cached_tokens or 0},
            "completion_tokens_details": {
                "accepted_prediction_tokens": accepted,
                "rejected_prediction_tokens": self._source_tokens - accepted,
            },
            "redraft": {
                "drafted": stats.drafted,
                "accepted": stats.accepted,
                "passes": stats.passes,
                "provenance": {kind.value: count for kind, count in stats.by_provenance.items()},
            },
        }

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._head("chat.completion.chunk"), "choices": choices}


def _choice(delta: dict[str, str], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _finish_reason(finished: Finished) -> str:
    """OpenAI's word; the engine's own is in the `redraft` event."""
    return "length" if finished.reason in _CUT else "stop"
