"""Turns over a file -> what is kept of them on disk, and back: the same hunks, decisions and figures.

Knows nothing of screens or engines. Invariant: what comes back is worked out again from the saved bytes by the code
that made it, and refused where the outcome is not, byte for byte, what was saved.
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

from app.editing.diff import make_hunks
from app.editing.document import Document, open_bytes, open_document
from app.editing.language import detect_language
from app.editing.pipeline import EditOrder, EditPlan, Proposal, check_result
from app.editing.prompt import Budget, build_prompt
from app.editing.region import Region, region_of_lines
from app.editing.result import make_result
from app.editing.review_state import review_from_json, review_to_json
from app.editing.session_store import SavedSession, SavedTurn
from app.editing.turns import Turn, Turns, derived, unfit_words
from app.engine_client import Capabilities, EngineDescription
from app.errors import AppError, FileMissingError, StateError
from app.json_events import plain_data
from app.paths import shown
from editor_engine.events import Finished, FinishReason
from editor_engine.wire import event_from_json, event_to_json


class Standing(Enum):
    """How the file of a saved session is today."""

    SAME = "same"
    CHANGED = "changed"
    """Not what was read, but every change of the session still fits."""
    STALE = "stale"
    """Not what was read, and a change no longer fits."""
    GONE = "gone"
    """Missing or unreadable."""


def saved_session(turns: Turns) -> SavedSession:
    """What to keep of a sitting over a file."""
    document = turns.document
    return SavedSession(
        path=str(document.target) if document.target is not None else "",
        name=os.path.abspath(document.name),
        encoding=document.codec.name,
        source=document.data,
        turns=tuple(_saved_turn(turn) for turn in turns.turns),
        base=turns.base,
    )


def resumed_turns(saved: SavedSession) -> Turns:
    """The sitting as it was left, over the file as it was read then; the newest turn with something left is current.

    Raises StateError when what was saved does not lead to the same bytes again.
    """
    try:
        document = _as_it_was(saved)
        turns: list[Turn] = []
        for number, turn in enumerate(saved.turns, 1):
            if not 0 <= turn.based_on < number:
                raise ValueError(f"turn {number} is based on turn {turn.based_on}")
            turns.append(_resumed_turn(document, number, turn))
        return Turns(document, tuple(turns), reviewed=len(turns)).switch_base(saved.base).taken_up()
    except (KeyError, TypeError) as error:
        raise StateError(f"The session on {shown(saved.name)} cannot be opened again: a part is missing.") from error
    except (ValueError, IndexError, AppError) as error:
        reason = str(error).rstrip(".")
        raise StateError(f"The session on {shown(saved.name)} cannot be opened again: {reason}.") from error


def standing(saved: SavedSession) -> tuple[Standing, str]:
    """How the file is today, with a sentence that says what it means for the session."""
    try:
        now = open_document(saved.name, saved.encoding)
    except FileMissingError:
        return Standing.GONE, "The file is gone; the changes can be looked at and exported."
    except AppError as error:
        return Standing.GONE, f"{error} The changes can be looked at and exported."
    if now.data == saved.source:
        return Standing.SAME, "The file is as it was."
    try:
        turns = replace(resumed_turns(saved), document=now)
    except AppError as error:
        return Standing.STALE, str(error)
    lost = sum(turns.unfit(turn.number) for turn in turns.waiting if turn.based_on == 0)
    if lost:
        return Standing.STALE, f"The file was changed since; {unfit_words(lost)}."
    return Standing.CHANGED, "The file was changed since; every change of this session still fits."


def _as_it_was(saved: SavedSession) -> Document:
    """The file as it was read then: with its present owner and mode where it is still the same."""
    with contextlib.suppress(AppError):
        now = open_document(saved.name, saved.encoding)
        if now.data == saved.source:
            return now
    return replace(open_bytes(saved.source, saved.name, saved.encoding), target=Path(saved.path))


def _saved_turn(turn: Turn) -> SavedTurn:
    proposal, facts = turn.proposal, dict[str, Any]()
    if proposal is not None:
        order = proposal.plan.order
        facts = {
            "engine": plain_data(proposal.plan.engine),
            "budget": plain_data(proposal.plan.budget),
            "finished": event_to_json(Finished(FinishReason.STOP, (), proposal.stats)),
            "strict": order.strict,
            "max_deletions": order.max_deletions,
        }
    if turn.review is not None:
        facts["review"] = review_to_json(turn.review)
    return SavedTurn(
        instruction=turn.instruction,
        lines=None if turn.region is None else f"{turn.region.first}:{turn.region.last}",
        based_on=turn.based_on,
        base=turn.base.data,
        asked_of=None if proposal is None else proposal.plan.document.data,
        proposed=None if proposal is None else proposal.result.data,
        failure=turn.failure,
        facts={**facts, "applied": turn.applied},
    )


def _resumed_turn(document: Document, number: int, saved: SavedTurn) -> Turn:
    base, facts = derived(document, saved.base), saved.facts
    asked_of = base if saved.asked_of is None else derived(document, saved.asked_of)
    region = None if saved.lines is None else region_of_lines(saved.lines, len(asked_of.lines))
    turn = Turn(
        number, saved.instruction, region, base, saved.based_on, failure=saved.failure, applied=facts["applied"]
    )
    if saved.proposed is not None:
        turn = replace(turn, proposal=_proposal(asked_of, region, saved, saved.proposed))
    return replace(turn, review=review_from_json(base, facts["review"])) if "review" in facts else turn


def _proposal(base: Document, region: Region | None, saved: SavedTurn, proposed: bytes) -> Proposal:
    facts = saved.facts
    language = detect_language(base.name, base.lines[0])
    order = EditOrder(saved.instruction, saved.lines, strict=facts["strict"], max_deletions=facts["max_deletions"])
    plan = EditPlan(
        base,
        order,
        language,
        region,
        build_prompt(base.lines, saved.instruction, language, region, ()),
        Budget(**facts["budget"]),
        _engine(facts["engine"]),
    )
    locked = (0, 0) if region is None else (region.first - 1, len(base.lines) - region.last)
    result = make_result(base, derived(base, proposed).text, locked)
    hunks = make_hunks(result)
    if result.data != proposed or not hunks:
        raise ValueError("its result comes out differently now")
    finished = event_from_json(facts["finished"])
    if not isinstance(finished, Finished):
        raise ValueError("its figures are damaged")
    return Proposal(plan, result, hunks, check_result(plan, result), finished.stats)


def _engine(facts: Mapping[str, Any]) -> EngineDescription:
    capabilities = Capabilities(**facts["capabilities"])
    return EngineDescription(**{**facts, "notes": tuple(facts["notes"]), "capabilities": capabilities})
