"""The diff of a reply that is still coming: how far it has got, what is final, what is only a guess so far.

    Text events -> whole lines -> where in the source the reply is -> pins -> final hunks; rows to look at

A *pin* is a place between lines, in both versions, at which the reply has followed the source for so long that what
lies before is aligned once and for all. The finished result is aligned between the same pins (`make_result`), so the
hunks before a pin are the finished proposal's by construction. Pins depend on whole lines alone, not on how the text
was cut into events.

Knows nothing of engines or terminals. Invariant: hunks that were final once never change, and the finished proposal
begins with exactly them; a source line that the reply has not reached is pending, never deleted.
"""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass

from app.editing.alignment import Match, align, tidy
from app.editing.diff import CONTEXT, Hunk, changes_of, group_changes
from app.editing.document import Document
from app.editing.extract import is_closing, repeats_opening
from app.editing.origins import LineOrigins
from app.editing.prompt import EditPrompt
from app.editing.region import Region, is_blank
from app.editing.result import matched_result, result_line
from app.errors import UnencodableError
from editor_engine.events import Span, Text

LEAST_RUN = 2 * CONTEXT + 1
"""Lines of the source in a row that end a hunk: with fewer, a change after them would belong to the same hunk."""

_LEAST_GUESS = 2
"""Lines of the source in a row that show where a changed reply is by now."""
_GUESS_SHARE = 4
"""One line more for every so many that would count as deleted."""


@dataclass(frozen=True)
class LiveState:
    """A diff to look at while the reply comes. Positions are 0-based lines of the whole file."""

    lines: tuple[str, ...]
    """The new file so far, locked lines before the region among them; the last one may be cut short."""
    matches: tuple[Match, ...]
    """Lines that are the source's, in order."""
    reached: int
    """Source lines before this one are matched or replaced; those from it to `region_end` are pending."""
    pending_end: int
    """Where pending lines end: the end of what may change. What follows stays as it is."""
    whole_lines: int
    """How many of `lines` are whole."""
    origins: tuple[tuple[Span, ...], ...]
    """Of each line, where its characters came from; empty for locked lines."""


class LiveDiff:
    """Fed the reply's text events, in order."""

    def __init__(self, document: Document, prompt: EditPrompt, *, opened: bool = True) -> None:
        """`opened`: the engine goes on from the prompt's opening, so that all it says is the file's text."""
        self._document = document
        self._prompt = prompt
        region = prompt.region or Region(1, len(document.lines))
        self.locked = self._head, self._tail = region.first - 1, len(document.lines) - region.last
        """How many lines at the file's start and at its end stand outside what is edited."""
        self._old = document.lines[self._head : region.last]
        # Without a final newline, the pinned line loses its own should the reply end there, and is a change then.
        self._least_run = LEAST_RUN if document.final_newline else LEAST_RUN + 1
        # Without an anchor a region's reply runs on into the rest of the file: only its end tells where it stops.
        self._may_pin = opened and (prompt.region is None or bool(prompt.anchor.lines))
        self._places: dict[str, list[int]] = defaultdict(list)
        for at, line in enumerate(self._old):
            self._places[line].append(at)
        self._new: list[str] = []
        self._said: list[str] = []
        self._partial = ""
        self._begun = False  # the first line has been seen, and kept or dropped
        self._origins = LineOrigins()
        self._pins: list[tuple[int, int]] = []  # like all positions in here: counted from the region's start
        self._cursor = (0, 0)  # where the reply was seen to follow the source last
        self._changed = False  # since the last pin
        self._sync = (0, 0)  # where the change began
        self._runs: dict[int, int] = {}  # source line that the newest line may be -> equal lines in a row
        self._retry_at = 0  # how long the reply has to be for the next attempt at a pin
        self._hunks: tuple[Hunk, ...] = ()
        self._settled: tuple[tuple[int, int], list[Match]] = ((0, 0), [])
        if prompt.carried:
            self._take_text(prompt.carried)
            self._origins.skip(prompt.carried)

    def feed(self, text: Text) -> tuple[Hunk, ...]:
        """Take more of the reply; the hunks that are final by it, in order."""
        before = len(self._hunks)
        self._origins.feed(text)
        self._take_text(text.text)
        return self._hunks[before:]

    @property
    def text(self) -> str:
        """The reply so far."""
        return "".join(self._said)

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """Every final hunk."""
        return self._hunks

    @property
    def pins(self) -> tuple[tuple[int, int], ...]:
        """Where the finished result is to be cut, in lines of the whole file."""
        return tuple((self._head + old, self._head + new) for old, new in self._pins)

    @property
    def reached(self) -> int:
        """How many source lines are behind the reply; a wrong guess is taken back."""
        return self._head + self._cursor[0]

    @property
    def share(self) -> float:
        """How much of what may change is behind the reply, 0 to 1."""
        return self._cursor[0] / len(self._old)

    @property
    def differs(self) -> bool:
        """The reply so far does not just follow the source."""
        return self._changed or bool(self._pins)

    def state(self) -> LiveState:
        """What there is to see now."""
        partial = [self._partial] if self._partial else []
        count = len(self._new) + len(partial)
        return LiveState(
            lines=(*self._document.lines[: self._head], *self._new, *partial),
            matches=tuple(self._matches()),
            reached=self.reached,
            pending_end=self._head + len(self._old),
            whole_lines=self._head + len(self._new),
            origins=(((),) * self._head + self._origins.lines(count)),
        )

    def _take_text(self, text: str) -> None:
        self._said.append(text)
        *whole, self._partial = (self._partial + text).split("\n")
        for raw in whole:
            if not self._begun and repeats_opening(raw, self._prompt, self._old[0]):
                self._origins.drop_first()
            else:
                self._take(result_line(self._document, raw, first=not self._new and not self._head))
            self._begun = True

    def _take(self, line: str) -> None:
        """One more whole line."""
        self._new.append(line)
        count = len(self._new)
        old_at, _ = self._cursor
        follows = old_at < len(self._old) and self._old[old_at] == line
        if follows and not self._changed:
            self._cursor = (old_at + 1, count)
            return
        if not self._changed:
            self._changed, self._sync = True, (old_at, count - 1)
        places = self._places.get(line, [])
        self._runs = {place: self._runs.get(place - 1, 0) + 1 for place in places[bisect_left(places, self._sync[0]) :]}
        if follows and self._cursor[1] == count - 1:
            self._cursor = (old_at + 1, count)
        elif (guess := self._found(_LEAST_GUESS, _GUESS_SHARE)) > old_at:
            self._cursor = (guess, count)
        # The end of a reply may drop a blank line or a fence, never the line that is pinned here.
        if self._may_pin and count >= self._retry_at and not is_blank(line) and not is_closing(line, self._prompt):
            end = self._found(self._least_run, 1)
            if 0 < end < len(self._old):
                self._try_pin(end)

    def _found(self, least: int, share: int) -> int:
        """The first source line after a run long enough, as near as possible; 0 without one.

        A run that would leave lines out has to be the longer for it: new code may well look like code further down.
        """
        count = len(self._new)
        for place, length in sorted(self._runs.items()):
            left_out = (place + 1 - length - self._sync[0]) - (count - length - self._sync[1])
            if length >= least + max(0, left_out) // share:
                return place + 1
        return 0

    def _try_pin(self, end: int) -> None:
        """Pin where the reply is now, if the changes before it stand far enough from it to be whole hunks."""
        pin, head = (end, len(self._new)), self._head
        rest = Match(head + end, head + pin[1], len(self._document.lines) - head - end)
        matches = [*self._pinned(), *self._aligned(self._settled[0], pin), rest]
        try:
            result = matched_result(self._document, self._so_far(end), matches)
        except UnencodableError:  # the finished reply will say so, if it still has the character
            self._may_pin = False
            return
        changes = changes_of(result)
        if changes and self._head + end - changes[-1].end < self._least_run:
            # Among lines that repeat, a change slides down as far as it can; trying at every line would take for ever.
            self._retry_at = pin[1] + (pin[1] - self._sync[1]) // 2
            return
        self._pins.append(pin)
        self._hunks = group_changes(self._document, changes)
        self._changed, self._cursor, self._runs = False, pin, {}

    def _so_far(self, end: int) -> list[str]:
        """The file as it would be if the rest of the reply followed the source from line `end` of the region on."""
        lines = self._document.lines
        return [*lines[: self._head], *self._new, *lines[self._head + end :]]

    def _matches(self) -> list[Match]:
        """The alignment up to now; what lies before the last pin is worked out once."""
        return [*self._pinned(), *self._aligned(self._settled[0], self._cursor)]

    def _pinned(self) -> list[Match]:
        """The alignment up to the last pin, where `_settled` begins then."""
        pinned, matches = self._settled
        for pin in self._pins:
            if pin > pinned:
                matches = [*matches, *self._aligned(pinned, pin)]
                pinned = pin
        self._settled = (pinned, matches)
        return [*([Match(0, 0, self._head)] if self._head else []), *matches]

    def _aligned(self, start: tuple[int, int], end: tuple[int, int]) -> list[Match]:
        old, new = self._old[start[0] : end[0]], self._new[start[1] : end[1]]
        return [
            Match(self._head + start[0] + match.old, self._head + start[1] + match.new, match.length)
            for match in tidy(align(old, new), old, new)
        ]
