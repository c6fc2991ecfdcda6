"""Work counted without a clock: Python lines and calls that a function runs.

Invariant: the same call on the same state counts the same, on every machine and however busy it is.
"""

import sys
from collections.abc import Callable


def steps_of(call: Callable[[], object]) -> int:
    """Python function calls and lines run by `call`."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
