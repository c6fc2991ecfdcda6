"""Workload `hf`: edits on a Hugging Face checkpoint, ours against transformers' own ways, in turns, same weights.

Knows the order of the runs and how figures become ratios. Invariants: every way is asked for the same prompt ids and
ends at the same stop ids; a ratio is between runs of the same round; whether ids are equal is `==`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from editor_engine.bench.completed import completed
from editor_engine.bench.measure import Difference, Spread, first_difference, ratios
from editor_engine.bench.peer_process import PeerFailedError, PeerRequest
from editor_engine.engine import Engine
from editor_engine.errors import RequestError
from editor_engine.requests import CompletionRequest

PLAIN, DRAFTED = "redraft plain", "redraft drafted"
THEIRS, LOOKUP = "transformers plain", "transformers prompt lookup"
NATIVE = "native drafted"


@dataclass(frozen=True)
class Reply:
    """One edit, decoded in one way."""

    ids: tuple[int, ...]
    decode_s: float
    """First to last emission."""
    passes: int
    """After the one that gave the first token."""


Way = Callable[[PeerRequest], Reply]


@dataclass(frozen=True)
class HfFigures:
    """All rounds; every list has one entry a round."""

    rates: Mapping[str, Spread]
    """Way to decode tok/s over all edits."""
    replies: Mapping[str, tuple[Reply, ...]]
    """Way to its replies of the first round."""
    rerun_share: float | None
    """Positions decided again for a near tie, of all that were decided; None when nothing was."""

    def tokens_per_pass(self, way: str) -> float:
        """Tokens after the first over passes."""
        replies = self.replies[way]
        return sum(len(reply.ids) - 1 for reply in replies) / max(1, sum(reply.passes for reply in replies))

    def differences(self, way: str) -> list[Difference | None]:
        """For each edit, where `way` parts from our plain decoding."""
        return [
            first_difference(ours.ids, other.ids)
            for ours, other in zip(self.replies[PLAIN], self.replies[way], strict=True)
        ]

    def same(self, way: str) -> int:
        """Edits whose ids are those of our plain decoding."""
        return self.differences(way).count(None)

    def ratio(self, way: str, other: str) -> Spread | None:
        """Round by round; None where one was not run."""
        if way not in self.rates or other not in self.rates:
            return None
        return ratios(self.rates[way].runs, self.rates[other].runs)

    @property
    def ratios(self) -> dict[str, Spread | None]:
        """The ones that answer how good we are."""
        return {
            "drafted_vs_plain": self.ratio(DRAFTED, PLAIN),
            "drafted_vs_prompt_lookup": self.ratio(DRAFTED, LOOKUP),
            "plain_vs_transformers": self.ratio(PLAIN, THEIRS),
            "native_vs_drafted": self.ratio(NATIVE, DRAFTED),
        }

    def fields(self) -> dict[str, object]:
        """For the machine interface."""
        figures: dict[str, object] = {}
        for way, rate in self.rates.items():
            found = [None if at is None else at.index for at in self.differences(way)]
            figures[way] = {
                "edit_tok_s": rate.fields(),
                "tokens_per_pass": self.tokens_per_pass(way),
                "output_tokens": [len(reply.ids) for reply in self.replies[way]],
                "same_ids": self.same(way),
                "first_differences": found,
            }
        shown = {name: spread.fields() if spread else None for name, spread in self.ratios.items()}
        return {"figures": figures, "ratios": shown, "rerun_share": self.rerun_share}


def compare(
    ways: Mapping[str, Way],
    requests: Sequence[PeerRequest],
    rounds: int,
    progress: Callable[[str], None],
    reruns: Callable[[], tuple[int, int]] = lambda: (0, 0),
) -> HfFigures:
    """Run every way `rounds` times in turns; our plain decoding must be one of them.

    `reruns` counts (positions decided, run again) so far. Raises PeerFailedError when a reply gives no rate,
    RequestError when there is nothing to do.
    """
    if not requests:
        raise RequestError("There is no edit to compare.")
    before = reruns()
    rates: dict[str, list[float]] = {way: [] for way in ways}
    first: dict[str, tuple[Reply, ...]] = {}
    for number in range(1, rounds + 1):
        for way, answer in ways.items():
            progress(f"round {number} of {rounds}: {way}")
            replies = tuple(answer(request) for request in requests)
            first.setdefault(way, replies)
            seconds = sum(reply.decode_s for reply in replies)
            if seconds <= 0:
                raise PeerFailedError(f"{way} gave no rate: its replies had fewer than two tokens.")
            rates[way].append(sum(len(reply.ids) - 1 for reply in replies) / seconds)
            progress(f"  decoded at {rates[way][-1]:.1f} tok/s")
    decided, rerun = (after - earlier for after, earlier in zip(reruns(), before, strict=True))
    spreads = {way: Spread(tuple(runs)) for way, runs in rates.items()}
    return HfFigures(spreads, first, rerun / decided if decided else None)


def engine_way(engine: Engine, draft: bool) -> Way:
    """Our engine, over any model."""

    def answer(request: PeerRequest) -> Reply:
        asked = CompletionRequest(request.messages, request.max_tokens, source=request.source, draft=draft)
        last = completed(engine, asked)
        emitted, rate = len(last.token_ids), last.stats.decode_tok_s
        return Reply(last.token_ids, (emitted - 1) / rate if rate else 0.0, last.stats.passes or 0)

    return answer


def table(figures: HfFigures) -> str:
    """For people."""
    width, edits = max(map(len, figures.rates)), len(figures.replies[PLAIN])
    lines = [
        f"{way:<{width}}  {rate.words(1):>22} tok/s  {figures.tokens_per_pass(way):>6.2f} tokens a pass  "
        f"same ids in {figures.same(way)} of {edits} edits"
        for way, rate in figures.rates.items()
    ]
    lines.append("")
    for name, ratio in figures.ratios.items():
        if ratio is not None:
            lines.append(f"{name.replace('_', ' '):<{width}}  {ratio.words()} in {len(ratio.runs)} runs")
    if figures.rerun_share is not None:
        lines.append(f"{'near ties run again':<{width}}  {figures.rerun_share:.3%} of the positions decided")
    return "\n".join(lines)
