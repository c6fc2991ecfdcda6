"""THE flow of an edit, from an opened file to a checked proposal; nothing is written here.

    document + order -> region -> prompt -> count and budget      (`plan_edit`)
    -> engine: prefill, [draft, verify, rewind]*, text            (`editor_engine.engine`, through an EngineClient)
    -> extract -> align with the source -> hunks -> checks        (`run_edit`)
    -> review -> apply                                            (`review`, `apply`; the front end's call)

Knows no terminal and no file system. Invariant: what comes out is a whole proposal with its hunks and warnings, or an
AppError; a reply that was cut, empty or endless never becomes a proposal.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from app.editing.checks import CheckReport, run_checks
from app.editing.diff import Hunk, make_hunks
from app.editing.document import Document
from app.editing.extract import extract_fenced, extract_reply
from app.editing.language import Language, detect_language
from app.editing.live import LiveDiff
from app.editing.mending import touched
from app.editing.prompt import Budget, ContextFile, EditPrompt, build_prompt
from app.editing.region import Region, region_of_lines, region_of_symbol
from app.editing.result import Result, make_result
from app.editing.review import Decision, Review
from app.engine_client import EngineClient, EngineDescription
from app.errors import EngineUnreachableError, RegionError, UnchangedError, UsageError
from editor_engine.events import EngineEvent, Finished, FinishReason, Stats, Text
from editor_engine.requests import CancelFlag


@dataclass(frozen=True)
class EditOrder:
    """What the user asked for."""

    instruction: str
    lines: str | None = None
    """`A:B`, 1-based and inclusive; at most one of `lines` and `symbol`."""
    symbol: str | None = None
    context: tuple[ContextFile, ...] = ()
    """Files the model may read."""
    draft: bool = True
    score: bool = False
    """Report the output's mean log-likelihood."""
    strict: bool = False
    """New syntax errors block."""
    max_deletions: int | None = None
    """Most lines that may go; None takes the larger of 30 % and 20."""


@dataclass(frozen=True)
class EditPlan:
    """Everything known before the model runs."""

    document: Document
    order: EditOrder
    language: Language
    region: Region | None
    prompt: EditPrompt
    budget: Budget
    engine: EngineDescription


@dataclass(frozen=True)
class Proposal:
    """A whole reply as hunks to review; the last event of `run_edit`."""

    plan: EditPlan
    result: Result
    hunks: tuple[Hunk, ...]
    """At least one."""
    report: CheckReport
    stats: Stats


@dataclass(frozen=True)
class HunkReady:
    """A hunk of the proposal to come is final: it may be decided while the rest is generated."""

    hunk: Hunk


@dataclass(frozen=True)
class Replied:
    """The engine has finished; what the reply amounts to comes next, a Proposal or an error."""

    stats: Stats


async def plan_edit(document: Document, order: EditOrder, client: EngineClient) -> EditPlan:
    """Choose the region, build the prompt, load the engine and check the budget.

    Raises UsageError, RegionError, FileTooLongError, and what the client raises.
    """
    if not order.instruction.strip():
        raise UsageError("The instruction is empty; say what to change.")
    if any("\ud800" <= char <= "\udfff" for char in order.instruction):
        raise UsageError("The instruction is not valid UTF-8 text.")
    language = detect_language(document.name, document.lines[0])
    region = _region(document, order, language)
    prompt = build_prompt(document.lines, order.instruction, language, region, order.context)
    engine = await client.describe()
    if region is not None and not engine.capabilities.region:
        raise RegionError(
            f"A part of a file cannot be edited by {engine.reached}: it does not let us open its reply. Leave out "
            "--lines and --symbol, or use another engine."
        )
    counts = await client.count(prompt.request(0))
    budget = Budget(counts.prompt, counts.source, engine.context_length, counts.estimated)
    budget.check(region is not None)
    return EditPlan(document, order, language, region, prompt, budget, engine)


async def run_edit(
    plan: EditPlan, client: EngineClient, cancel: CancelFlag, live: LiveDiff | None = None
) -> AsyncGenerator[EngineEvent | HunkReady | Replied | Proposal, None]:
    """Decode and turn the reply into a proposal. Passes the engine's events on, then Replied, then a Proposal.

    Hunks that are final before the reply has ended come as HunkReady; the proposal begins with exactly those. `live` is
    the diff to keep up to date, of this plan and not fed yet, for a front end that shows it.

    Raises RefusedError for a reply that is no new file, UnencodableError, UnchangedError for one that changes nothing,
    InterruptedByUserError, and what the client raises.
    """
    live = live or live_diff(plan)
    text = [plan.prompt.carried]
    finished: Finished | None = None
    for hunk in live.hunks:
        yield HunkReady(hunk)
    request = plan.prompt.request(plan.budget.max_tokens, draft=plan.order.draft, score=plan.order.score)
    async with aclosing(client.complete(request, cancel)) as events:
        async for event in events:
            if isinstance(event, Finished):
                finished = event
            yield event
            if isinstance(event, Text):
                text.append(event.text)
                for hunk in live.feed(event):
                    yield HunkReady(hunk)
    if finished is None:
        raise EngineUnreachableError("The engine ended its answer without saying why; nothing was changed.")
    yield Replied(finished.stats)

    lines = _extracted(plan, "".join(text), finished.reason)
    result = make_result(plan.document, "".join(f"{line}\n" for line in lines), live.locked, live.pins)
    hunks = make_hunks(result)
    if not hunks:
        raise UnchangedError("No change needed: the model's file is the same, byte for byte.")
    yield Proposal(plan, result, hunks, check_result(plan, result), finished.stats)


def _extracted(plan: EditPlan, text: str, reason: FinishReason) -> list[str]:
    """The new file's lines."""
    source = plan.document.lines
    if not plan.engine.capabilities.prefill:
        return extract_fenced(text, reason, source, plan.language)
    return extract_reply(text, reason, plan.prompt, source, plan.language)


def live_diff(plan: EditPlan) -> LiveDiff:
    """The diff of the plan's reply, before the first text."""
    return LiveDiff(plan.document, plan.prompt, opened=plan.engine.capabilities.prefill)


def check_result(plan: EditPlan, result: Result) -> CheckReport:
    """Every check of a result against the file it was made from."""
    return _checked(plan, [line.text for line in result.lines])


def check_review(plan: EditPlan, review: Review) -> CheckReport:
    """Every check of what was accepted; with hunks undecided, of all but for what only rejected ones raise."""
    if not review.undecided:
        return _checked(plan, review.lines())
    report = _checked(plan, review.all_lines())
    rejected = {item.hunk.index for item in review.items if item.decision is Decision.REJECTED}
    about = {warning: set(touched(review, warning)) for warning in report.warnings}
    return replace(report, warnings=tuple(warning for warning, at in about.items() if not at or at - rejected))


def _checked(plan: EditPlan, lines: Sequence[str]) -> CheckReport:
    return run_checks(
        plan.document.lines,
        lines,
        plan.order.instruction,
        plan.language,
        region=plan.region,
        max_deletions=plan.order.max_deletions,
        strict=plan.order.strict,
    )


def _region(document: Document, order: EditOrder, language: Language) -> Region | None:
    if order.lines is not None and order.symbol is not None:
        raise UsageError("--lines and --symbol both choose a region; give one of them.")
    if order.lines is not None:
        return region_of_lines(order.lines, len(document.lines))
    if order.symbol is not None:
        return region_of_symbol(order.symbol, document.lines, language)
    return None
