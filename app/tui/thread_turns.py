"""How soon the thread that reads keys gets its turn while the interface works.

Python lets a thread run for 5 ms before another may. The one that reads keys has to be let in some four times until a
key is delivered, and so has the one that writes: behind a busy loop a key came after some 20 ms, and after 1 to 8 with
shorter turns (few keys, beside other programs). Invariant: afterwards turns are as long as before.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

TURN_S = 0.0005
"""How long a thread runs before another may."""


@contextmanager
def short_turns() -> Iterator[None]:
    """Turns are short inside."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
