"""Asking again: go on with a reply that was cut, or do one hunk anew with a note.

Both give a plan or an order for the one flow (`pipeline`), never a flow of their own. Knows nothing of terminals.
Invariant: a continued reply is the text so far and what follows it, read as one; a hunk done anew changes nothing
outside the lines of that hunk.
"""

from dataclasses import replace

from app.editing.diff import Hunk, changes_of
from app.editing.live import LiveDiff
from app.editing.pipeline import EditOrder, EditPlan, Proposal
from app.editing.prompt import Budget, fence_for
from app.editing.region import Anchor, is_blank
from app.editing.review import Review
from app.editing.rework import new_side, with_changes
from app.engine_client import EngineClient
from app.errors import UsageError
from prompts import render


async def continue_plan(plan: EditPlan, text: str, client: EngineClient) -> EditPlan:
    """The plan of going on after a reply that was cut; `text` is all it said.

    The prompt and what is kept of the reply are in the engine's cache still; the last lines are written again.

    Raises FileTooLongError where the context has no room for the rest, and UsageError where nothing can be continued.
    """
    if not plan.engine.capabilities.prefill:
        raise UsageError("This engine cannot go on with a reply; run the instruction again.")
    prompt = plan.prompt
    lines = _safe_lines(text, prompt.anchor)
    if not lines:
        raise UsageError("Nothing of the reply is whole; run the instruction again.")
    carried = "".join(f"{line}\n" for line in lines)
    reached = LiveDiff(plan.document, replace(prompt, carried=carried)).reached
    source_lines = prompt.source.split("\n")
    left = source_lines[max(0, reached + 1 - prompt.source_line) :]
    opened = prompt.prefill.removesuffix(prompt.carried)
    onward = replace(
        prompt,
        prefill=opened + carried,
        carried=carried,
        source="\n".join(left),
        source_line=prompt.source_line + len(source_lines) - len(left),
    )
    counts = await client.count(onward.request(0))
    budget = Budget(counts.prompt, counts.source, plan.budget.context, counts.estimated)
    budget.check(plan.region is not None)
    return replace(plan, prompt=onward, budget=budget)


def _safe_lines(text: str, anchor: Anchor) -> list[str]:
    """The whole lines of a cut reply, up to a place where going on gives what would have come without the cut.

    How a reply ends is seen on whole lines, so one that may begin the anchor is written again; and blank lines are one
    token with the line end before them, so the line that follows has to be known, and not to be blank.
    """
    *lines, following = text.split("\n")
    while lines:
        last = lines[-1]
        if not is_blank(following) and not (anchor.lines and (is_blank(last) or last in anchor.lines)):
            break
        following = lines.pop()
    return lines


def redo_order(plan: EditPlan, hunk: Hunk, note: str) -> EditOrder:
    """The order that does one hunk anew: a region edit of the source lines it changes. Raises UsageError."""
    if not note.strip():
        raise UsageError("The note is empty; say what to do otherwise.")
    first, end = hunk.changes[0].first, hunk.changes[-1].end
    if first == end:  # lines are only added: the ones around them say where
        first, end = max(0, first - 1), min(len(plan.document.lines), end + 1)
    attempt = "\n".join(new_side(hunk))
    instruction = render(
        "edit_redo", instruction=plan.order.instruction, fence=fence_for([attempt]), attempt=attempt, note=note
    )
    return replace(plan.order, instruction=instruction.strip("\n"), lines=f"{first + 1}:{end}", symbol=None)


def redone(review: Review, index: int, proposal: Proposal) -> Review:
    """The review with a hunk done anew by a proposal for its lines, undecided. Raises IndexError."""
    hunk = review.item(index).hunk
    return review.redone(index, with_changes(review.document, hunk, changes_of(proposal.result)))
