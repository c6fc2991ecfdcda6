"""Replay drafters without a model: how many passes a known result would have taken, and what they would have cost.

For each task with an `after`, the target tokens are those of `after`, the prompt is file then instruction, and the
drafter sees prompt, file and what was emitted, nothing else. Passes do not count the prefill; every draft is cut at the
target's length. Invariant: no clock and no chance, so the figures are the same to the last digit every time.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from editor_engine.bench.task_file import numbered_tasks
from editor_engine.decode.verify import common_prefix, usable_draft
from editor_engine.draft.drafter import Draft, Drafter
from editor_engine.draft.pass_cost import PassCost
from editor_engine.draft.renames import Words
from editor_engine.errors import RequestError


@dataclass(frozen=True)
class ReplayTask:
    """One edit whose result is known."""

    id: str
    before: str
    """The file."""
    instruction: str
    after: str
    """The file as it should be, never shown to a drafter."""


@dataclass(frozen=True)
class TokenTask:
    """A task as token ids."""

    id: str
    prompt: tuple[int, ...]
    """File, then instruction."""
    source: tuple[int, ...]
    target: tuple[int, ...]
    """At least one token."""
    words: Words | None = None
    """How the ids are spelt; None where they stand for no text."""


DrafterOfTask = Callable[[TokenTask, PassCost], Drafter]
"""Makes a fresh drafter for one task (it must not look at `target`) under one cost curve."""


@dataclass(frozen=True)
class TaskFigures:
    """Counts of one task, one drafter, one cost curve."""

    task: str
    tokens: int
    """Target tokens, all of them emitted."""
    passes: int
    drafted: int
    accepted: int
    cost: float
    """Sum of pass costs, in plain steps."""

    @property
    def tokens_per_pass(self) -> float:
        """Target tokens over passes."""
        return self.tokens / self.passes

    @property
    def cost_per_token(self) -> float:
        """Plain steps per target token; 1 is plain decoding."""
        return self.cost / self.tokens


@dataclass(frozen=True)
class CurveFigures:
    """All tasks of one drafter under one cost curve; at least one."""

    tasks: tuple[TaskFigures, ...]

    @property
    def tokens_per_pass_geomean(self) -> float:
        """Geometric mean over tasks."""
        return _geomean([task.tokens_per_pass for task in self.tasks])

    @property
    def tokens_per_pass_total(self) -> float:
        """All tokens over all passes."""
        return sum(task.tokens for task in self.tasks) / sum(task.passes for task in self.tasks)

    @property
    def cost_per_token_geomean(self) -> float:
        """Geometric mean over tasks, in plain steps per token."""
        return _geomean([task.cost_per_token for task in self.tasks])

    @property
    def worst(self) -> TaskFigures:
        """The task with the highest cost per token."""
        return max(self.tasks, key=lambda task: task.cost_per_token)

    @property
    def drafted(self) -> int:
        return sum(task.drafted for task in self.tasks)

    @property
    def accepted(self) -> int:
        return sum(task.accepted for task in self.tasks)


ReplayFigures = Mapping[str, Mapping[str, CurveFigures]]
"""Drafter name to curve name to figures."""


def load_tasks(path: Path) -> list[ReplayTask]:
    """Tasks with a known result from a JSON-lines file with `id`, `before`, `instruction` and `after`.

    Lines without an `after` are skipped. Raises RequestError with the line number when the file cannot be read or a
    line is not such a task, and when no task is left.
    """
    tasks = [_task_of(path, number, item) for number, item in numbered_tasks(path) if item.get("after")]
    if not tasks:
        raise RequestError(f"{path} has no task with an `after` to replay.")
    return tasks


def _task_of(path: Path, number: int, item: Mapping[str, object]) -> ReplayTask:
    fields = [str(item[name]) for name in ("id", "before", "instruction", "after") if isinstance(item.get(name), str)]
    if len(fields) != 4:
        raise RequestError(f"Line {number} of {path} needs id, before, instruction and after as text.")
    return ReplayTask(*fields)


def tokenise(tasks: Sequence[ReplayTask], words: Words) -> list[TokenTask]:
    """Tasks as token ids; file and instruction are encoded apart, as a chat template keeps them apart."""
    result = []
    for task in tasks:
        source = tuple(words.encode(task.before))
        prompt = (*source, *words.encode(task.instruction))
        result.append(TokenTask(task.id, prompt, source, tuple(words.encode(task.after)), words))
    return result


def replay_task(task: TokenTask, drafter: Drafter, cost: PassCost) -> TaskFigures:
    """Emit the target of `task` as if a model had chosen it, with every draft of `drafter` verified."""
    target = task.target
    vocab_size = 1 + max(max(target), max(task.prompt, default=0))
    passes = drafted = accepted_total = done = 0
    spent = 0.0
    while done < len(target):
        room = len(target) - done - 1
        proposed = drafter.draft(room)
        tokens = usable_draft(proposed.tokens, room, vocab_size, ())
        draft = replace(proposed, tokens=tokens) if tokens else Draft()
        accepted = common_prefix(tokens, target[done:])
        emitted = target[done : done + accepted + 1]
        spent += cost.costs(len(task.prompt) + done)[1 + len(tokens)]
        drafter.observe(draft, accepted, emitted, None)
        passes += 1
        drafted += len(tokens)
        accepted_total += accepted
        done += len(emitted)
    return TaskFigures(task.id, len(target), passes, drafted, accepted_total, spent)


def replay(
    tasks: Sequence[TokenTask],
    drafters: Mapping[str, DrafterOfTask],
    curves: Mapping[str, Callable[[], PassCost]],
    progress: Callable[[str, str], None] = lambda drafter, task: None,
) -> ReplayFigures:
    """Every drafter over every task under every curve; `progress` gets drafter name and task id before each.

    Raises RequestError when there is no task.
    """
    if not tasks:
        raise RequestError("A replay needs at least one task.")
    figures: dict[str, dict[str, CurveFigures]] = {}
    for name, make in drafters.items():
        figures[name] = {}
        for curve, make_cost in curves.items():
            rows = []
            for task in tasks:
                progress(name, task.id)
                cost = make_cost()
                rows.append(replay_task(task, make(task, cost), cost))
            figures[name][curve] = CurveFigures(tuple(rows))
    return figures


def result_fields(figures: ReplayFigures) -> dict[str, object]:
    """The `drafters` field of the result line (machine interface, workload `replay`)."""
    drafters: dict[str, object] = {}
    for name, curves in figures.items():
        entry: dict[str, object] = {}
        for curve, all_tasks in curves.items():
            if curve == "flat":
                entry[curve] = {
                    "geomean": all_tasks.tokens_per_pass_geomean,
                    "total": all_tasks.tokens_per_pass_total,
                }
            else:
                entry[curve] = {
                    "geomean": all_tasks.cost_per_token_geomean,
                    "worst": all_tasks.worst.cost_per_token,
                    "worst_task": all_tasks.worst.task,
                }
        drafters[name] = entry
    return {"drafters": drafters}


def table(figures: ReplayFigures) -> str:
    """The figures for people, one drafter a line."""
    names = max(len(name) for name in ("drafter", *figures))
    curves = list(next(iter(figures.values())))
    header = [
        f"{curve}: tokens/pass geomean / total, accepted"
        if curve == "flat"
        else f"{curve}: plain steps/token geomean / worst"
        for curve in curves
    ]
    lines = ["  ".join([f"{'drafter':{names}}", *header])]
    for name, by_curve in figures.items():
        cells = []
        for title, curve in zip(header, curves, strict=True):
            one = by_curve[curve]
            share = f", {100 * one.accepted / one.drafted:.0f} %" if one.drafted else ", -"
            cell = (
                f"{one.tokens_per_pass_geomean:.2f} / {one.tokens_per_pass_total:.2f}{share}"
                if curve == "flat"
                else f"{one.cost_per_token_geomean:.3f} / {one.worst.cost_per_token:.3f} {one.worst.task}"
            )
            cells.append(f"{cell:{len(title)}}")
        lines.append("  ".join([f"{name:{names}}", *cells]).rstrip())
    return "\n".join(lines)


def _geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))
