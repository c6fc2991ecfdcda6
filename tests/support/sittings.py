"""Turns over a file of forty lines, asked and decided without an engine.

Knows nothing of screens. Invariant: a proposal holds exactly the lines it is given.
"""

from collections.abc import Sequence

from app.editing.diff import make_hunks
from app.editing.document import Document, open_bytes
from app.editing.language import TEXT
from app.editing.pipeline import EditOrder, EditPlan, Proposal, check_result
from app.editing.prompt import Budget, build_prompt
from app.editing.result import make_result
from app.editing.review import Decision
from app.editing.turns import Turns
from app.engine_client import EngineDescription
from editor_engine.events import Stats

YES, NO, OPEN = Decision.ACCEPTED, Decision.REJECTED, Decision.UNDECIDED
BASE = [f"line {number}" for number in range(40)]


def joined(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def document(lines: Sequence[str] = BASE) -> Document:
    return open_bytes(joined(lines), "f.txt")


def changed(lines: Sequence[str], *places: int, to: str = "new") -> list[str]:
    return [f"{to} {at}" if at in places else line for at, line in enumerate(lines)]


def proposal(base: Document, lines: Sequence[str]) -> Proposal:
    """What a run would propose for these lines."""
    engine = EngineDescription("m", None, None, None, "exact", "strict", None)
    plan = EditPlan(
        base, EditOrder("Do."), TEXT, None, build_prompt(base.lines, "Do.", TEXT), Budget(1, 1, None), engine
    )
    result = make_result(base, joined(lines).decode())
    stats = Stats(1, 0, 1, None, None, None, 1.0, 1, 0, 0)
    return Proposal(plan, result, make_hunks(result), check_result(plan, result), stats)


def decided(turns: Turns, *decisions: Decision) -> Turns:
    last = turns.current
    assert last is not None and last.review is not None
    review = last.review
    for index, decision in enumerate(decisions, 1):
        review = review.decide(index, decision) if decision is not Decision.UNDECIDED else review
    return turns.decided(review)
