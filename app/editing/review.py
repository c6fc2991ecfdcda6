"""What was decided about a diff, hunk by hunk and line by line; every step gives a new state and can be taken back.

Knows nothing of terminals or writing. Invariant: `undo` after any step is the state before, `redo` after `undo` the
state after; and the bytes of a review are the source with exactly the accepted parts in it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from app.editing.diff import Change, Hunk, group_changes, join, number
from app.editing.document import Document
from app.editing.rework import changed_positions, picked_changes, rewritten, split_hunk


class Decision(StrEnum):
    """What was decided about one hunk."""

    UNDECIDED = "undecided"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True)
class Item:
    """One hunk under review."""

    hunk: Hunk
    decision: Decision = Decision.UNDECIDED
    chosen: frozenset[int] | None = None
    """Positions in `hunk.lines` of the removed and added lines that accepting takes; None takes all of them."""

    def takes(self, position: int) -> bool:
        """True when accepting the hunk makes the change of that line."""
        return self.chosen is None or position in self.chosen

    def changes(self, document: Document) -> tuple[Change, ...]:
        """What accepting the hunk changes."""
        return self.hunk.changes if self.chosen is None else picked_changes(document, self.hunk, self.chosen)


State = tuple[Item, ...]


@dataclass(frozen=True)
class Review:
    """A diff and what was decided so far."""

    document: Document
    items: State
    received: int
    """How many hunks of the proposal are in it, before they were split."""
    earlier: tuple[State, ...] = ()
    """States to go back to, oldest first."""
    later: tuple[State, ...] = ()
    """States that were gone back from, the next one last."""

    @classmethod
    def start(cls, document: Document, hunks: Sequence[Hunk] = ()) -> "Review":
        """A review with nothing decided."""
        return cls.of(document, [Item(hunk) for hunk in hunks])

    @classmethod
    def of(cls, document: Document, items: Sequence[Item]) -> "Review":
        """A review with these decisions and no step to take back."""
        return cls(document, _numbered(tuple(items)), len(items))

    def extended(self, hunks: Sequence[Hunk]) -> "Review":
        """The review with more hunks of the same proposal at its end, undecided; no step, so undo leaves them."""
        if not hunks:
            return self
        new = tuple(Item(hunk) for hunk in hunks)
        return replace(
            self,
            items=_numbered((*self.items, *new)),
            received=self.received + len(hunks),
            earlier=tuple(_numbered((*state, *new)) for state in self.earlier),
            later=tuple(_numbered((*state, *new)) for state in self.later),
        )

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """Every hunk, in order; `index` is its place, from 1."""
        return tuple(item.hunk for item in self.items)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """One for each hunk."""
        return tuple(item.decision for item in self.items)

    @property
    def undecided(self) -> int:
        """How many hunks are undecided."""
        return self.decisions.count(Decision.UNDECIDED)

    def item(self, index: int) -> Item:
        """The hunk whose `index` (1-based) this is. Raises IndexError for a hunk that is not there."""
        if not 1 <= index <= len(self.items):
            raise IndexError(f"there is no hunk {index}")
        return self.items[index - 1]

    def decide(self, index: int, decision: Decision) -> "Review":
        """Decide a hunk as a whole. This and every step below: IndexError for a hunk that is not there."""
        return self._put(index, Item(self.item(index).hunk, decision))

    def toggle(self, index: int) -> "Review":
        """Accept, or, when it is accepted, reject a hunk; lines that were chosen stay chosen."""
        item = self.item(index)
        accepted = item.decision is Decision.ACCEPTED
        return self._put(index, replace(item, decision=Decision.REJECTED if accepted else Decision.ACCEPTED))

    def decide_rest(self, decision: Decision, held: Collection[int] = ()) -> "Review":
        """Decide every hunk that is undecided, as one step; those in `held` have to be decided one by one."""
        return self._step(
            tuple(
                replace(item, decision=decision)
                if item.decision is Decision.UNDECIDED and item.hunk.index not in held
                else item
                for item in self.items
            )
        )

    def choose(self, index: int, chosen: Collection[int]) -> "Review":
        """Accept some lines of a hunk, given by their positions; none of them rejects it.

        Raises UnencodableError, and ReplyEmptyError where nothing would be left of the file.
        """
        hunk = self.item(index).hunk
        changed = changed_positions(hunk)
        taken = changed & frozenset(chosen)
        if not taken or not picked_changes(self.document, hunk, taken):
            return self.decide(index, Decision.REJECTED)
        return self._put(index, Item(hunk, Decision.ACCEPTED, None if taken == changed else taken))

    def split(self, index: int) -> "Review":
        """A hunk for each change of a hunk, undecided; the same review where it has only one."""
        parts = split_hunk(self.document, self.item(index).hunk)
        return self if len(parts) == 1 else self._put(index, *map(Item, parts))

    def edit(self, index: int, lines: Sequence[str]) -> "Review":
        """Accept a hunk with other text in place of all it shows of the new file; the source's own text rejects it.

        Raises UnencodableError, and ReplyEmptyError where nothing would be left of the file.
        """
        hunk = rewritten(self.document, self.item(index).hunk, lines)
        if hunk is None:
            return self.decide(index, Decision.REJECTED)
        return self._put(index, Item(hunk, Decision.ACCEPTED))

    def redone(self, index: int, hunk: Hunk | None) -> "Review":
        """Put another hunk in a hunk's place, undecided; None, where nothing is to change there, rejects it."""
        if hunk is None:
            return self.decide(index, Decision.REJECTED)
        return self._put(index, Item(hunk))

    def reworked(self, hunks: Sequence[Hunk | None]) -> "Review":
        """Put others in place of all hunks, as one step, decisions kept; None rejects the hunk that is there."""
        return self._step(
            tuple(
                Item(item.hunk, Decision.REJECTED)
                if hunk is None
                else (item if hunk == item.hunk else Item(hunk, item.decision))
                for item, hunk in zip(self.items, hunks, strict=True)
            )
        )

    def undo(self) -> "Review":
        """The state before the last step; the same where there was none."""
        if not self.earlier:
            return self
        return replace(self, items=self.earlier[-1], earlier=self.earlier[:-1], later=(*self.later, self.items))

    def redo(self) -> "Review":
        """The state that `undo` went back from; the same where there is none."""
        if not self.later:
            return self
        return replace(self, items=self.later[-1], earlier=(*self.earlier, self.items), later=self.later[:-1])

    @property
    def accepted(self) -> tuple[Hunk, ...]:
        """What was accepted, as hunks of the document: split and shortened ones are put together anew."""
        return self._taken(Decision.ACCEPTED)

    @property
    def wanted(self) -> tuple[Hunk, ...]:
        """What was not rejected, as `accepted` has it."""
        return self._taken(Decision.ACCEPTED, Decision.UNDECIDED)

    def data(self) -> bytes:
        """The file's bytes with the accepted parts applied; undecided ones are not."""
        return join(self.document, self.accepted)

    def lines(self) -> tuple[str, ...]:
        """The lines of `data`."""
        return self._changed(self.accepted)

    def all_lines(self) -> tuple[str, ...]:
        """The lines with every hunk, whatever was decided: what `new_line` of the hunks counts."""
        return self._changed(self.hunks)

    def _changed(self, hunks: Sequence[Hunk]) -> tuple[str, ...]:
        lines: list[str] = []
        at = 0
        for change in (change for hunk in hunks for change in hunk.changes):
            lines += self.document.lines[at : change.first]
            lines += [line.text for line in change.added]
            at = change.end
        return (*lines, *self.document.lines[at:])

    def _taken(self, *decisions: Decision) -> tuple[Hunk, ...]:
        taken = (item for item in self.items if item.decision in decisions)
        return group_changes(self.document, [change for item in taken for change in item.changes(self.document)])

    def _put(self, index: int, *items: Item) -> "Review":
        self.item(index)
        return self._step((*self.items[: index - 1], *items, *self.items[index:]))

    def _step(self, items: State) -> "Review":
        items = _numbered(items)
        if items == self.items:
            return self
        return replace(self, items=items, earlier=(*self.earlier, self.items), later=())


def _numbered(items: State) -> State:
    hunks = number(item.hunk for item in items)
    return tuple(
        item if hunk is item.hunk else replace(item, hunk=hunk) for item, hunk in zip(items, hunks, strict=True)
    )
