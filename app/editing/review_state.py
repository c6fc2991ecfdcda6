"""A review as data that can be stored, and back.

Knows nothing of where it is stored. Invariant: what comes back joins to the same bytes and has the same decisions, or
ValueError says what is wrong; steps to take back are not kept.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.editing.diff import Change, Hunk, hunk_of
from app.editing.document import Document
from app.editing.encoding import SourceLine
from app.editing.review import Decision, Item, Review
from app.editing.rework import changed_positions, picked_changes
from app.errors import AppError


def review_to_json(review: Review) -> dict[str, object]:
    """The review in JSON's own kinds; the document is not in it."""
    return {"received": review.received, "items": [_item_to_json(item) for item in review.items]}


def review_from_json(document: Document, data: Mapping[str, Any]) -> Review:
    """The review of that document. Raises ValueError for data that is damaged or of another document."""
    try:
        items = [_item_from_json(document, item) for item in data["items"]]
        received = data["received"]
        ends = [0]
        for item in items:
            if item.hunk.old_first < ends[-1]:
                raise ValueError("its hunks overlap")
            ends.append(item.hunk.old_end)
    except (KeyError, TypeError, AttributeError, UnicodeError, binascii.Error, AppError) as error:
        raise ValueError(f"it is damaged ({type(error).__name__})") from error
    if not isinstance(received, int) or not 0 <= received <= len(items):
        raise ValueError("its number of hunks is wrong")
    return replace(Review.of(document, items), received=received)


def _item_to_json(item: Item) -> dict[str, object]:
    return {
        "first": item.hunk.old_first,
        "end": item.hunk.old_end,
        "changes": [
            {
                "first": change.first,
                "end": change.end,
                "added": [[line.text, line.ending, base64.b64encode(line.raw).decode()] for line in change.added],
            }
            for change in item.hunk.changes
        ],
        "decision": item.decision.value,
        "chosen": None if item.chosen is None else sorted(item.chosen),
    }


def _item_from_json(document: Document, data: Mapping[str, Any]) -> Item:
    hunk = _hunk_from_json(document, data)
    decision = Decision(data["decision"])
    chosen = data["chosen"]
    if chosen is None:
        return Item(hunk, decision)
    positions = frozenset(chosen)
    if not positions <= changed_positions(hunk):
        raise ValueError("a chosen line is no changed one")
    picked_changes(document, hunk, positions)  # raises for a choice that cannot be made
    return Item(hunk, decision, positions)


def _hunk_from_json(document: Document, data: Mapping[str, Any]) -> Hunk:
    first, end = data["first"], data["end"]
    changes: list[Change] = []
    at = first
    for change in data["changes"]:
        made = Change(change["first"], change["end"], tuple(_line(document, line) for line in change["added"]))
        if not at <= made.first <= made.end <= end:
            raise ValueError("a change lies outside of its hunk")
        at = made.end
        changes.append(made)
    if not (changes and 0 <= first <= end <= len(document.source_lines)):
        raise ValueError("a hunk lies outside of the file")
    return hunk_of(document, changes, first, end)


def _line(document: Document, data: Any) -> SourceLine:
    text, ending, encoded = data
    raw = base64.b64decode(encoded, validate=True)
    codec = document.codec
    if codec.decode(raw.removeprefix(codec.bom)) != text + ending:
        raise ValueError("the bytes of a line are not its text")
    return SourceLine(text, ending, raw)
