"""Workload `edit`: a session of edits with drafting on and off in turns, compared token by token and in speed.

    turn -> prompt of the product -> [off, on, on, off, ...] -> same ids? -> the new file -> next turn

Drives one engine and the model under it. Invariant: both sides get the same request on the same cache, and the file of
the next turn is what plain decoding made of it, so a fault of drafting cannot change what is measured next.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.bench.turns import Turn, file_lines
from app.editing.extract import extract_reply
from app.editing.prompt import Budget, EditPrompt, build_prompt
from app.errors import RefusedError
from editor_engine.bench.measure import Difference, Spread, first_difference, ratios
from editor_engine.bench.rates import ceiling_here
from editor_engine.errors import RequestError
from editor_engine.events import EngineEvent, Finished, Pass, Stats, Text
from editor_engine.models.target import TargetModel
from editor_engine.requests import CompletionRequest, Message

CEILING_ROWS = (2, 4, 8, 16, 32, 64)
"""Widths tried for the ceiling."""


class Completer(Protocol):
    """The part of an engine this needs."""

    def count(self, request: CompletionRequest) -> tuple[int, int]: ...

    def complete(self, request: CompletionRequest) -> Iterator[EngineEvent]: ...


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
    ceiling: float | None
    """Most tokens per second of any pass after this turn's reply."""

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
    def share_of_ceiling(self) -> float | None:
        """Drafted decode tok/s over the ceiling."""
        return self.on_tok_s.median / self.ceiling if self.on_tok_s and self.ceiling else None

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
            "share_of_ceiling": self.share_of_ceiling,
            "identical": self.difference is None,
            "first_difference": None if self.difference is None else self.difference.index,
        }


@dataclass(frozen=True)
class SessionFigures:
    """All turns; at least one."""

    turns: tuple[TurnFigures, ...]

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

    def stability(self, side: Callable[[TurnFigures], tuple[Answer, ...]]) -> float | None:
        """Decode tok/s of the last quarter of the turns over the first quarter's (a quarter is at least one turn)."""
        quarter = max(1, len(self.turns) // 4)
        first = _overall([side(turn) for turn in self.turns[:quarter]])
        last = _overall([side(turn) for turn in self.turns[-quarter:]])
        return last.median / first.median if first and last else None

    def fields(self) -> dict[str, object]:
        """For the machine interface."""
        counts = [turn.stats for turn in self.turns]
        # Never None: it is our own engine that counts.
        drafted, accepted = sum(s.drafted or 0 for s in counts), sum(s.accepted or 0 for s in counts)
        output, passes = sum(s.output_tokens or 0 for s in counts), sum(s.passes or 0 for s in counts)
        answers = [answer for turn in self.turns for answer in turn.on]
        decode_s = sum(answer.decode_s for answer in answers)
        pass_s = [seconds for answer in answers for seconds in answer.pass_s]
        scored = [(s.output_tokens or 0, s.mean_logprob) for s in counts if s.mean_logprob is not None]
        shares = [turn.share_of_ceiling for turn in self.turns if turn.share_of_ceiling is not None]
        return {
            "off_tok_s": _fields(self.off_tok_s),
            "on_tok_s": _fields(self.on_tok_s),
            "speed_up": _fields(self.speed_up),
            "worst_turn_speed_up": self.worst_turn,
            "acceptance": accepted / drafted if drafted else None,
            "tokens_per_pass": output / passes if passes else None,
            "share_of_ceiling": Spread(tuple(shares)).median if shares else None,
            "mean_logprob": sum(n * mean for n, mean in scored) / sum(n for n, _ in scored) if scored else None,
            "outside_passes_share": 1 - sum(pass_s) / decode_s if decode_s else None,
            "pass_ms": {"median": 1000 * Spread(tuple(pass_s)).median, "p95": 1000 * Spread(tuple(pass_s)).p95}
            if pass_s
            else None,
            "stability_on": self.stability(lambda turn: turn.on),
            "stability_off": self.stability(lambda turn: turn.off),
            "identical_turns": sum(turn.difference is None for turn in self.turns),
            "whole_replies": sum(turn.outcome in ("changed", "unchanged") for turn in self.turns),
            "peak_rss_bytes": max((s.peak_rss_bytes for s in counts if s.peak_rss_bytes), default=None),
            "turns": [turn.fields() for turn in self.turns],
        }


def run_session(
    turns: Sequence[Turn],
    engine: Completer,
    model: TargetModel,
    repeats: int,
    progress: Callable[[str], None],
    clock: Callable[[], float] = time.perf_counter,
    *,
    score: bool = False,
) -> SessionFigures:
    """Every turn `repeats` times on and off; `model` is the one under `engine`; `score` asks for log-likelihoods.

    Raises FileTooLongError when a file does not fit the context, and what the engine raises.
    """
    _answer(engine, CompletionRequest((Message("user", "Say that you are ready."),), 8))  # warm-up
    text = ""
    figures = []
    for number, turn in enumerate(turns, 1):
        text = turn.text if turn.text is not None else text
        progress(f"turn {number} of {len(turns)}: {turn.kind}")
        prompt = build_prompt(file_lines(text), turn.instruction, turn.language)
        one, new = _turn(turn, text, prompt, engine, model, repeats, clock, score)
        figures.append(one)
        same = "same ids" if one.difference is None else f"ids differ at {one.difference.index}"
        rates = [_cell(_median(spread), ".1f", 0) for spread in (one.off_tok_s, one.on_tok_s)]
        progress(f"  {one.outcome}, off {rates[0]}, on {rates[1]} tok/s, {same}")
        text = new
    return SessionFigures(tuple(figures))


def _turn(
    turn: Turn,
    text: str,
    prompt: EditPrompt,
    engine: Completer,
    model: TargetModel,
    repeats: int,
    clock: Callable[[], float],
    score: bool,
) -> tuple[TurnFigures, str]:
    """Figures of one turn, and the file after it."""
    counts = engine.count(prompt.request(0))
    budget = Budget(prompt=counts[0], expected=counts[1], context=model.info.context_length)
    budget.check(is_region=False)
    answers: dict[bool, list[Answer]] = {False: [], True: []}
    for repeat in range(repeats):
        for draft in (False, True) if repeat % 2 == 0 else (True, False):
            answers[draft].append(_answer(engine, prompt.request(budget.max_tokens, draft=draft, score=score)))
    plain = answers[False][0]
    differences = [
        first_difference(plain.finished.token_ids, answer.finished.token_ids)
        for side in answers.values()
        for answer in side
    ]
    ceiling = ceiling_here(model, plain.finished.token_ids * CEILING_ROWS[-1], CEILING_ROWS, clock)
    outcome, new = _new_text(turn, text, prompt, plain)
    difference = next((found for found in differences if found is not None), None)
    return TurnFigures(turn.kind, outcome, tuple(answers[False]), tuple(answers[True]), difference, ceiling), new


def _answer(engine: Completer, request: CompletionRequest) -> Answer:
    text: list[str] = []
    pass_s: list[float] = []
    finished: Finished | None = None
    for event in engine.complete(request):
        if isinstance(event, Text):
            text.append(event.text)
        elif isinstance(event, Pass):
            pass_s.append(event.ms / 1000)
        elif isinstance(event, Finished):
            finished = event
    if finished is None:
        raise RequestError("The engine ended without a result.")
    return Answer("".join(text), finished, tuple(pass_s))


def _new_text(turn: Turn, text: str, prompt: EditPrompt, answer: Answer) -> tuple[str, str]:
    """(outcome, file after the turn): a refused reply leaves the file as it is."""
    try:
        lines = extract_reply(answer.text, answer.finished.reason, prompt, file_lines(text), turn.language)
    except RefusedError as error:
        return error.code, text
    new = "".join(f"{line}\n" for line in lines)
    return ("unchanged" if new == text else "changed"), new


def _spread(rates: Sequence[float | None]) -> Spread | None:
    known = tuple(rate for rate in rates if rate is not None)
    return Spread(known) if len(known) == len(rates) else None


def _overall(sides: Sequence[tuple[Answer, ...]]) -> Spread | None:
    """Tokens after the first emissions over all decode time, one figure for each repeat."""
    rates: list[float | None] = []
    for answers in zip(*sides, strict=True):
        seconds = sum(answer.decode_s for answer in answers)
        tokens = sum(answer.finished.stats.output_tokens - 1 for answer in answers if answer.decode_s)
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
            _cell(turn.share_of_ceiling, ".0%", 10),
            f"{'yes' if turn.difference is None else f'NO at {turn.difference.index}':<8}",
            turn.outcome,
        ]
        lines.append("  ".join(cells))
    lines.append("")
    for name, spread in (
        ("off tok/s", figures.off_tok_s),
        ("on tok/s", figures.on_tok_s),
        ("speed-up", figures.speed_up),
    ):
        if spread is not None:
            lines.append(f"{name:<12} {spread.words()} in {len(spread.runs)} runs")
    for name, value in (
        ("stability on", figures.stability(lambda turn: turn.on)),
        ("stability off", figures.stability(lambda turn: turn.off)),
    ):
        if value is not None:
            lines.append(f"{name:<12} {value:.2f}")
    same = sum(turn.difference is None for turn in figures.turns)
    lines.append(f"same ids     {same} of {len(figures.turns)} turns")
    return "\n".join(lines)


def _cell(value: float | None, form: str, width: int) -> str:
    return f"{'-' if value is None else format(value, form):>{width}}"
