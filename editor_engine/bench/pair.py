"""Workload `pair`: a target alone, with the drafts a text gives, with a draft model, and with both, in turns.

Every run begins with an empty draft model, since to read the prompt is part of what it costs, and with the pass costs
the engine had at first: a few disturbed passes of one way would change how far the next one drafts. Drives one engine
over one pair. Invariants: every way answers the same requests; ways are compared run by run, between neighbours in
time; no way learns from the runs of another; whatever way ran last, the engine is left as it was found.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from editor_engine.bench.completed import completed
from editor_engine.bench.identity_drafters import no_drafts
from editor_engine.bench.measure import Difference, Spread, first_difference, ratios
from editor_engine.decode.draft_pair import DraftPair, Use
from editor_engine.draft.pass_cost import CostSnapshot
from editor_engine.engine import Engine
from editor_engine.errors import RequestError
from editor_engine.events import DRAFT_MODEL, DraftModelStats, Finished
from editor_engine.requests import CompletionRequest

PLAIN, CHAIN, MODEL, BOTH = "plain", "text drafts", "draft model", "both"
"""Ways: no drafts; what prompt, file and output give; the draft model alone, always asked; all of it as an edit has
it, the draft model only while it pays."""

WAYS = (PLAIN, CHAIN, MODEL, BOTH)


@dataclass(frozen=True)
class PairTask:
    """One request and what it is called."""

    name: str
    request: CompletionRequest


@dataclass(frozen=True)
class WayFigures:
    """One way of answering one task."""

    runs: tuple[Finished, ...]
    """In the order taken, at least one."""

    @property
    def tok_s(self) -> Spread:
        """Output tokens per second of decoding, reading of the draft model included."""
        return Spread(tuple(run.stats.decode_tok_s or 0.0 for run in self.runs))

    @property
    def per_pass(self) -> Spread:
        """Output tokens per pass of the target."""
        return Spread(tuple(run.stats.tokens_per_pass or 0.0 for run in self.runs))

    @property
    def last(self) -> Finished:
        """The last run: with all that was learned of the draft model before it."""
        return self.runs[-1]

    @property
    def draft(self) -> DraftModelStats | None:
        """What the draft model did in it."""
        return self.last.stats.draft_model

    def fields(self) -> dict[str, object]:
        """For the machine interface."""
        stats, draft = self.last.stats, self.draft
        drafted, accepted = stats.by_drafter.get(DRAFT_MODEL, (0, 0))
        found: dict[str, object] = {
            "tok_s": self.tok_s.fields(),
            "output_tokens": stats.output_tokens,
            "passes": stats.passes,
            "tokens_per_pass": self.per_pass.fields(),
            "drafted": stats.drafted,
            "accepted": stats.accepted,
        }
        if draft is not None:
            found["draft_model"] = {
                "drafted": drafted,
                "accepted": accepted,
                "by_position": [{"verified": seen, "accepted": stood} for seen, stood in draft.by_position],
                "passes": draft.passes,
                "seconds": draft.seconds,
                "read_tokens": draft.read_tokens,
                "read_s": draft.read_s,
                "cache_bytes": draft.cache_bytes,
                "decision": draft.decision,
            }
        return found


@dataclass(frozen=True)
class TaskFigures:
    """All ways of answering one task."""

    name: str
    ways: dict[str, WayFigures]

    @property
    def difference(self) -> Difference | None:
        """Where any run parts from the first plain one; None where all are equal, as they must be."""
        plain = self.ways[PLAIN].runs[0].token_ids
        found = (first_difference(plain, run.token_ids) for way in self.ways.values() for run in way.runs)
        return next((difference for difference in found if difference is not None), None)

    def ratio(self, way: str, base: str) -> Spread:
        """Run by run, the rate of one way over another's."""
        return ratios(self.ways[way].tok_s.runs, self.ways[base].tok_s.runs)

    def fields(self) -> dict[str, object]:
        """For the machine interface."""
        difference = self.difference
        return {
            "ways": {name: way.fields() for name, way in self.ways.items()},
            "over_plain": {way: self.ratio(way, PLAIN).fields() for way in (CHAIN, MODEL, BOTH)},
            "both_over_text_drafts": self.ratio(BOTH, CHAIN).fields(),
            "first_difference": None if difference is None else difference.index,
        }


def compare(
    engine: Engine, tasks: Sequence[PairTask], repeats: int, progress: Callable[[str], None]
) -> tuple[TaskFigures, ...]:
    """Every task `repeats` times every way. Raises RequestError without a draft model, and what the engine raises."""
    pair = engine.drafting.pair
    if pair is None:
        raise RequestError("There is no draft model to measure; name one with --draft-model.")
    costs, figures = engine.drafting.costs.snapshot(), []
    for task in tasks:
        runs: dict[str, list[Finished]] = {way: [] for way in WAYS}
        with _way(engine, pair, costs, PLAIN):  # reads the prompt, which all ways find cached then
            completed(engine, CompletionRequest(task.request.messages, 2, source=task.request.source, draft=False))
        for repeat in range(repeats):
            for way in WAYS if repeat % 2 == 0 else reversed(WAYS):
                with _way(engine, pair, costs, way):
                    done = completed(engine, _asked(task.request, way))
                runs[way].append(done)
                progress(
                    f"{task.name}, run {repeat + 1} of {repeats}, {way}: {done.stats.decode_tok_s or 0.0:.1f} tok/s"
                )
        figures.append(TaskFigures(task.name, {way: WayFigures(tuple(found)) for way, found in runs.items()}))
    return tuple(figures)


def _asked(request: CompletionRequest, way: str) -> CompletionRequest:
    return CompletionRequest(request.messages, request.max_tokens, source=request.source, draft=way != PLAIN)


@contextmanager
def _way(engine: Engine, pair: DraftPair, costs: CostSnapshot, way: str) -> Iterator[None]:
    """The engine drafts this way, its draft model has read nothing, and of costs it knows no more than `costs`."""
    drafting = engine.drafting
    make, use = drafting.make, pair.use
    pair.forget()
    drafting.costs.restore(costs)
    try:
        if way == MODEL:
            drafting.make = no_drafts
        pair.use = {CHAIN: Use.NEVER, MODEL: Use.ALWAYS}.get(way, Use.MEASURED)
        yield
    finally:
        drafting.make, pair.use = make, use
        drafting.costs.restore(costs)


def table(figures: Sequence[TaskFigures]) -> str:
    """For people."""
    lines: list[str] = []
    for task in figures:
        difference = task.difference
        same = "same ids in every run" if difference is None else f"ids part at {difference.index}"
        lines.append(f"{task.name}: {same}")
        for name, way in task.ways.items():
            over = "" if name == PLAIN else f"  {task.ratio(name, PLAIN).words()} of plain"
            lines.append(f"  {name:<11}  {way.tok_s.words(1):>20} tok/s  {way.per_pass.words(1):>16} a pass{over}")
        lines.append(f"  both over text drafts: {task.ratio(BOTH, CHAIN).words()}")
        lines += _draft_lines(task)
        lines.append("")
    return "\n".join(lines[:-1])


def _draft_lines(task: TaskFigures) -> list[str]:
    lines = []
    for name in (MODEL, BOTH):
        draft = task.ways[name].draft
        if draft is None:
            continue
        drafted, accepted = task.ways[name].last.stats.by_drafter.get(DRAFT_MODEL, (0, 0))
        shares = " ".join(f"{stood / seen:.0%}" for seen, stood in draft.by_position if seen)
        lines.append(
            f"  {name}: {accepted} of {drafted} accepted"
            + (f" (by place {shares})" if shares else "")
            + f", {draft.passes} passes, {draft.seconds:.1f} s of which reading {draft.read_s:.1f} s"
        )
    decided = task.ways[BOTH].draft
    return lines if decided is None else [*lines, f"  {decided.decision}"]
