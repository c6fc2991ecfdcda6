"""The accept/reject state of a diff's hunks; every decision gives a new state, and each can be taken back.

Knows nothing of terminals or writing. Invariant: `undo` after `decide` is the state before, and the bytes of a review
are the source with exactly the accepted hunks applied.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from app.editing.diff import Hunk, join
from app.editing.document import Document


class Decision(StrEnum):
    """What was decided about one hunk."""

    UNDECIDED = "undecided"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True)
class Review:
    """A diff and what was decided so far."""

    document: Document
    hunks: tuple[Hunk, ...]
    decisions: tuple[Decision, ...]
    """One for each hunk."""
    earlier: tuple[tuple[Decision, ...], ...] = ()
    """States to go back to, oldest first."""

    @classmethod
    def start(cls, document: Document, hunks: Sequence[Hunk]) -> "Review":
        """A review with nothing decided."""
        return cls(document, tuple(hunks), (Decision.UNDECIDED,) * len(hunks))

    def decide(self, index: int, decision: Decision) -> "Review":
        """Decide the hunk whose `index` (1-based) this is. Raises IndexError for a hunk that is not there."""
        if not 1 <= index <= len(self.hunks):
            raise IndexError(f"there is no hunk {index}")
        return self._with((*self.decisions[: index - 1], decision, *self.decisions[index:]))

    def decide_rest(self, decision: Decision) -> "Review":
        """Decide every hunk that is undecided, as one step."""
        return self._with(tuple(decision if old is Decision.UNDECIDED else old for old in self.decisions))

    def undo(self) -> "Review":
        """The state before the last step; the same where there was none."""
        if not self.earlier:
            return self
        return replace(self, decisions=self.earlier[-1], earlier=self.earlier[:-1])

    @property
    def accepted(self) -> tuple[Hunk, ...]:
        """The accepted hunks, in order."""
        return tuple(hunk for hunk, made in zip(self.hunks, self.decisions, strict=True) if made is Decision.ACCEPTED)

    @property
    def undecided(self) -> int:
        """How many hunks are undecided."""
        return self.decisions.count(Decision.UNDECIDED)

    def data(self) -> bytes:
        """The file's bytes with the accepted hunks applied; undecided ones are not."""
        return join(self.document, self.accepted)

    def _with(self, decisions: tuple[Decision, ...]) -> "Review":
        if decisions == self.decisions:
            return self
        return replace(self, decisions=decisions, earlier=(*self.earlier, self.decisions))
