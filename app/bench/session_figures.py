"""Figures of an edit session: what its runs amount to, turn by turn and together.

Knows no engine; `edit_session` takes them. Invariant: what is compared is a ratio of neighbours in time, or of a turn
and itself; None is unknown, never 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from editor_engine.bench.measure import Difference, Spread, ratios
from editor_engine.events import Finished, Stats


@dataclass(frozen=True)
class Answer:
    """One reply."""

    text: str
    finished: Finished
    pass_s: tuple[float, ...]
    """Seconds of every pass."""

    @property
    def decode_s(self) -> float:
        """First to last emission; 0 when there was only one."""
        rate = self.finished.stats.decode_tok_s
        return (len(self.finished.token_ids) - 1) / rate if rate else 0.0


@dataclass(frozen=True)
class TurnFigures:
    """One turn, drafted and plain."""

    kind: str
    outcome: str
    """`changed`, `unchanged`, or the code of the error that refused the reply."""
    off: tuple[Answer, ...]
    on: tuple[Answer, ...]
    """As many as `off`; the i-th of both ran one after the other."""
    difference: Difference | None
    """Where drafted and plain ids first part; None when every run gave the same ids."""
    passes: dict[int, Spread]
    """Rows to rows per second of such a pass in the middle of the reply, one figure for each drafted run, taken right
    before and after it; empty where the cache has no room for a wide pass."""

    @property
    def off_tok_s(self) -> Spread | None:
        """Decode tok/s without drafting; None when nothing was timed."""
        return _spread([answer.finished.stats.decode_tok_s for answer in self.off])

    @property
    def on_tok_s(self) -> Spread | None:
        """Decode tok/s with drafting."""
        return _spread([answer.finished.stats.decode_tok_s for answer in self.on])

    @property
    def speed_up(self) -> Spread | None:
        """On over off, run by run."""
        on, off = self.on_tok_s, self.off_tok_s
        return ratios(on.runs, off.runs) if on and off else None

    @property
    def stats(self) -> Stats:
        """Of the first drafted run; its counts are those of every run as long as the drafter's costs agree."""
        return self.on[0].finished.stats

    @property
    def best_rows(self) -> int | None:
        """Rows of the pass with the most rows per second."""
        return max(self.passes, key=lambda rows: self.passes[rows].median, default=None)

    @property
    def ceiling(self) -> float | None:
        """Most tokens per second of any pass at this turn's context: as if every token were drafted and accepted."""
        return None if self.best_rows is None else self.passes[self.best_rows].median

    @property
    def share_of_ceiling(self) -> Spread | None:
        """Drafted decode tok/s over the ceiling, run by run."""
        if self.on_tok_s is None or self.best_rows is None:
            return None
        return ratios(self.on_tok_s.runs, self.passes[self.best_rows].runs)

    @property
    def decode_s(self) -> float:
        """Decode time of all drafted runs."""
        return sum(answer.decode_s for answer in self.on)

    @property
    def drafter_s(self) -> float | None:
        """Time the drafter itself took in all drafted runs; None when it was not timed."""
        known = [s for answer in self.on if (s := answer.finished.stats.drafter_s) is not None]
        return sum(known) if len(known) == len(self.on) else None

    def fields(self) -> dict[str, object]:
        """For the machine interface."""
        cold, stats = self.off[0].finished.stats, self.stats
        return {
            "kind": self.kind,
            "outcome": self.outcome,
            "prompt_tokens": stats.prompt_tokens,
            "output_tokens": stats.output_tokens,
            "cached_tokens": cold.cached_tokens,
            "ttft_s": cold.ttft_s,
            "prefill_tok_s": cold.prefill_tok_s,
            "off_tok_s": _fields(self.off_tok_s),
            "on_tok_s": _fields(self.on_tok_s),
            "speed_up": _fields(self.speed_up),
            "drafted": stats.drafted,
            "accepted": stats.accepted,
            "acceptance": stats.acceptance,
            "by_drafter": {
                name: {"drafted": drafted, "accepted": accepted}
                for name, (drafted, accepted) in stats.by_drafter.items()
            },
            "passes": stats.passes,
            "tokens_per_pass": stats.tokens_per_pass,
            "copied_share": stats.copied_share,
            "mean_logprob": stats.mean_logprob,
            "ceiling_tok_s": self.ceiling,
            "ceiling_rows": self.best_rows,
            "share_of_ceiling": _fields(self.share_of_ceiling),
            "drafter_share": _share([self]),
            "identical": self.difference is None,
            "first_difference": None if self.difference is None else self.difference.index,
        }


@dataclass(frozen=True)
class SessionFigures:
    """All turns; at least one."""

    turns: tuple[TurnFigures, ...]
    closing: TurnFigures | None = None
    """The first turn once more, after all others; None when there were no others."""

    @property
    def off_tok_s(self) -> Spread | None:
        """Plain decode tok/s over all turns, one figure a repeat."""
        return _overall([turn.off for turn in self.turns])

    @property
    def on_tok_s(self) -> Spread | None:
        """Drafted decode tok/s over all turns, one figure a repeat."""
        return _overall([turn.on for turn in self.turns])

    @property
    def speed_up(self) -> Spread | None:
        """Drafted over plain, over all turns, repeat by repeat."""
        on, off = self.on_tok_s, self.off_tok_s
        return ratios(on.runs, off.runs) if on and off else None

    @property
    def worst_turn(self) -> float | None:
        """Lowest median speed-up of a turn."""
        return min((turn.speed_up.median for turn in self.turns if turn.speed_up), default=None)

    def stability(self, side: Callable[[TurnFigures], Spread | None]) -> Spread | None:
        """Decode tok/s of the first turn at the end of the session over the same turn at its start, run by run.

        Turns differ in how well they draft and in their lengths, so only a turn and itself can be compared.
        """
        first, last = side(self.turns[0]), None if self.closing is None else side(self.closing)
        return ratios(last.runs, first.runs) if first and last else None

    @property
    def stability_on(self) -> Spread | None:
        """With drafting."""
        return self.stability(lambda turn: turn.on_tok_s)

    @property
    def stability_off(self) -> Spread | None:
        """Without drafting."""
        return self.stability(lambda turn: turn.off_tok_s)

    @property
    def share_of_ceiling(self) -> float | None:
        """Median over the turns."""
        shares = [turn.share_of_ceiling.median for turn in self.turns if turn.share_of_ceiling is not None]
        return Spread(tuple(shares)).median if shares else None

    @property
    def drafter_share(self) -> float | None:
        """Time the drafter itself took over decode time, of all drafted runs of all turns."""
        return _share(self.turns)

    @property
    def identical(self) -> int:
        """Turns with the same ids in every run, the closing one not counted."""
        return sum(turn.difference is None for turn in self.turns)

    @property
    def same_at_the_end(self) -> bool | None:
        """The first turn gave the same ids again after all others; None when it was not run again."""
        if self.closing is None:
            return None
        ids = [turn.off[0].finished.token_ids for turn in (self.turns[0], self.closing)]
        return self.closing.difference is None and ids[0] == ids[1]

    def fields(self) -> dict[str, object]:
        """For the machine interface."""
        counts = [turn.stats for turn in self.turns]
        # Never None: it is our own engine that counts.
        drafted, accepted = sum(s.drafted or 0 for s in counts), sum(s.accepted or 0 for s in counts)
        output, passes = sum(s.output_tokens or 0 for s in counts), sum(s.passes or 0 for s in counts)
        answers = [answer for turn in self.turns for answer in turn.on]
        decode_s = sum(turn.decode_s for turn in self.turns)
        pass_s = [seconds for answer in answers for seconds in answer.pass_s]
        scored = [(s.output_tokens or 0, s.mean_logprob) for s in counts if s.mean_logprob is not None]
        return {
            "off_tok_s": _fields(self.off_tok_s),
            "on_tok_s": _fields(self.on_tok_s),
            "speed_up": _fields(self.speed_up),
            "worst_turn_speed_up": self.worst_turn,
            "acceptance": accepted / drafted if drafted else None,
            "tokens_per_pass": output / passes if passes else None,
            "share_of_ceiling": self.share_of_ceiling,
            "drafter_share": self.drafter_share,
            "mean_logprob": sum(n * mean for n, mean in scored) / sum(n for n, _ in scored) if scored else None,
            "outside_passes_share": 1 - sum(pass_s) / decode_s if decode_s else None,
            "pass_ms": {"median": 1000 * Spread(tuple(pass_s)).median, "p95": 1000 * Spread(tuple(pass_s)).p95}
            if pass_s
            else None,
            "stability_on": _fields(self.stability_on),
            "stability_off": _fields(self.stability_off),
            "identical_turns": self.identical,
            "same_at_the_end": self.same_at_the_end,
            "whole_replies": sum(turn.outcome in ("changed", "unchanged") for turn in self.turns),
            "peak_rss_bytes": max((s.peak_rss_bytes for s in counts if s.peak_rss_bytes), default=None),
            "turns": [turn.fields() for turn in self.turns],
            "closing_turn": None if self.closing is None else self.closing.fields(),
        }


def _share(turns: Sequence[TurnFigures]) -> float | None:
    """The drafter's own time over decode time; None where it was not timed."""
    spent = [turn.drafter_s for turn in turns]
    decode_s = sum(turn.decode_s for turn in turns)
    known = [seconds for seconds in spent if seconds is not None]
    return sum(known) / decode_s if len(known) == len(spent) and decode_s else None


def _spread(rates: Sequence[float | None]) -> Spread | None:
    known = tuple(rate for rate in rates if rate is not None)
    return Spread(known) if len(known) == len(rates) else None


def _overall(sides: Sequence[tuple[Answer, ...]]) -> Spread | None:
    """Tokens after the first emissions over all decode time, one figure for each repeat."""
    rates: list[float | None] = []
    for answers in zip(*sides, strict=True):
        seconds = sum(answer.decode_s for answer in answers)
        tokens = sum(len(answer.finished.token_ids) - 1 for answer in answers if answer.decode_s)
        rates.append(tokens / seconds if seconds else None)
    return _spread(rates)


def _median(spread: Spread | None) -> float | None:
    return spread.median if spread else None


def _fields(spread: Spread | None) -> dict[str, float | int] | None:
    return spread.fields() if spread else None


def table(figures: SessionFigures) -> str:
    """For people: a line for each turn, then the session."""
    names = max(len(name) for name in ("turn", *(turn.kind for turn in figures.turns)))
    head = f"{'turn':<{names}}  {'tokens':>6}  {'off tok/s':>9}  {'on tok/s':>9}  {'speed-up':>8}  {'accepted':>8}"
    lines = [f"{head}  {'tok/pass':>8}  {'of ceiling':>10}  same ids  outcome"]
    for turn in figures.turns:
        cells = [
            f"{turn.kind:<{names}}",
            f"{turn.stats.output_tokens:>6}",
            _cell(_median(turn.off_tok_s), ".1f", 9),
            _cell(_median(turn.on_tok_s), ".1f", 9),
            _cell(_median(turn.speed_up), ".2f", 8),
            _cell(turn.stats.acceptance, ".0%", 8),
            _cell(turn.stats.tokens_per_pass, ".2f", 8),
            _cell(_median(turn.share_of_ceiling), ".0%", 10),
            f"{'yes' if turn.difference is None else f'NO at {turn.difference.index}':<8}",
            turn.outcome,
        ]
        lines.append("  ".join(cells))
    lines.append("")
    for name, spread in (
        ("off tok/s", figures.off_tok_s),
        ("on tok/s", figures.on_tok_s),
        ("speed-up", figures.speed_up),
        ("stability on", figures.stability_on),
        ("stability off", figures.stability_off),
    ):
        if spread is not None:
            lines.append(f"{name:<13} {spread.words()} in {len(spread.runs)} runs")
    for name, value, whole in (
        ("ceiling", figures.share_of_ceiling, "of it reached"),
        ("drafter alone", figures.drafter_share, "of decode time"),
    ):
        if value is not None:
            lines.append(f"{name:<13} {value:.2%} {whole}")
    at_the_end = {None: "", True: ", and the first again at the end", False: ", but NOT the first again at the end"}
    same = at_the_end[figures.same_at_the_end]
    lines.append(f"{'same ids':<13} {figures.identical} of {len(figures.turns)} turns{same}")
    return "\n".join(lines)


def _cell(value: float | None, form: str, width: int) -> str:
    return f"{'-' if value is None else format(value, form):>{width}}"
