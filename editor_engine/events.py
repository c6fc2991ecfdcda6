"""What the engine says while it works: typed, frozen events, in this order: Started, Prefill*, (Pass, Text)*, Finished.

Light on purpose (no numpy, no C++). Times are milliseconds or seconds as each field says; counts are tokens.
"""

from dataclasses import dataclass, field
from enum import StrEnum

DRAFT_MODEL = "draft model"
"""Name of the drafter that is a model of its own."""


class Provenance(StrEnum):
    """Where an output token came from."""

    COPIED = "copied"
    """Drafted from the cursor's place in the source, and accepted."""
    SUBSTITUTED = "substituted"
    """Drafted through a learned substitution, and accepted."""
    DRAFTED = "drafted"
    """Accepted from another drafter."""
    AGREED = "agreed"
    """Generated, and equal to the source's next token."""
    GENERATED = "generated"
    POLICY = "policy"
    """Chosen by a policy against the model's first choice."""


class FinishReason(StrEnum):
    """Why a reply ended."""

    STOP = "stop"
    """The model's own stop token."""
    STOP_LINE = "stop_line"
    """A line equal to the request's `stop_line`."""
    ANCHOR = "anchor"
    """The request's end anchor was emitted."""
    STOP_TEXT = "stop_text"
    """One of the request's `stop` texts was emitted."""
    LENGTH = "length"
    """`max_tokens` or the context was reached: the reply is cut."""
    REPETITION = "repetition"
    """The reply went round in a loop that the source does not have."""
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Started:
    """The request is accepted and tokenised."""

    prompt_tokens: int
    cached_tokens: int | None
    """Prompt tokens already in the KV cache from the request before; None where the engine does not say."""
    source_tokens: int
    """Tokens of `source`, 0 without one."""
    draft_model: str | None = None
    """Name of the model that may draft; None without one, and where the engine does not say."""


@dataclass(frozen=True)
class Prefill:
    """Progress through the prompt tokens that were not cached."""

    done: int
    total: int


@dataclass(frozen=True)
class Pass:
    """One pass of the target model that emitted tokens."""

    rows: int
    """Rows verified: 1 + drafted."""
    drafted: int
    accepted: int
    """Drafted tokens that were the model's own choice."""
    emitted: int
    """Output tokens of this pass, at most accepted + 1."""
    drafter: str | None
    """Name of the drafter; None when nothing was drafted."""
    source_line: int | None
    """1-based line of the user's file where the draft was copied from."""
    ms: float
    draft_ms: float = 0.0
    """What the drafter took before and after it, a draft model's own passes included."""


@dataclass(frozen=True)
class Span:
    """A run of output characters of one origin."""

    chars: int
    provenance: Provenance | None
    """None where the engine does not say."""
    source_line: int | None


@dataclass(frozen=True)
class Text:
    """Output text that is certain (stop line and anchor are held back and dropped)."""

    text: str
    spans: tuple[Span, ...]
    """Cover `text` exactly."""


@dataclass(frozen=True)
class DraftModelStats:
    """What a draft model did in one request."""

    name: str
    passes: int
    """Its own passes that gave a token; those that only read are not among them."""
    read_tokens: int
    """Tokens it read to be in step: of the prompt, and of the output that it did not draft."""
    read_s: float
    """Seconds of that reading."""
    seconds: float
    """Seconds of all it did, reading included."""
    by_position: tuple[tuple[int, int], ...]
    """For the first, second, ... token of its drafts (times verified, times accepted)."""
    gain: float | None
    """Tokens per second with its drafts over plain decoding, as measured lately, this request and earlier ones; None
    before anything was measured."""
    decision: str
    """What was decided and why, a sentence for the user."""
    weights_bytes: int
    cache_bytes: int
    """Of its KV cache, as full as it is now."""


@dataclass(frozen=True)
class Stats:
    """Figures of one request; None is unknown, never 0."""

    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    """Tokens emitted, the stop token, stop line and anchor among them."""
    ttft_s: float | None
    """Request accepted to first output token."""
    prefill_tok_s: float | None
    """Prompt tokens that were not cached, over the time from the start of reading them to the first output token."""
    decode_tok_s: float | None
    """Output tokens after those of the first emission, over the time from that to the last one."""
    wall_s: float
    """Request accepted to its end."""
    passes: int | None
    """Target passes after the prefill."""
    drafted: int | None
    accepted: int | None
    by_drafter: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Drafter name to (drafted, accepted); empty where the engine does not say."""
    by_provenance: dict[Provenance, int] = field(default_factory=dict)
    """Output tokens of each class; empty where the engine does not say."""
    drafter_s: float | None = None
    """Seconds drafting took, indexing the prompt and a draft model's passes included; None without a drafter."""
    peak_rss_bytes: int | None = None
    mean_logprob: float | None = None
    """Mean log-likelihood of the output under the model, nats per token; None where logits were not scored."""
    draft_model: DraftModelStats | None = None
    """None without a draft model, and where the engine does not say."""
    rerun_share: float | None = None
    """Share of the positions this request decided that were run again in plain form, since two tokens nearly tied; None
    where rows never change a bit."""
    prediction: tuple[int, int] | None = None
    """Tokens of the source, sent as a prediction, that the server says it used, and did not use; not an acceptance."""

    @property
    def acceptance(self) -> float | None:
        """Accepted over drafted tokens."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None

    @property
    def tokens_per_pass(self) -> float | None:
        """Output tokens over target passes."""
        return self.output_tokens / self.passes if self.passes and self.output_tokens is not None else None

    @property
    def copied_share(self) -> float | None:
        """Output tokens copied from the source over output tokens."""
        if not self.output_tokens or not self.by_provenance:
            return None
        return self.by_provenance.get(Provenance.COPIED, 0) / self.output_tokens


@dataclass(frozen=True)
class Finished:
    """The last event of every request that was not an error."""

    reason: FinishReason
    token_ids: tuple[int, ...]
    """Every emitted token id, in order; equal with drafting on and off. Empty where the engine does not say."""
    stats: Stats


EngineEvent = Started | Prefill | Pass | Text | Finished
