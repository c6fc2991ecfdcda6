"""Figures of one request, by the definitions of the benchmark: fed as the work is done, read once at the end.

The clock is passed in; the only thing read from the system is the peak resident memory.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from editor_engine.decode.speculate import PassRecord
from editor_engine.draft.drafter import Origin
from editor_engine.events import DraftModelStats, Provenance, Stats
from editor_engine.machine import peak_rss_bytes


class Meter:
    """Counts and times one request."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._prompt = 0
        self._started = clock()
        self._cached = 0
        self._prefill_started = self._started
        self._first_emission: float | None = None
        self._last_emission = self._started
        self._passes = 0
        self._drafter_s: float | None = None
        self._drafts: dict[str, tuple[int, int]] = {}
        self._origins: Counter[Provenance] = Counter()

    def drafter_made(self, seconds: float) -> None:
        """There is a drafter; to index prompt and source took it so long."""
        self._drafter_s = seconds

    def prefill_starts(self, prompt_tokens: int, cached_tokens: int) -> None:
        """The prompt is tokenised; `cached_tokens` of it need no work."""
        self._prompt = prompt_tokens
        self._cached = cached_tokens
        self._prefill_started = self._clock()

    def first_token(self, origins: Sequence[Origin]) -> None:
        """The prefill is done and gave the first output token."""
        self._first_emission = self._last_emission = self._clock()
        self._count(origins)

    def decoded(self, record: PassRecord) -> None:
        """One pass after the prefill."""
        self._last_emission = self._clock()
        self._passes += 1
        if self._drafter_s is not None:
            self._drafter_s += record.drafter_s
        self._count(record.origins)
        if record.draft.drafter is not None:
            drafted, accepted = self._drafts.get(record.draft.drafter, (0, 0))
            self._drafts[record.draft.drafter] = (drafted + len(record.draft.tokens), accepted + record.accepted)

    def _count(self, origins: Sequence[Origin]) -> None:
        self._origins.update(origin.provenance for origin in origins)

    def stats(
        self,
        output_tokens: int,
        mean_logprob: float | None,
        reruns: tuple[int, int] = (0, 0),
        draft_model: DraftModelStats | None = None,
    ) -> Stats:
        """Everything so far; rates are None where nothing was timed.

        `reruns`: positions this request decided, and those of them that were run again (`TargetModel.rerun_counts`).
        """
        decided, rerun = reruns
        first, last = self._first_emission, self._last_emission
        prefill_s = None if first is None else first - self._prefill_started
        decode_s = 0.0 if first is None else last - first
        return Stats(
            prompt_tokens=self._prompt,
            cached_tokens=self._cached,
            output_tokens=output_tokens,
            ttft_s=None if first is None else first - self._started,
            prefill_tok_s=(self._prompt - self._cached) / prefill_s if prefill_s else None,
            decode_tok_s=(output_tokens - 1) / decode_s if decode_s > 0 else None,
            wall_s=self._clock() - self._started,
            passes=self._passes,
            drafted=sum(drafted for drafted, _ in self._drafts.values()),
            accepted=sum(accepted for _, accepted in self._drafts.values()),
            by_drafter=dict(self._drafts),
            by_provenance=dict(self._origins),
            drafter_s=self._drafter_s,
            peak_rss_bytes=peak_rss_bytes(),
            mean_logprob=mean_logprob,
            draft_model=draft_model,
            rerun_share=rerun / decided if decided else None,
        )
