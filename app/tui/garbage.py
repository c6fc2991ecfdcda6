"""When Python looks for garbage, so that neither the first picture nor a key waits for it.

Imports nothing of Textual: it counts from before that is imported. Invariant: whatever happens, the collector is on
again afterwards, as it was before, and nothing that came after the first picture is kept from it for long.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_OLDEST_EVERY = 100
"""Looks at the middle generation before all is looked at, whoever waits: some minutes of a reply."""
_DUE = 10
"""Looks at the middle generation after which all is looked at as soon as nobody waits."""


@contextmanager
def looked_for_later() -> Iterator[Callable[[], None]]:
    """No look before the function it gives is called; then one at what comes from there on.

    While modules come in there is none to find, and looking takes 40 of 600 ms. The 50,000 objects that are there at
    the first picture stay: to look at all of them again held a key up by 50 ms, at every other second of a reply. What
    came later took 17 to 40 ms, every five seconds of a reply: `look_if_due` does it between replies.
    """
    before = gc.get_threshold()
    gc.disable()
    try:
        yield _begin
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
        gc.enable()


def _begin() -> None:
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _OLDEST_EVERY)
    gc.enable()


def look_if_due() -> None:
    """Look at all that came since the first picture, if there may be garbage: for a moment in which nobody waits."""
    if gc.get_count()[2] >= _DUE:
        gc.collect()
