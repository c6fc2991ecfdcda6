"""How the events of a watch are worded: sentences for people, fields for programs.

Knows no stream. Invariant: what names a file is safe to print, and unknown is null.
"""

from typing import Any

from app.json_events import plain_data
from app.paths import shown
from app.watch.events import (
    Applied,
    Failed,
    Held,
    Note,
    Proposed,
    Ready,
    Status,
    StatusChanged,
    Superseded,
    Timing,
    Unchanged,
    WatchEvent,
)


def event_fields(event: WatchEvent) -> tuple[str, dict[str, Any]]:
    """(type, fields) of an event, as the machine interface has it."""
    match event:
        case Ready():
            return "ready", _data(event)
        case StatusChanged():
            return "status", _data(event.status)
        case Proposed():
            more = {"timing": _data(event.timing), "why_not_applied": event.why_not_applied}
            return "proposal", {**_data(event.proposal), **more}
        case Applied():
            return "applied", _data(event)
        case Unchanged():
            return "unchanged", _data(event)
        case Superseded():
            return "superseded", _data(event)
        case Held():
            return "held", _data(event)
        case Failed():
            error = {"code": event.error.code, "message": str(event.error)}
            return "failed", {"path": event.path, "error": error}
        case Note():
            return "note", {"message": event.sentence}


def event_sentence(event: WatchEvent) -> str:
    """One line for a person."""
    match event:
        case Ready():
            how = "" if event.events else ", looked at again and again"
            roots = ", ".join(map(shown, event.roots))
            found = f"{_count(event.files, 'file')} in {_count(event.folders, 'folder')}"
            return f"Watching {roots}: {found}{how}, after {event.seconds:.1f} s."
        case StatusChanged():
            return status_sentence(event.status)
        case Proposed():
            return _proposed(event)
        case Applied():
            return f"Applied to {shown(event.path)}, {_time(event.timing)}; `redraft undo` takes it back."
        case Unchanged():
            return f"{shown(event.path)}: no change needed."
        case Superseded():
            return f"{shown(event.path)} was saved again; the edit starts anew."
        case Held():
            return f"{shown(event.path)} was edited too often lately; it is held back for {event.for_s:.0f} s."
        case Failed():
            path, said = shown(event.path), str(event.error)
            return said if said.startswith(path) else f"{path}: {said}"  # errors of files name them already
        case Note():
            return event.sentence


def status_sentence(status: Status) -> str:
    """The state in a few words."""
    parts = [status.state if status.running is None else f"editing {shown(status.running)}"]
    if status.queued:
        parts.append(f"{len(status.queued)} queued")
    if status.pending:
        parts.append(f"{status.pending} to review")
    return ", ".join(parts)


def _proposed(event: Proposed) -> str:
    stored = event.proposal
    said = f"{shown(stored.path)}: {_count(stored.hunks, 'hunk')}, {_time(event.timing)}; `redraft review {stored.id}`."
    warned = [f"({warning['code']}) {warning['message']}" for warning in stored.warnings]
    why = event.why_not_applied
    if why is not None and why not in warned:
        warned.append(f"Not applied: {why}")
    return " ".join([said, *warned])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _time(timing: Timing) -> str:
    parts = [f"settled {timing.settle_s:.2f}"]
    if timing.queue_s >= 0.05:
        parts.append(f"waited {timing.queue_s:.1f}")
    if timing.prefill_s is not None and timing.decode_s is not None:
        parts += [f"read {timing.prefill_s:.1f}", f"wrote {timing.decode_s:.1f}"]
    return f"{timing.total_s:.1f} s after the save ({', '.join(parts)})"


def _data(record: object) -> dict[str, Any]:
    fields: dict[str, Any] = plain_data(record)
    return fields
