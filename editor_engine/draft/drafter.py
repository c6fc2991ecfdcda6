"""The contract between the speculative loop and whatever drafts for it.

A drafter sees only tokens: prompt, source and what was emitted. It can never change the output, only its speed: every
drafted token is verified. It never sees the target text, the file's name or the kind of task.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from editor_engine.events import Provenance


@dataclass(frozen=True)
class Draft:
    """Tokens proposed for one pass."""

    tokens: tuple[int, ...] = ()
    """Empty: no evidence, no draft."""
    drafter: str | None = None
    """Who proposed them; None with empty tokens."""
    source_index: int | None = None
    """Index into the source tokens of the first one, when they were copied from there."""
    expected: float | None = None
    """Tokens the pass is expected to emit, 1 to 1 + drafted; None where the drafter does not say."""


@dataclass(frozen=True)
class Origin:
    """Where one emitted token came from."""

    provenance: Provenance
    source_index: int | None
    """Index into the source tokens it equals by position, None off the source."""


class Drafter(Protocol):
    """Proposes the next tokens of the output."""

    def draft(self, room: int) -> Draft:
        """At most `room` tokens expected to come next (room >= 0)."""

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        """Learn what a pass emitted: the first `accepted` tokens of `draft`, then the model's own.

        `emitted` may be shorter than accepted + 1 when the reply ended. `pass_s` is the measured time of the pass in
        seconds, None in a replay. Returns one Origin per emitted token.
        """
