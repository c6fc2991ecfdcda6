"""Ends a reply at a given text, wherever it stands in a line: the `stop` of OpenAI's completions.

Pure policy, fed token by token, so that it cannot depend on how many tokens a pass emitted. Knows nothing of lines:
`stopping.py` does. Invariant: released text, with what `finish` gives, is what was fed up to the first stop text.
"""

from collections.abc import Sequence


class StopText:
    """Holds back the end of the text while it may be the beginning of a stop text."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.found = False
        """A stop text was fed; nothing may be fed after that."""

    def feed(self, text: str) -> str:
        """Take output text, in order; return what is certain now, nothing of a stop text or after it."""
        if not self._stops:
            return text
        text = self._held + text
        at = min((start for start in map(text.find, self._stops) if start >= 0), default=-1)
        if at >= 0:
            self.found, self._held = True, ""
            return text[:at]
        longest = max(map(len, self._stops)) - 1
        keep = next(size for size in range(min(longest, len(text)), -1, -1) if self._may_begin(text, size))
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """The reply ended otherwise: what was held back is text after all."""
        held, self._held = self._held, ""
        return held

    def _may_begin(self, text: str, size: int) -> bool:
        """The last `size` characters begin a stop text; none always do."""
        return any(stop.startswith(text[len(text) - size :]) for stop in self._stops)
