"""The turns of one sitting over a file: what was asked of which base, what came of it, and what was decided.

One of them is being decided; the others wait, and move with the file when their time comes. Knows nothing of terminals,
engines or writing. Invariant: every change gives a new value; a turn's base is the file or what an earlier turn's
accepted hunks make of it; and no hunk of any turn is lost unless it was rejected, applied, or its turn failed.
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
    """Its accepted hunks are in the file."""

    @property
    def left(self) -> tuple[Item, ...]:
        """What waits: hunks that are undecided, or accepted and not in the file."""
        return () if self.review is None else tuple(item for item in self.review.items if self.awaits(item))

    @property
    def rest(self) -> Review:
        """What waits, as a review of its own."""
        return Review.of(self.base, self.left)

    def awaits(self, item: Item) -> bool:
        """True for a hunk of it that is undecided, or accepted and not in the file."""
        return item.decision is Decision.UNDECIDED or (item.decision is Decision.ACCEPTED and not self.applied)


@dataclass(frozen=True)
class Turns:
    """A file and everything that was asked of it."""

    document: Document
    """The file as it was read."""
    turns: tuple[Turn, ...] = ()
    base: int = 0
    """Number of the turn whose result the next instruction works on; 0 is the file itself."""
    reviewed: int = 0
    """Number of the turn that is being decided: the newest, unless another was chosen; 0 while there is none."""

    @property
    def current(self) -> Turn | None:
        """The turn that is being decided."""
        return self.turns[self.reviewed - 1] if self.reviewed else None

    @property
    def waiting(self) -> tuple[Turn, ...]:
        """The turns with something left, whichever is being decided."""
        return tuple(turn for turn in self.turns if turn.left)

    def document_of(self, number: int) -> Document:
        """What turn `number` left: its base with its accepted hunks. 0 is the file."""
        if number == 0:
            return self.document
        turn = self.turns[number - 1]
        return turn.base if turn.review is None else derived(turn.base, turn.review.data())

    def begin(self, instruction: str, region: Region | None) -> "Turns":
        """A new turn on the present base."""
        turn = Turn(len(self.turns) + 1, instruction, region, self.document_of(self.base), self.base)
        return replace(self, turns=(*self.turns, turn), reviewed=turn.number)

    def proposed(self, proposal: "Proposal") -> "Turns":
        """The current turn has its proposal, with nothing decided yet unless it was while it streamed."""
        review = self._current().review or Review.start(proposal.plan.document, proposal.hunks)
        return self._with(replace(self._current(), proposal=proposal, review=review))

    def failed(self, sentence: str) -> "Turns":
        """The current turn ended without a proposal."""
        return self._with(replace(self._current(), failure=sentence, review=None))

    def again(self) -> "Turns":
        """The current turn goes on after it had failed."""
        return self._with(replace(self._current(), failure=None))

    def decided(self, review: Review) -> "Turns":
        """What was decided about the current turn; nothing once it has failed: a cut reply never applies."""
        if self._current().failure is not None:
            return self
        return self._with(replace(self._current(), review=review))

    def thrown_away(self, number: int) -> "Turns":
        """Nothing of turn `number` is wanted: what is left of it is rejected."""
        turn = self.turns[number - 1]
        if turn.review is None:
            return self
        rejected = Decision.REJECTED
        items = [replace(item, decision=rejected) if turn.awaits(item) else item for item in turn.review.items]
        return self._with(replace(turn, review=Review.of(turn.base, items)))

    def switch_base(self, number: int) -> "Turns":
        """Let the next instruction work on what turn `number` left. Raises IndexError for a turn that is not there."""
        if not 0 <= number <= len(self.turns):
            raise IndexError(f"there is no turn {number}")
        turns = self
        if number not in {0, self.reviewed} and self.turns[number - 1].left and not self._stands(number):
            # Over the file as it is, else an apply would undo what is newer.
            turns = replace(replace(self, reviewed=number)._carried()[0], reviewed=self.reviewed)
        return replace(turns, base=number)

    def on_accepted(self, region: Region | None) -> "tuple[Turns, Region | None]":
        """Let the next instruction work on what was accepted of the current turn and is not in the file yet.

        `region` is one of the current turn's base; it comes back where it is then. Without such hunks, nothing changes.
        """
        turn = self.current
        if turn is None or turn.review is None or turn.applied or self.base != turn.based_on:
            return self, region
        changes = [change for hunk in turn.review.accepted for change in hunk.changes]
        if not changes:
            return self, region
        return self.switch_base(turn.number), None if region is None else moved_region(region, changes)

    def to_apply(self) -> tuple[Hunk, ...]:
        """The hunks of the file itself that write what the current turn left; none where nothing is accepted."""
        turn = self._current()
        if turn.review is None or turn.proposal is None:
            return ()
        if turn.base.data == self.document.data:
            return turn.review.accepted
        return whole_change(self.document, turn.review.data())

    @property
    def taken_back(self) -> int:
        """How many changes of the file an apply of the current turn would undo: it is about an older state of it."""
        turn = self._current()
        while turn.based_on and not (before := self.turns[turn.based_on - 1]).applied:
            turn = before  # what was accepted of it is written with the current one
        same = turn.base.data == self.document.data
        return 0 if same else len(whole_change(self.document, turn.base.data))

    def region_of(self, number: int) -> Region | None:
        """Where the lines that turn `number` was allowed to change are in what the next instruction works on."""
        turn = self.turns[number - 1]
        return _region_in(turn, self.document_of(self.base))

    def applied(self, newer: Document) -> "Turns":
        """The current turn, and those it is based on, are in the file, which is `newer` now."""
        written = self._written()
        turns = tuple(replace(turn, applied=turn.applied or turn.number in written) for turn in self.turns)
        return replace(self, turns=turns, document=newer, base=0)

    def unapplied(self, now: "Turns") -> "Turns":
        """These turns, whose apply was taken back, with what was asked and decided of others until `now`."""
        written = self._written()
        back = [item.hunk.changes for number in written for item in self.turns[number - 1].left]
        turns = [turn if turn.number in written else now.turns[turn.number - 1] for turn in self.turns]
        for turn in now.turns[len(turns) :]:
            if not turn.left or any(item.hunk.changes not in back for item in turn.left):  # else it came apart from one
                turns.append(replace(turn, number=len(turns) + 1, based_on=0))
        return replace(self, turns=tuple(turns))

    def reread(self, document: Document) -> "Turns":
        """The same sitting over a fresh reading of the same bytes. Raises ValueError for other bytes."""
        if document.data != self.document.data:
            raise ValueError("the file is not the same")
        return replace(self, document=document)

    def moved_to(self, newer: Document) -> "tuple[Turns, int]":
        """The file is `newer` now, and what is left of the current turn is carried over, as far as it fits.

        Also gives the number of hunks that do not fit; they wait as a turn of their own, over the file as it was.
        """
        moved = replace(self, document=newer, base=0)
        return (moved, 0) if self.current is None else moved._carried()

    def review_of(self, number: int) -> "tuple[Turns, int]":
        """Let turn `number` be decided, over the file as it is; also gives what `moved_to` gives.

        The same turns where nothing of it can be decided now.
        """
        turns = replace(self, reviewed=number)
        if turns._stands(number):
            return (turns, 0) if turns._current().review is not None else (self, 0)
        moved, lost = turns._carried()
        return (moved if moved._current().left else self), lost

    def taken_up(self) -> "Turns":
        """Let the newest turn be decided of which something that fits is left; where there is none, the newest."""
        for turn in reversed(self.waiting):
            turns, _ = self.review_of(turn.number)
            if turns is not self:
                return turns
        newest = replace(self, reviewed=len(self.turns))
        return newest if not self.turns or newest._stands(newest.reviewed) else newest._carried()[0]

    def unfit(self, number: int) -> int:
        """How many hunks that are left of turn `number` do not fit the file as it is."""
        turns = replace(self, reviewed=number)
        return turns._carried()[1] if turns._current().left and not self._stands(number) else 0

    def _stands(self, number: int) -> bool:
        """True while turn `number` is about the file as it is and what earlier turns make of it."""
        turn = self.turns[number - 1]
        before = turn.based_on
        return (
            not turn.applied
            and turn.base.data == self.document_of(before).data
            and (before == 0 or self._stands(before))
        )

    def _carried(self) -> "tuple[Turns, int]":
        """The current turn over the file as it is; what does not fit becomes a turn. Accepted and applied: dropped."""
        turn = self._current()
        if turn.review is None or turn.proposal is None:
            return self, 0
        items = [item for item in turn.review.items if turn.awaits(item) or item.decision is Decision.REJECTED]
        carried = moved_hunks(turn.base, [_taken(turn.base, item) for item in items], self.document)
        kept = [Item(hunk, item.decision) for hunk, item in zip(carried, items, strict=True) if hunk is not None]
        unfit = [item for hunk, item in zip(carried, items, strict=True) if hunk is None and turn.awaits(item)]
        review = Review.of(self.document, kept)
        moved = replace(turn, base=self.document, region=_region_in(turn, self.document), based_on=0, review=review)
        moved = replace(moved, applied=turn.applied and not kept)
        turns = self._with(moved)
        if unfit:
            apart = replace(turn, number=len(self.turns) + 1, review=Review.of(turn.base, unfit), applied=False)
            turns = replace(turns, turns=(*turns.turns, apart))
        return turns, len(unfit)

    def _written(self) -> tuple[int, ...]:
        """The numbers of the turns that are written with the current one: itself, and what it is based on."""
        numbers = [self._current().number]
        while before := self.turns[numbers[-1] - 1].based_on:
            numbers.append(before)
        return tuple(numbers)

    def _current(self) -> Turn:
        if not self.reviewed:
            raise IndexError("there is no turn yet")
        return self.turns[self.reviewed - 1]

    def _with(self, turn: Turn) -> "Turns":
        at = turn.number - 1
        return replace(self, turns=(*self.turns[:at], turn, *self.turns[at + 1 :]))


def _region_in(turn: Turn, document: Document) -> Region | None:
    if turn.region is None:
        return None
    changes = [change for hunk in whole_change(turn.base, document.data) for change in hunk.changes]
    return moved_region(turn.region, changes)


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


def hunk_words(count: int) -> str:
    """A number of hunks, with its verb."""
    return "1 hunk is" if count == 1 else f"{count} hunks are"


def taken_back_words(count: int) -> str:
    """Says how many changes of the file an apply would undo."""
    return "1 newer change" if count == 1 else f"{count} newer changes"


def unfit_words(count: int) -> str:
    """Says how many hunks do not fit the file."""
    return "1 hunk does not fit it now" if count == 1 else f"{count} hunks do not fit it now"


def derived(document: Document, data: bytes) -> Document:
    """The document as it is once `data` has been written to it; the bytes come from its own hunks."""
    return reparse(document, replace(document.snapshot, data=data))


def whole_change(document: Document, data: bytes) -> tuple[Hunk, ...]:
    """The hunks from `document` to `data`, byte for byte: what several turns amount to together."""
    newer = derived(document, data)
    old, new = [line.raw for line in document.source_lines], [line.raw for line in newer.source_lines]
    return make_hunks(Result(document, newer.source_lines, tuple(align(old, new))))
