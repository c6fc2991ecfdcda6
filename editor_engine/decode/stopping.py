"""When a reply ends, decided token by token, so that it cannot depend on how many tokens a pass emitted.

Pure policy: text and token ids in, released text and a reason out. Knows nothing of models or drafts.
Invariant: released text never contains the stop line, the anchor, or what the anchor takes with it.
"""

from collections.abc import Sequence

from editor_engine.events import FinishReason


class ReplyEnd:
    """Holds back text that may turn out to be the stop line or the anchor; releases everything else at once."""

    def __init__(self, stop_line: str | None, anchor: Sequence[str] = (), anchor_blank_lines: int = 0) -> None:
        self._stop_line = stop_line
        self._anchor = tuple(anchor)
        self._spare_blanks = anchor_blank_lines
        self._held: list[str] = []  # whole lines that may belong to the anchor, blank ones among them
        self._matched = 0  # anchor lines at the end of _held
        self._partial = ""
        self._released_of_partial = 0
        self.reason: FinishReason | None = None
        """Set once the reply has ended; nothing may be fed after that."""

    def feed(self, text: str) -> str:
        """Take output text, in order; return what is certain now. Sets `reason` when the reply ends inside it."""
        released: list[str] = []
        self._partial += text
        while "\n" in self._partial and self.reason is None:
            line, _, self._partial = self._partial.partition("\n")
            released.append(self._complete(line, "\n"))
        if self.reason is None:
            released.append(self._release_partial())
        return "".join(released)

    def finish(self, reason: FinishReason) -> str:
        """The reply ended for `reason` outside the text; return what was held back and is text after all."""
        line, self._partial = self._partial, ""
        released = ""
        if reason is FinishReason.STOP and line:
            released = self._complete(line, "")
        else:
            released = self._flush_held() + line[self._released_of_partial :]
        if self.reason is None:
            self.reason = reason
            released += self._flush_held()
        return released

    def _complete(self, line: str, newline: str) -> str:
        already, self._released_of_partial = self._released_of_partial, 0
        if line == self._stop_line:
            self.reason = FinishReason.STOP_LINE
            return self._flush_held()
        if not self._anchor:
            return (line + newline)[already:]
        self._held.append(line + newline)
        if not line.strip():
            return ""
        self._matched = self._longest_match()
        if self._matched == len(self._anchor):
            self.reason = FinishReason.ANCHOR
            return self._drop_anchor()
        return self._release_before_match()

    def _release_partial(self) -> str:
        if self._anchor or (self._stop_line is not None and self._stop_line.startswith(self._partial)):
            return ""
        fresh = self._partial[self._released_of_partial :]
        self._released_of_partial = len(self._partial)
        return fresh

    def _longest_match(self) -> int:
        """How many anchor lines end the held lines, blank ones aside (the longest overlap, found the plain way)."""
        lines = [line.removesuffix("\n") for line in self._held if line.strip()]
        for count in range(min(len(self._anchor), len(lines)), 0, -1):
            if tuple(lines[-count:]) == self._anchor[:count]:
                return count
        return 0

    def _match_start(self) -> int:
        """Index in `_held` of the first matched line."""
        index = len(self._held)
        left = self._matched
        while left:
            index -= 1
            left -= bool(self._held[index].strip())
        return index

    def _blank_start(self, index: int) -> int:
        while index and not self._held[index - 1].strip():
            index -= 1
        return index

    def _release_before_match(self) -> str:
        keep = self._blank_start(self._match_start()) if self._matched else len(self._held)
        released, self._held = self._held[:keep], self._held[keep:]
        return "".join(released)

    def _drop_anchor(self) -> str:
        start = self._match_start()
        blanks = start - self._blank_start(start)
        released = self._held[: start - min(blanks, self._spare_blanks)]
        self._held = []
        return "".join(released)

    def _flush_held(self) -> str:
        released, self._held = "".join(self._held), []
        return released


class RepetitionGuard:
    """Sees a reply that goes round in a loop which its source does not have.

    A loop is a tail of at least `MIN_TOKENS` tokens made of at least `MIN_ROUNDS` equal rounds, beyond as many as the
    source has in one place. It is looked for at fixed output positions, never per pass, so drafting cannot change where
    a reply stops.
    """

    MIN_ROUNDS = 8
    """With fewer equal rounds it is text that repeats itself."""
    MIN_TOKENS = 192
    """However short the round: a ruler of dashes or a row of zeros is no loop."""
    MAX_PERIOD = 256
    """Tokens of a round that is looked for; of the longest ones 2048 are emitted before it is seen."""
    EVERY = 32
    """Tokens between two looks, each of which tries every period."""

    def __init__(self, source: Sequence[int]) -> None:
        self._source = tuple(source)
        self._output: list[int] = []

    def feed(self, token: int) -> bool:
        """Take the next output token; True when the output is a loop now."""
        self._output.append(token)
        if len(self._output) % self.EVERY or len(self._output) < self.MIN_TOKENS:
            return False
        output = self._output
        window = output[-self.MAX_PERIOD - 1 :]
        for period in range(1, len(window)):
            if window[-1 - period] != window[-1]:
                continue
            tail = max(self.MIN_ROUNDS * period, self.MIN_TOKENS)
            if len(output) < tail or output[-tail:-period] != output[-tail + period :]:
                continue
            return self._outruns_source(period, tail)
        return False

    def _outruns_source(self, period: int, tail: int) -> bool:
        if not self._in_source(tail):
            return True
        output = self._output
        run = tail
        while run < len(output) and output[-run - 1] == output[-run - 1 + period]:
            run += 1
        return run - tail >= tail and not self._in_source(run - tail)

    def _in_source(self, size: int) -> bool:
        """True when the last `size` output tokens stand in the source."""
        tail = tuple(self._output[-size:])
        return any(
            self._source[start : start + size] == tail
            for start in range(len(self._source) - size + 1)
            if self._source[start] == tail[0]
        )
