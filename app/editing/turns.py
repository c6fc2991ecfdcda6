"""The turns of one sitting over a file: what was asked of which base, what came of it, and what was decided.

Knows nothing of terminals, engines or writing. Invariant: every change gives a new value; a turn's base is the file
itself or what an earlier turn's accepted hunks make of it, and never changes afterwards.
"""

from dataclasses import dataclass, replace

from app.editing.alignment import align
from app.editing.diff import Hunk, make_hunks
from app.editing.document import Document, reparse
from app.editing.pipeline import Proposal
from app.editing.region import Region
from app.editing.result import Result
from app.editing.review import Review


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
    proposal: Proposal | None = None
    """None until there is one."""
    review: Review | None = None
    failure: str | None = None
    """The sentence that says why there is no proposal."""


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

    def proposed(self, proposal: Proposal) -> "Turns":
        """The newest turn has its proposal, with nothing decided yet unless it was while it streamed."""
        review = self._newest().review or Review.start(proposal.plan.document, proposal.hunks)
        return self._with(replace(self._newest(), proposal=proposal, review=review))

    def failed(self, sentence: str) -> "Turns":
        """The newest turn ended without a proposal."""
        return self._with(replace(self._newest(), failure=sentence, review=None))

    def decided(self, review: Review) -> "Turns":
        """What was decided about the newest turn."""
        return self._with(replace(self._newest(), review=review))

    def switch_base(self, number: int) -> "Turns":
        """Let the next instruction work on what turn `number` left. Raises IndexError for a turn that is not there."""
        if not 0 <= number <= len(self.turns):
            raise IndexError(f"there is no turn {number}")
        return replace(self, base=number)

    def _newest(self) -> Turn:
        if not self.turns:
            raise IndexError("there is no turn yet")
        return self.turns[-1]

    def _with(self, turn: Turn) -> "Turns":
        return replace(self, turns=(*self.turns[:-1], turn))


def derived(document: Document, data: bytes) -> Document:
    """The document as it is once `data` has been written to it; the bytes come from its own hunks."""
    return reparse(document, replace(document.snapshot, data=data))


def whole_change(document: Document, data: bytes) -> tuple[Hunk, ...]:
    """The hunks from `document` to `data`, byte for byte: what several turns amount to together."""
    newer = derived(document, data)
    old, new = [line.raw for line in document.source_lines], [line.raw for line in newer.source_lines]
    return make_hunks(Result(document, newer.source_lines, tuple(align(old, new))))
