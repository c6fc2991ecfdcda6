"""When Python looks for garbage, so that neither the first picture nor a key waits for it.

Imports nothing of Textual: it counts from before that is imported. Invariant: whatever happens, the collector is on
again afterwards, and nothing is kept from it.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def looked_for_later() -> Iterator[Callable[[], None]]:
    """No look before the function it gives is called; then one at what comes from there on.

    While modules come in there is none to find, and looking takes 40 of 600 ms. The 50,000 objects that are there at
    the first picture stay: to look at all of them again held a key up by 50 ms, at every other second of a reply.
    """
    gc.disable()
    try:
        yield _begin
    finally:
        gc.unfreeze()
        gc.enable()


def _begin() -> None:
    gc.freeze()
    gc.enable()
