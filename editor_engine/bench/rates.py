"""Workloads `prefill` and `plain`: a model's bare speed at several contexts, and what a pass of M rows costs.

Drives a `TargetModel`, without tokenizer or drafter. Invariant: a context is measured with exactly so many tokens in
the cache, and everything measured there is forgotten before the next measurement; what is compared with each other is
measured in turns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from editor_engine.bench.measure import Spread, ratios
from editor_engine.errors import RequestError
from editor_engine.models.target import TargetModel

Clock = Callable[[], float]
Progress = Callable[[str], None]

BASE_CONTEXT = 1000
"""Tokens of the prompt whose rate longer ones are compared with."""

PASS_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Rows of the passes measured by default: every row tile of the kernels and what lies around it."""


def check_contexts(model: TargetModel, contexts: Sequence[int], room: int) -> list[int]:
    """`contexts`, ascending and once each. Raises RequestError when one cannot be measured."""
    if not contexts or min(contexts) < 1:
        raise RequestError("A context to measure at has at least one token.")
    most = model.info.context_length - room
    if max(contexts) > most:
        raise RequestError(
            f"Context {max(contexts)} cannot be measured: the model holds {model.info.context_length} tokens, "
            f"{room} of which the measurement itself needs."
        )
    return sorted(set(contexts))


def warm_up(model: TargetModel, tokens: Sequence[int]) -> None:
    """Touch every weight with a wide and a narrow pass, as wide as the cache allows, and forget both."""
    model.truncate(0)
    model.forward(tokens[: min(model.rows, model.info.context_length)], head_rows=1)
    model.truncate(0)
    model.forward(tokens[:1], head_rows=1)
    model.truncate(0)


def _extend(model: TargetModel, tokens: Sequence[int], end: int) -> None:
    """Bring the cache, a beginning of `tokens`, to `end` tokens; the last pass has a head, as at a prompt's end."""
    for start in range(model.length, end, model.rows):
        rows = tokens[start : min(start + model.rows, end)]
        model.forward(rows, head_rows=1 if start + len(rows) == end else 0)


def prefill_rates(
    model: TargetModel, tokens: Sequence[int], contexts: Sequence[int], repeats: int, clock: Clock, progress: Progress
) -> dict[int, Spread]:
    """Prefill tok/s of prompts of each length in `contexts`.

    Each repeat runs the longest prompt once from an empty cache; the time at each length is that of the shorter prompt,
    since causal passes over a prompt's beginning do not depend on what follows.
    """
    contexts = check_contexts(model, contexts, 0)
    warm_up(model, tokens)
    rates: dict[int, list[float]] = {context: [] for context in contexts}
    for repeat in range(1, repeats + 1):
        model.truncate(0)
        started = clock()
        for context in contexts:
            _extend(model, tokens, context)
            rates[context].append(context / (clock() - started))
            progress(f"prefill, run {repeat} of {repeats}: {context} tokens at {rates[context][-1]:.1f} tok/s")
    return {context: Spread(tuple(found)) for context, found in rates.items()}


def over_base(rates: Mapping[int, Spread]) -> tuple[int, dict[int, Spread]]:
    """(base, each longer context's rate over the base's, run by run); the base is BASE_CONTEXT, else the shortest."""
    base = BASE_CONTEXT if BASE_CONTEXT in rates else min(rates)
    return base, {context: ratios(found.runs, rates[base].runs) for context, found in rates.items() if context > base}


def plain_rates(
    model: TargetModel,
    tokens: Sequence[int],
    contexts: Sequence[int],
    steps: int,
    repeats: int,
    clock: Clock,
    progress: Progress,
) -> dict[int, Spread]:
    """Tokens per second of `steps` plain greedy steps after each context; `tokens` is one longer than the longest."""
    rates = {}
    for context in _standing_at(model, tokens, check_contexts(model, contexts, steps)):
        found = []
        for repeat in range(1, repeats + 1):
            token = tokens[context]
            started = clock()
            for _ in range(steps):
                token = model.forward([token], head_rows=1)[0]
            found.append(steps / (clock() - started))
            model.truncate(context)
            progress(f"plain, context {context}, run {repeat} of {repeats}: {found[-1]:.1f} tok/s")
        rates[context] = Spread(tuple(found))
    return rates


def _standing_at(model: TargetModel, tokens: Sequence[int], contexts: Sequence[int]) -> Iterator[int]:
    """Yield each context with the cache filled up to it; the caller leaves the cache as it is."""
    warm_up(model, tokens)
    for context in contexts:
        _extend(model, tokens, context)
        yield context


@dataclass(frozen=True)
class PassCosts:
    """What a pass costs by its rows, at one context."""

    context: int
    """Tokens in the cache."""
    seconds: dict[int, Spread]
    """Rows to seconds."""
    cost: dict[int, Spread]
    """Rows to plain steps: each run over the one-row pass right before it."""

    @property
    def best_rows(self) -> int:
        """Rows of the pass with the most rows per second."""
        return min(self.cost, key=lambda rows: self.cost[rows].median / rows)

    @property
    def best_gain(self) -> Spread:
        """Rows per second of that pass over plain decoding."""
        return Spread(tuple(self.best_rows / cost for cost in self.cost[self.best_rows].runs))

    @property
    def ceiling(self) -> float:
        """The most tokens per second any pass can give here: median rows per second of the best one."""
        return max(rows / spread.median for rows, spread in self.seconds.items())

    def fields(self) -> dict[str, object]:
        """For the machine interface."""
        return {
            "context": self.context,
            "rows": list(self.seconds),
            "ms": [round(spread.median * 1000, 3) for spread in self.seconds.values()],
            "cost": [round(spread.median, 4) for spread in self.cost.values()],
            "best_rows": self.best_rows,
            "best_rows_per_s_over_plain": self.best_gain.fields(),
            "ceiling_tok_s": self.ceiling,
        }


def pass_costs(
    model: TargetModel,
    tokens: Sequence[int],
    contexts: Sequence[int],
    rows: Sequence[int],
    repeats: int,
    clock: Clock,
    progress: Progress,
) -> list[PassCosts]:
    """Cost of passes with each number of `rows`, every row with a head, at each context.

    `tokens` is as long as the longest context and the widest pass together.
    """
    if not rows or min(rows) < 1 or max(rows) > model.rows:
        raise RequestError(f"A pass has 1 to {model.rows} rows.")
    tables = []
    for context in _standing_at(model, tokens, check_contexts(model, contexts, max(rows))):
        wide: dict[int, list[float]] = {count: [] for count in rows}
        single: dict[int, list[float]] = {count: [] for count in rows}
        for repeat in range(1, repeats + 1):
            for count in rows:
                single[count].append(_pass_seconds(model, tokens[context : context + 1], clock))
                wide[count].append(_pass_seconds(model, tokens[context : context + count], clock))
            progress(f"passes, context {context}, run {repeat} of {repeats}")
        seconds = {count: Spread(tuple(found)) for count, found in wide.items()}
        cost = {count: ratios(wide[count], single[count]) for count in rows}
        tables.append(PassCosts(context, seconds, cost))
    return tables


def _pass_seconds(model: TargetModel, tokens: Sequence[int], clock: Clock) -> float:
    before = model.length
    started = clock()
    model.forward(tokens, head_rows=len(tokens))
    model.truncate(before)  # counted: a pass that verifies a draft always rewinds
    return clock() - started


def pass_lines(costs: PassCosts) -> str:
    """For people: rows, milliseconds, plain steps and rows per second over plain, with the best pass first."""
    lines = [
        f"context {costs.context}: best pass {costs.best_rows} rows, {costs.best_gain.words()} times plain decoding, "
        f"{costs.ceiling:.1f} tok/s",
        f"{'rows':>4}  {'ms':>9}  {'plain steps':>22}  {'rows/s over plain':>17}",
    ]
    for rows, cost in costs.cost.items():
        ms = 1000 * costs.seconds[rows].median
        lines.append(f"{rows:>4}  {ms:>9.1f}  {cost.words():>22}  {rows / cost.median:>17.2f}")
    return "\n".join(lines)


def seconds_here(
    model: TargetModel, tokens: Sequence[int], rows: Sequence[int], rounds: int, clock: Clock
) -> dict[int, float]:
    """Rows to the median seconds of a pass of so many, over `rounds` turns, after what is in the cache, which stays.

    Numbers of rows for which the cache has no room are left out.
    """
    room = min(model.info.context_length - model.length, model.rows)
    found: dict[int, list[float]] = {count: [] for count in rows if count <= room}
    for _ in range(rounds):
        for count, seconds in found.items():
            seconds.append(_pass_seconds(model, tokens[:count], clock))
    return {count: median(seconds) for count, seconds in found.items()}
