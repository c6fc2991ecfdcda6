"""The turns of one sitting over a file: what was asked of which base, what came of it, and what was decided.

Knows nothing of terminals, engines or writing. Invariant: every change gives a new value; a turn's base is the file
itself or what an earlier turn's accepted hunks make of it, and never changes afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.editing.alignment import align
from app.editing.diff import Change, Hunk, hunk_of, make_hunks
from app.editing.document import Document, reparse
from app.editing.rebase import moved_hunks
from app.editing.region import Region
from app.editing.result import Result
from app.editing.review import Decision, Item, Review

if TYPE_CHECKING:  # a file is open before anything is asked of it
    from app.editing.pipeline import Proposal


@dataclass(frozen=True)
class Turn:
    """One instruction and what became of it."""

    number: int
    """1-based."""
    instruction: str
    region: Region | None
    """Lines of `base` that were allowed to change; None for all of them."""
    base: Document
    """What the model was given."""
    based_on: int
    """Number of the turn whose result the base is; 0 for the file itself."""
    proposal: "Proposal | None" = None
    """None until there is one."""
    review: Review | None = None
    failure: str | None = None
    """The sentence that says why there is no proposal."""
    applied: bool = False
    """Its accepted hunks are in the file, and nothing else of it is left."""


@dataclass(frozen=True)
class Turns:
    """A file and everything that was asked of it."""

    document: Document
    """The file as it was read."""
    turns: tuple[Turn, ...] = ()
    base: int = 0
    """Number of the turn whose result the next instruction works on; 0 is the file itself."""

    @property
    def last(self) -> Turn | None:
        """The newest turn."""
        return self.turns[-1] if self.turns else None

    def document_of(self, number: int) -> Document:
        """What turn `number` left: its base with its accepted hunks. 0 is the file."""
        if number == 0:
            return self.document
        turn = self.turns[number - 1]
        return turn.base if turn.review is None else derived(turn.base, turn.review.data())

    def begin(self, instruction: str, region: Region | None) -> "Turns":
        """A new turn on the present base."""
        turn = Turn(len(self.turns) + 1, instruction, region, self.document_of(self.base), self.base)
        return replace(self, turns=(*self.turns, turn))

    def proposed(self, proposal: "Proposal") -> "Turns":
        """The newest turn has its proposal, with nothing decided yet unless it was while it streamed."""
        review = self._newest().review or Review.start(proposal.plan.document, proposal.hunks)
        return self._with(replace(self._newest(), proposal=proposal, review=review))

    def failed(self, sentence: str) -> "Turns":
        """The newest turn ended without a proposal."""
        return self._with(replace(self._newest(), failure=sentence, review=None))

    def again(self) -> "Turns":
        """The newest turn goes on after it had failed."""
        return self._with(replace(self._newest(), failure=None))

    def decided(self, review: Review) -> "Turns":
        """What was decided about the newest turn; nothing once it has failed: a cut reply never applies."""
        if self._newest().failure is not None:
            return self
        return self._with(replace(self._newest(), review=review))

    def switch_base(self, number: int) -> "Turns":
        """Let the next instruction work on what turn `number` left. Raises IndexError for a turn that is not there."""
        if not 0 <= number <= len(self.turns):
            raise IndexError(f"there is no turn {number}")
        return replace(self, base=number)

    def on_accepted(self, region: Region | None) -> "tuple[Turns, Region | None]":
        """Let the next instruction work on what was accepted of the newest turn and is not in the file yet.

        `region` is one of the newest turn's base; it comes back where it is then. Without such hunks, nothing changes.
        """
        turn = self.last
        if turn is None or turn.review is None or turn.applied or self.base != turn.based_on:
            return self, region
        changes = [change for hunk in turn.review.accepted for change in hunk.changes]
        if not changes:
            return self, region
        return self.switch_base(turn.number), None if region is None else moved_region(region, changes)

    def to_apply(self) -> tuple[Hunk, ...]:
        """The hunks of the file itself that write what the newest turn left; none where nothing is accepted."""
        turn = self._newest()
        if turn.review is None or turn.proposal is None:
            return ()
        if turn.base.data == self.document.data:
            return turn.review.accepted
        return whole_change(self.document, turn.review.data())

    def applied(self, newer: Document) -> "Turns":
        """The newest turn is in the file, which is `newer` now; the next instruction works on that."""
        turns = self._with(replace(self._newest(), applied=True))
        return replace(turns, document=newer, base=0)

    @property
    def is_open(self) -> bool:
        """True while something of the newest turn waits for a decision, or is accepted and not applied."""
        turn = self.last
        if turn is None or turn.review is None:
            return False
        return turn.review.undecided > 0 or (not turn.applied and bool(turn.review.accepted))

    def reread(self, document: Document) -> "Turns":
        """The same sitting over a fresh reading of the same bytes. Raises ValueError for other bytes."""
        if document.data != self.document.data:
            raise ValueError("the file is not the same")
        return replace(self, document=document)

    def moved_to(self, newer: Document) -> "tuple[Turns, int]":
        """The file is `newer` now: what is left to decide of the newest turn is carried over, as far as it fits.

        Also gives the number of hunks that do not fit any more. Accepted hunks of an applied turn are in the file.
        """
        turn = self.last
        moved = replace(self, document=newer, base=0)
        if turn is None or turn.review is None or turn.proposal is None:
            return moved, 0
        left = [item for item in turn.review.items if not (turn.applied and item.decision is Decision.ACCEPTED)]
        carried = moved_hunks(turn.base, [_taken(turn.base, item) for item in left], newer)
        kept = [(hunk, item.decision) for hunk, item in zip(carried, left, strict=True) if hunk is not None]
        review = Review.start(newer, [hunk for hunk, _ in kept])
        for index, (_, made) in enumerate(kept, 1):
            if made is not Decision.UNDECIDED:
                review = review.decide(index, made)
        turn = replace(turn, base=newer, based_on=0, review=review, applied=turn.applied and not kept)
        return moved._with(turn), len(left) - len(kept)

    def _newest(self) -> Turn:
        if not self.turns:
            raise IndexError("there is no turn yet")
        return self.turns[-1]

    def _with(self, turn: Turn) -> "Turns":
        return replace(self, turns=(*self.turns[:-1], turn))


def moved_region(region: Region, changes: Sequence[Change]) -> Region:
    """Where lines are once ordered changes were made; what replaces some of them belongs to them."""
    first, end = region.first - 1, region.last
    new_first, new_end = first, end
    for change in changes:
        grown = len(change.added) - (change.end - change.first)
        if change.end <= first:
            new_first += grown
        elif change.first < first:
            new_first -= first - change.first
        if change.end <= end:
            new_end += grown
        elif change.first < end:
            new_end += change.first + len(change.added) - end
    return Region(new_first + 1, max(new_first + 1, new_end))


def _taken(document: Document, item: Item) -> Hunk:
    """The hunk, or what was chosen of its lines."""
    if item.chosen is None:
        return item.hunk
    return hunk_of(document, item.changes(document), item.hunk.old_first, item.hunk.old_end)


def derived(document: Document, data: bytes) -> Document:
    """The document as it is once `data` has been written to it; the bytes come from its own hunks."""
    return reparse(document, replace(document.snapshot, data=data))


def whole_change(document: Document, data: bytes) -> tuple[Hunk, ...]:
    """The hunks from `document` to `data`, byte for byte: what several turns amount to together."""
    newer = derived(document, data)
    old, new = [line.raw for line in document.source_lines], [line.raw for line in newer.source_lines]
    return make_hunks(Result(document, newer.source_lines, tuple(align(old, new))))
