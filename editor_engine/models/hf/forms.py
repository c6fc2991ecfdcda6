"""In which passes the tokens of a cache were computed, and how far these are the passes of a fresh, plain decode.

Plain form is: the prompt in passes of the model's width from its beginning, then one token a pass. What was verified as
a draft, or follows tokens that were, is not. Pure bookkeeping on lists. Invariant: `plain_length` never counts a token
whose pass, or any pass before it, was another than plain decoding would have made.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """Positions of one pass."""

    start: int
    end: int
    """One past the last."""


VERIFIED = Span(-1, -1)
"""Stands for every pass that plain decoding would not have made."""


class Forms:
    """One entry for each token in the cache."""

    def __init__(self, width: int) -> None:
        """`width`: rows of a prefill pass."""
        self._width = width
        self._passes: list[Span] = []
        self._prompt = 0
        self._reading = True

    def __len__(self) -> int:
        return len(self._passes)

    @property
    def prompt(self) -> int:
        """Tokens of the prompt, as far as it is in the cache."""
        return self._prompt

    def append(self, rows: int, head_rows: int) -> None:
        """A pass of `rows` tokens whose last `head_rows` gave a choice.

        None, or one of several, or one after the cache was cut into its prompt: a prompt is being read. More than one:
        a draft was verified.
        """
        start = len(self._passes)
        verified = head_rows > 1
        self._passes += [VERIFIED if verified else Span(start, start + rows)] * rows
        if not verified and (self._reading or head_rows == 0 or rows > 1):
            self._prompt = start + rows
        self._reading = head_rows == 0

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on."""
        del self._passes[length:]
        # A reply is never cut into its prompt: another prompt follows, though it may have but one token more.
        self._reading = self._reading or length < self._prompt
        self._prompt = min(self._prompt, length)

    def alone(self, position: int) -> bool:
        """True when the token at `position` was computed in a pass of its own."""
        return self._passes[position] == Span(position, position + 1)

    def plain_length(self) -> int:
        """Leading tokens that are in plain form."""
        done = 0
        for span in self._plain_from(0):
            if self._passes[done : span.end] != [span] * (span.end - span.start):
                break
            done = span.end
        return done

    def plain_spans(self, start: int, end: int) -> list[Span]:
        """The plain passes from position `start`, where one begins, that hold the positions up to `end`."""
        spans = []
        for span in self._plain_from(start):
            if span.start >= end:
                break
            spans.append(span)
        return spans

    def _plain_from(self, start: int) -> Iterator[Span]:
        while start < len(self._passes):
            end = min(start + self._width, self._prompt) if start < self._prompt else start + 1
            yield Span(start, end)
            start = end

    def disown(self, start: int) -> None:
        """The tokens from `start` on follow what is about to be computed anew: none of them is in plain form."""
        self._passes[start:] = [VERIFIED] * (len(self._passes) - start)

    def replayed(self, span: Span) -> None:
        """A plain pass was run again over tokens that are in the cache."""
        self._passes[span.start : span.end] = [span] * (span.end - span.start)

    def dump(self) -> list[tuple[int, int]]:
        """(start, end) for each token, for a copy of the cache."""
        return [(span.start, span.end) for span in self._passes]

    def load(self, dumped: list[tuple[int, int]], prompt: int) -> None:
        """Become what was dumped, with a prompt of `prompt` tokens."""
        self._passes = [Span(*entry) for entry in dumped]
        self._prompt = prompt
        self._reading = False
