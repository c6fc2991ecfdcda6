"""Workload `edit`: a session of edits with drafting on and off in turns, compared token by token and in speed.

    turn -> prompt of the product -> [off, on, on, off, ...] -> same ids? -> the new file -> next turn
    -> at last the first turn again, since only a turn and itself say whether a long session slows down

Drives one engine and the model under it; the arithmetic is in `session_figures`. Invariant: both sides get the same
request on the same cache, and the file of the next turn is what plain decoding made of it, so a fault of drafting
cannot change what is measured next.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from app.bench.session_figures import Answer, SessionFigures, TurnFigures
from app.bench.turns import Turn, file_lines
from app.editing.extract import extract_reply
from app.editing.prompt import Budget, EditPrompt, build_prompt
from app.errors import RefusedError
from editor_engine.bench.measure import Spread, first_difference
from editor_engine.bench.rates import seconds_here
from editor_engine.errors import RequestError
from editor_engine.events import EngineEvent, Finished, Pass, Text
from editor_engine.models.target import TargetModel
from editor_engine.requests import CompletionRequest, Message

CEILING_ROWS = (2, 4, 8, 16, 32, 64)
"""Widths tried for the ceiling."""
CEILING_SAMPLES = 6
"""Least passes of each width in a turn, spread over its drafted runs."""


class Completer(Protocol):
    """The part of an engine this needs."""

    def count(self, request: CompletionRequest) -> tuple[int, int]: ...

    def complete(self, request: CompletionRequest) -> Iterator[EngineEvent]: ...


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
    """Every turn `repeats` times on and off, and the first one again at the end.

    `model` is the one under `engine`; `score` asks for log-likelihoods. Raises FileTooLongError when a file does not
    fit the context, and what the engine raises.
    """
    _answer(engine, CompletionRequest((Message("user", "Say that you are ready."),), 8))  # warm-up
    runs = _Runs(engine, model, repeats, clock, score)
    text = first_text = turns[0].text or ""
    figures = []
    for number, turn in enumerate(turns, 1):
        text = turn.text if turn.text is not None else text
        progress(f"turn {number} of {len(turns)}: {turn.kind}")
        one, text = runs.turn(turn, text)
        figures.append(one)
        progress(_words(one))
    closing = None
    if len(turns) > 1:
        progress(f"the first turn again: {turns[0].kind}")
        closing, _ = runs.turn(turns[0], first_text)
        progress(_words(closing))
    return SessionFigures(tuple(figures), closing)


def _words(turn: TurnFigures) -> str:
    same = "same ids" if turn.difference is None else f"ids differ at {turn.difference.index}"
    rates = ["-" if spread is None else f"{spread.median:.1f}" for spread in (turn.off_tok_s, turn.on_tok_s)]
    return f"  {turn.outcome}, off {rates[0]}, on {rates[1]} tok/s, {same}"


@dataclass(frozen=True)
class _Runs:
    """How every turn is run."""

    engine: Completer
    model: TargetModel
    repeats: int
    clock: Callable[[], float]
    score: bool

    def turn(self, turn: Turn, text: str) -> tuple[TurnFigures, str]:
        """Figures of one turn, and the file after it."""
        prompt = build_prompt(file_lines(text), turn.instruction, turn.language)
        counts = self.engine.count(prompt.request(0))
        budget = Budget(prompt=counts[0], expected=counts[1], context=self.model.info.context_length)
        budget.check(is_region=False)
        off: list[Answer] = []
        on: list[Answer] = []
        passes: list[dict[int, float]] = []
        for repeat in range(self.repeats):
            for draft in (False, True) if repeat % 2 == 0 else (True, False):
                request = prompt.request(budget.max_tokens, draft=draft, score=self.score)
                if draft:
                    answer, rates = self._drafted(request, off[0])
                    on.append(answer)
                    passes.append(rates)
                else:
                    off.append(_answer(self.engine, request))
        plain = off[0].finished.token_ids
        found = [first_difference(plain, answer.finished.token_ids) for answer in (*off, *on)]
        outcome, new = _new_text(turn, text, prompt, off[0])
        measured = set[int].intersection(*map(set, passes))
        figures = TurnFigures(
            kind=turn.kind,
            outcome=outcome,
            off=tuple(off),
            on=tuple(on),
            difference=next((difference for difference in found if difference is not None), None),
            passes={rows: Spread(tuple(rates[rows] for rates in passes)) for rows in sorted(measured)},
        )
        return figures, new

    def _drafted(self, request: CompletionRequest, plain: Answer) -> tuple[Answer, dict[int, float]]:
        """A drafted run, and rows to rows per second of one pass in the middle of its reply.

        A pass takes longer the more tokens are in the cache, linearly, so the middle is the mean of both ends.
        """
        _answer(self.engine, replace(request, max_tokens=0))  # the cache holds the prompt and nothing else
        before = self._passes(plain)
        answer = _answer(self.engine, request)
        after = self._passes(plain)
        return answer, {rows: 2 * rows / (before[rows] + after[rows]) for rows in before.keys() & after.keys()}

    def _passes(self, plain: Answer) -> dict[int, float]:
        tokens = plain.finished.token_ids * CEILING_ROWS[-1]
        rounds = -(-CEILING_SAMPLES // (2 * self.repeats))
        return seconds_here(self.model, tokens, CEILING_ROWS, rounds, self.clock)


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
