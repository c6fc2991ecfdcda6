"""Plain decoding, one token a pass: the slow and obvious twin of `speculate`, and what `draft=False` runs.

Invariant: what `speculate` emits for the same first token and the same sink is what this emits, token for token.
"""

from collections.abc import Callable, Iterator

from editor_engine.decode.speculate import Choose, PassRecord, TokenSink
from editor_engine.draft.drafter import Draft, Origin
from editor_engine.events import Provenance

PLAIN_ORIGIN = Origin(Provenance.GENERATED, None)
"""Without a drafter nothing follows the source, so every token is generated."""


def plain(choose: Choose, first: int, sink: TokenSink, clock: Callable[[], float]) -> Iterator[PassRecord]:
    """Decode until the sink says the reply has ended; `first` is emitted already and not yet in the cache."""
    token = first
    while sink.wants_more():
        started = clock()
        (token,) = choose([token], 1)
        sink.push(token)
        yield PassRecord(Draft(), 0, (token,), (PLAIN_ORIGIN,), clock() - started)
