"""How soon the thread that reads keys gets its turn while the interface works.

Python lets a thread run for 5 ms before another may. The one that reads keys has to be let in some four times until a
key is delivered, and so has the one that writes: a key that came while a reply was being painted waited for 20 ms, and
for 1 to 2 ms with shorter turns. Invariant: afterwards turns are as long as before.
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
