"""THE loop: draft, verify many tokens in one pass, keep what the model agrees with, rewind the rest.

    draft    -> the drafter proposes tokens for the places after the last emitted one
    verify   -> one pass over [last emitted, *draft] gives the model's own choice after each of them
    accept   -> the draft's longest prefix of own choices, and one more choice for free
    rewind   -> the KV cache forgets the rows that were not accepted

Invariant: the emitted tokens are those of `plain.py`, whatever the drafter proposes; a drafter changes speed only.
Stage after this one: `editor_engine.engine` turns tokens into text and events.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from editor_engine.decode.verify import common_prefix, usable_draft
from editor_engine.draft.drafter import Draft, Drafter, Origin
from editor_engine.models.target import TargetModel


class TokenSink(Protocol):
    """Takes emitted tokens in order and decides when the reply has ended."""

    def wants_more(self) -> bool:
        """False once the reply has ended; no token may be pushed after that."""

    @property
    def room(self) -> int:
        """How many more tokens may be emitted before a limit is reached; at least 1 while `wants_more`."""

    def push(self, token: int) -> None:
        """Emit one token."""


@dataclass(frozen=True)
class PassRecord:
    """One pass of the target model."""

    draft: Draft
    """What was verified (already cut to what can be used)."""
    accepted: int
    emitted: tuple[int, ...]
    """At least one token."""
    origins: tuple[Origin, ...]
    """One for each emitted token."""
    seconds: float
    """Of the pass itself, verifying and rewinding included."""
    drafter_s: float = 0.0
    """Seconds the drafter took before and after it."""


Choose = Callable[[Sequence[int], int], list[int]]
"""(tokens, head rows) -> the model's own choice after each of the last `head rows` tokens, which are then cached."""


def speculate(
    model: TargetModel,
    choose: Choose,
    first: int,
    drafter: Drafter,
    sink: TokenSink,
    stop_ids: Collection[int],
    clock: Callable[[], float],
) -> Iterator[PassRecord]:
    """Decode until the sink says the reply has ended; `first` is emitted already and not yet in the cache.

    When it ends, or the consumer leaves, the cache holds the prompt and every emitted token but the last.
    """
    last = first
    while sink.wants_more():
        asked = clock()
        room = min(sink.room, model.rows, model.info.context_length - model.length) - 1
        proposed = drafter.draft(max(room, 0))
        tokens = usable_draft(proposed.tokens, room, model.info.vocab_size, stop_ids)
        draft = replace(proposed, tokens=tokens) if tokens else Draft()

        started = clock()
        before = model.length
        choices = choose([last, *draft.tokens], 1 + len(draft.tokens))
        accepted = common_prefix(draft.tokens, choices)
        model.truncate(before + 1 + accepted)  # before the sink, which may raise: no row of a token that will not stand

        emitted: list[int] = []
        for token in choices[: accepted + 1]:
            if not sink.wants_more():
                break
            sink.push(token)
            emitted.append(token)
        model.truncate(before + len(emitted))  # the sink may have ended the reply within the draft
        ended = clock()

        last = emitted[-1]
        accepted = min(accepted, len(emitted))
        origins = drafter.observe(draft, accepted, emitted, ended - started)
        drafter_s = started - asked + clock() - ended
        yield PassRecord(draft, accepted, tuple(emitted), tuple(origins), ended - started, drafter_s)
