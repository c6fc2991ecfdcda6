"""The review in plain lines: a hunk, a question, a letter, as `git add -p` has it. For screen readers and scripts.

Decides through `app.editing.review` like the terminal UI. Knows no file and no engine. Invariant: nothing is moved or
overwritten on the screen; every answer that is not understood is answered with what can be said; the end of the input
decides nothing more.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, TextIO

from app.editing.checks import CheckWarning
from app.editing.hidden import added_hidden
from app.editing.mending import MENDABLE, held_hunks, mend, touched
from app.editing.review import Decision, Review
from app.editing.rework import changed_positions, new_side
from app.errors import AppError
from app.external_editor import edit_text
from app.terminal_text import diff_lines, takes_colour, visible

HELP = {
    "y": "accept this hunk",
    "n": "reject this hunk",
    "a": "accept this hunk and all later undecided ones",
    "d": "reject this hunk and all later undecided ones",
    "q": "leave this hunk and all later ones undecided",
    "s": "split the hunk into its changes",
    "v": "accept single lines: give their numbers, such as 1 3-5",
    "e": "give other text for the hunk, ended by a line with one dot",
    "E": "the same in $EDITOR",
    "r": "let the model do the hunk anew, with a note of yours",
    "m": "take what a warning is about out of the change",
    "j": "go to the next undecided hunk",
    "k": "go to the hunk before",
    "u": "take the last decision back",
    "p": "show the hunk again",
    "?": "say this",
}
_NUMBERS = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?$")


class PlainLines:
    """Lines in, lines out; nothing is ever drawn over."""

    def __init__(self, stdin: BinaryIO, stdout: TextIO) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self.colour = takes_colour(stdout)

    def read(self) -> str | None:
        """The next line without its end; None at the end of the input."""
        line = self._stdin.readline()
        return line.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r") if line else None

    def say(self, text: str, end: str = "\n") -> None:
        """A line; the caller has made it safe for a terminal."""
        self._stdout.write(text + end)
        self._stdout.flush()

    def ask(self, question: str) -> str:
        """The answer without white space around it; empty at the end of the input."""
        self.say(question, "")
        return (self.read() or "").strip()

    def confirm(self, question: str) -> bool:
        """A yes or a no, asked until it is one of them; the end of the input is a no."""
        while True:
            self.say(f"{question} [y,n] ", "")
            answer = self.read()
            if answer is None or answer.strip().lower() in {"n", "no"}:
                return False
            if answer.strip().lower() in {"y", "yes"}:
                return True
            self.say("Say y or n.")


@dataclass
class PlainReview:
    """One review, asked through."""

    lines: PlainLines
    warnings: Sequence[CheckWarning] = ()
    """What the checks found; hunks that a blocking one is about are not decided by `a`."""
    edit: Callable[[str], str] = edit_text
    """The user's editor."""
    redo: Callable[[Review, int, str], Review] | None = None
    """Lets a model do one hunk anew, with a note; None where no model is at hand."""
    _left: bool = field(default=False, init=False)

    def run(self, review: Review) -> Review:
        """Ask until everything is decided, or the user has enough."""
        index = _undecided(review, 1)
        shown: tuple[int, object] | None = None
        while review.undecided and not self._left:
            if shown != (index, review.items):
                self._show(review, index)
                shown = (index, review.items)
            letters = ",".join(HELP)
            self.lines.say(f"Hunk {index} of {len(review.items)}, {review.undecided} undecided [{letters}]: ", "")
            answer = self.lines.read()
            if answer is None:
                break
            try:
                review, index = self._answered(answer.strip(), review, index)
            except AppError as error:
                self.lines.say(visible(str(error)))
        self.lines.say(_summary(review))
        return review

    def _answered(self, answer: str, review: Review, index: int) -> tuple[Review, int]:
        match answer:
            case "y" | "n":
                decision = Decision.ACCEPTED if answer == "y" else Decision.REJECTED
                return _onward(review.decide(index, decision), index + 1)
            case "a" | "d":
                return _onward(self._rest(review, index, answer), index)
            case "q":
                self._left = True
            case "s":
                after = review.split(index)
                if after.items == review.items:
                    self.lines.say("The hunk is one change; v accepts single lines.")
                return _onward(after, index)
            case "v":
                return _onward(self._chosen(review, index), index)
            case "e" | "E":
                return _onward(self._edited(review, index, outside=answer == "E"), index)
            case "r":
                return _onward(self._redone(review, index), index)
            case "m":
                return _onward(self._mended(review, index), index)
            case "j":
                return review, _undecided(review, index % len(review.items) + 1)
            case "k":
                return review, max(1, index - 1)
            case "u":
                if not review.earlier:
                    self.lines.say("There is no decision to take back.")
                return _onward(review.undo(), 1)
            case "p":
                self._show(review, index)
            case _:
                for letter, words in HELP.items():
                    self.lines.say(f"{letter} - {words}")
        return review, index

    def _rest(self, review: Review, index: int, answer: str) -> Review:
        """This hunk and the later ones; those above keep what they have."""
        held = set(range(1, index))
        if answer == "a":
            blocked = held_hunks(review, tuple(self.warnings)) - held
            if blocked:
                self.lines.say("A blocking check is about some of them; those have to be decided one by one.")
            held |= blocked
        return review.decide_rest(Decision.ACCEPTED if answer == "a" else Decision.REJECTED, held)

    def _chosen(self, review: Review, index: int) -> Review:
        hunk = review.item(index).hunk
        positions = sorted(changed_positions(hunk))
        for number, position in enumerate(positions, 1):
            line = hunk.lines[position]
            self.lines.say(f"{number:>4} {line.kind}{visible(line.text)}")
        words = self.lines.ask("Lines to accept (empty: leave the hunk): ").replace(",", " ").split()
        if not words:
            return review
        chosen: set[int] = set()
        for word in words:
            match = _NUMBERS.match(word)
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
            if not 1 <= first <= last <= len(positions):
                self.lines.say(f"{visible(word)} is none of the lines 1 to {len(positions)}.")
                return review
            chosen.update(positions[first - 1 : last])
        return review.choose(index, chosen)

    def _edited(self, review: Review, index: int, *, outside: bool) -> Review:
        old = new_side(review.item(index).hunk)
        if outside:
            text = self.edit("".join(f"{line}\n" for line in old))
            return review.edit(index, text.removesuffix("\n").split("\n") if text else [])
        self.lines.say("The lines as they would be:")
        for line in old:
            self.lines.say(visible(line))
        self.lines.say("Type what is to stand there instead; a line with one dot ends it, two dots make one.")
        lines: list[str] = []
        while (line_read := self.lines.read()) not in (None, "."):
            assert line_read is not None
            lines.append("." if line_read == ".." else line_read)
        if line_read is None:
            return review
        return review.edit(index, lines)

    def _redone(self, review: Review, index: int) -> Review:
        if self.redo is None:
            self.lines.say("There is no model at hand here; e takes other text.")
            return review
        note = self.lines.ask("What should the model do otherwise? ")
        return self.redo(review, index, note) if note else review

    def _mended(self, review: Review, index: int) -> Review:
        for warning in self.warnings:
            if warning.code in MENDABLE and index in touched(review, warning):
                after = mend(review, warning)
                if after.items != review.items:
                    self.lines.say(f"Done: {MENDABLE[warning.code]}.")
                    return after
        self.lines.say("No warning about this hunk can be mended.")
        return review

    def _show(self, review: Review, index: int) -> None:
        hunk = review.item(index).hunk
        for line in diff_lines([hunk], self.lines.colour):
            self.lines.say(line)
        for found in added_hidden(hunk):
            line_number = hunk.lines[found.position].new_line
            self.lines.say(f"Warning: line {line_number}, column {found.column + 1} adds {found.name}.")
        for warning in self.warnings:
            if index in touched(review, warning):
                kind = "Blocking" if warning.blocking else "Warning"
                self.lines.say(f"{kind} ({warning.code}): {visible(warning.message)}")


def _undecided(review: Review, start: int) -> int:
    """The next undecided hunk from `start` on, round the end; `start` where there is none."""
    count = len(review.items)
    for step in range(count):
        index = (start - 1 + step) % count + 1
        if review.items[index - 1].decision is Decision.UNDECIDED:
            return index
    return min(start, count)


def _onward(review: Review, start: int) -> tuple[Review, int]:
    return review, _undecided(review, start)


def _summary(review: Review) -> str:
    accepted = review.decisions.count(Decision.ACCEPTED)
    rejected = review.decisions.count(Decision.REJECTED)
    return f"{accepted} accepted, {rejected} rejected, {review.undecided} undecided."
