"""Holds back a file that is run too often, so that a tool that answers each of our writes with its own ends nowhere.

Pure: the clock is passed in. Invariant: no file starts more than `runs` times in any `window_s` seconds.
"""

from collections import deque


class Breaker:
    """When each file was run lately."""

    def __init__(self, runs: int = 3, window_s: float = 30.0) -> None:
        self._runs = runs
        self._window_s = window_s
        self._starts: dict[str, deque[float]] = {}

    def started(self, path: str, now: float) -> None:
        """A run of the file begins."""
        self._starts.setdefault(path, deque(maxlen=self._runs)).append(now)

    def free_at(self, path: str, now: float) -> float:
        """When the file may be run again: `now`, or the time at which the oldest of its last runs leaves the window."""
        starts = self._starts.get(path)
        if starts is None or len(starts) < self._runs:
            return now
        return max(now, starts[0] + self._window_s)

    def tidy(self, now: float) -> None:
        """Forget files whose runs have all left the window."""
        for path in [path for path, starts in self._starts.items() if starts[-1] + self._window_s <= now]:
            del self._starts[path]
