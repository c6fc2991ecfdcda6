"""One saved file: what is asked of it, the edit by the pipeline, and the result against the file as it was saved.

    open -> take triggers out -> `pipeline.plan_edit` -> `pipeline.run_edit` on the file without triggers
         -> the reply against the file with them: taking them out is part of the diff, and no work of the model

Writes nothing. Knows nothing of queues or events. Invariant: an edit that changes nothing but triggers is no edit.
"""

import os
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from app.editing.alignment import Match
from app.editing.checks import CheckWarning
from app.editing.diff import Hunk, make_hunks
from app.editing.document import Document, open_bytes, open_document
from app.editing.language import detect_language
from app.editing.pipeline import EditOrder, Proposal, plan_edit, run_edit
from app.editing.result import Result, matched_result
from app.engine_client import EngineClient
from app.errors import FileUndecodableError, NotAFileError
from app.paths import shown
from app.watch.triggers import Triggered, find_triggers, instruction_of, may_have_triggers
from editor_engine.events import Stats
from editor_engine.requests import CancelFlag


@dataclass(frozen=True)
class EditLimits:
    """Options of an edit that are the same for every file of a watch."""

    strict: bool = False
    draft: bool = True
    max_deletions: int | None = None


@dataclass(frozen=True)
class Asked:
    """A file as it was saved, and what is asked of it."""

    document: Document
    """With its triggers."""
    bare: Document
    """Without: what the model sees. The same object where there are none."""
    lines: tuple[int, ...]
    """0-based line of `document` for every line of `bare`; empty where there are no triggers."""
    instruction: str


@dataclass(frozen=True)
class Edited:
    """What the model made of a file."""

    asked: Asked
    result: Result
    """Against the file with its triggers."""
    hunks: tuple[Hunk, ...]
    """At least one."""
    warnings: tuple[CheckWarning, ...]
    """Lines of the source are those of the file with its triggers."""
    model: str
    stats: Stats


def open_saved(path: str) -> Document:
    """The file at a path without links. Raises FileError; NotAFileError where a link has taken its place."""
    try:
        document = open_document(path)
    except FileUndecodableError as error:  # its sentence names an option that a watch does not have
        raise FileUndecodableError(
            f"{shown(path)} is in no encoding that a watch can tell; `redraft edit` has --encoding for it."
        ) from error
    if os.fspath(document.target or "") != path:
        raise NotAFileError(f"{shown(path)} leads elsewhere now; links are not followed.")
    return document


def asked_of(document: Document, standing: str | None) -> Asked | None:
    """What a saved file asks for, by its triggers and its standing instruction; None for nothing."""
    none = Triggered((), ())
    language = detect_language(document.name, document.lines[0])
    found = find_triggers(document.lines, language) if may_have_triggers(document.data) else none
    if not found.triggers:
        return None if standing is None else Asked(document, document, (), standing)
    bare = _without(document, found)
    return Asked(document, bare, tuple(line for line, _ in found.kept), instruction_of(found.triggers, standing))


def _without(document: Document, found: Triggered) -> Document:
    """The document without its triggers; lines they did not stand on keep their bytes."""
    codec = document.codec
    pieces: list[bytes] = []
    for number, text in found.kept:
        line = document.source_lines[number]
        pieces.append(line.raw if line.text == text else codec.encode(text + line.ending))
    data = b"".join(pieces) or codec.encode("\n")  # a file of nothing but triggers: an empty line to write on
    if not data.startswith(codec.bom):
        data = codec.bom + data
    bare = open_bytes(data, document.name, codec.name)
    return replace(bare, target=document.target)


async def edit_saved(asked: Asked, client: EngineClient, limits: EditLimits, cancel: CancelFlag) -> Edited:
    """Run the edit. Raises what the pipeline raises: UnchangedError, RefusedError, InterruptedByUserError, ..."""
    plan = await plan_edit(asked.bare, _order(asked, limits), client)
    proposal: Proposal | None = None
    async with aclosing(run_edit(plan, client, cancel)) as events:
        async for event in events:
            if isinstance(event, Proposal):
                proposal = event
    assert proposal is not None  # run_edit ends with one or raises
    result, warnings = proposal.result, proposal.report.warnings
    if asked.bare is not asked.document:
        result = _with_triggers(asked, result)
        warnings = tuple(_placed(warning, asked.lines) for warning in warnings)
    return Edited(asked, result, make_hunks(result), warnings, plan.engine.model_id, proposal.stats)


def _with_triggers(asked: Asked, result: Result) -> Result:
    """A result of the bare file as one of the file itself: lines that were and are the same in both stay so."""
    old, bare = asked.document.source_lines, asked.bare.source_lines
    matches: list[Match] = []
    for match in result.matches:
        for step in range(match.length):
            at, new = match.old + step, match.new + step
            if at >= len(asked.lines) or old[asked.lines[at]].raw != bare[at].raw:
                continue
            line = asked.lines[at]
            last = matches[-1] if matches else Match(0, 0, 0)
            if last.length and (last.old + last.length, last.new + last.length) == (line, new):
                matches[-1] = Match(last.old, last.new, last.length + 1)
            else:
                matches.append(Match(line, new, 1))
    return matched_result(asked.document, [line.text for line in result.lines], matches)


async def warm_up(asked: Asked, client: EngineClient, limits: EditLimits, cancel: CancelFlag) -> None:
    """Have the engine read the prompt of an edit that may follow, so that it starts at once."""
    plan = await plan_edit(asked.bare, _order(asked, limits), client)
    async with aclosing(client.complete(plan.prompt.request(0), cancel)) as events:
        async for _ in events:
            pass


def _order(asked: Asked, limits: EditLimits) -> EditOrder:
    return EditOrder(
        instruction=asked.instruction,
        draft=limits.draft,
        strict=limits.strict,
        max_deletions=limits.max_deletions,
    )


def _placed(warning: CheckWarning, lines: Sequence[int]) -> CheckWarning:
    """A warning about lines of the bare file, in the numbers of the file itself."""
    if not warning.in_source:
        return warning
    return replace(warning, lines=tuple(lines[line - 1] + 1 for line in warning.lines if line <= len(lines)))
