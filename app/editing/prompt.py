"""Source, instruction and scope -> chat messages, the opening of the reply, and how the reply ends.

File first, then the instruction; the reply's fence is opened by us. Works on decoded lines and LF text; knows nothing
of tokens beyond the arithmetic of the budget. Invariant: the fence is longer than any run of backticks in the source,
so no line that follows the source can end the reply early.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.editing.language import Language
from app.editing.region import Anchor, Region, end_anchor, is_blank, locked_prefix
from app.editing.symbols import find_symbols
from app.errors import FileTooLongError
from editor_engine.requests import CompletionRequest, Message
from prompts import render

LEAST_HEADROOM = 256
"""Tokens a reply may always grow by."""

_BACKTICKS = re.compile(r"`+")


@dataclass(frozen=True)
class ContextFile:
    """A file the model may read and does not rewrite."""

    name: str
    """As the user gave it; shown to the model."""
    text: str
    """Decoded, with LF newlines."""
    language: Language


@dataclass(frozen=True)
class EditPrompt:
    """All that a reply depends on, and all that reading it back needs."""

    messages: tuple[Message, ...]
    prefill: str
    """Opening of the reply: fence, language, newline, and the locked lines before a region."""
    opening: str
    """First line of `prefill`, without its newline."""
    stop_line: str
    """Closing fence."""
    source: str
    """LF text that is emitted when nothing changes; drafts are copied from it. The file, or the region up to the end of
    its anchor, or, without one, to the end of the file."""
    source_line: int
    """1-based line of the file where `source` starts."""
    anchor: Anchor
    """End of a region's reply; empty for a whole file."""
    region: Region | None
    """None for a whole file."""
    locked: tuple[str, ...] = ()
    """The file's lines in `prefill`."""
    carried: str = ""
    """The beginning of the reply, in `prefill` after the opening: whole lines of one that was cut and goes on."""

    def request(self, max_tokens: int, *, draft: bool = True, score: bool = False) -> CompletionRequest:
        """The engine's request for this prompt."""
        return CompletionRequest(
            messages=self.messages,
            max_tokens=max_tokens,
            prefill=self.prefill,
            source=self.source,
            source_line=self.source_line,
            stop_line=self.stop_line,
            anchor=self.anchor.lines,
            anchor_blank_lines=self.anchor.blank_lines,
            draft=draft,
            score=score,
        )


@dataclass(frozen=True)
class Budget:
    """Tokens one edit needs, against the tokens there are."""

    prompt: int
    """Tokens of the rendered prompt, the reply's opening among them."""
    expected: int
    """Tokens of the prompt's `source`: what is emitted when nothing changes."""
    context: int | None
    """Tokens the model can hold; None where its engine does not say, and then nothing is too long."""
    estimated: bool = False
    """The engine has no tokeniser to ask: prompt and expected are guesses."""

    @property
    def headroom(self) -> int:
        """Tokens the reply may grow by: half the source's, at least 256."""
        return max(LEAST_HEADROOM, self.expected // 2)

    @property
    def max_tokens(self) -> int:
        """Most output tokens."""
        return self.expected + self.headroom

    @property
    def needed(self) -> int:
        """Tokens of prompt and longest reply."""
        return self.prompt + self.max_tokens

    def check(self, is_region: bool) -> None:
        """Refuse before any time is spent.

        Raises:
            FileTooLongError: prompt and reply do not fit; the sentence has the numbers and, for a whole file, the way
                out.
        """
        if self.context is None or self.needed <= self.context:
            return
        long, way_out = "The file is", " Edit a part of it: selected lines, or --lines A:B or --symbol NAME."
        if is_region:
            long = "The file, with the instruction and context files, is"
            way_out = " All of it is in the prompt, also where only lines of it are edited."
        elif self.prompt - self.expected > self.context // 2:  # not the file, then, or not it alone
            long, way_out = "Instruction and context files are", " Say it in fewer words, or give fewer files."
        elif self.prompt + LEAST_HEADROOM >= self.context:
            way_out = " A part of it would not fit either: all of the file is in the prompt."
        guessed = " (estimated: this engine does not count tokens)" if self.estimated else ""
        raise FileTooLongError(
            f"{long} too long for this model: prompt {self.prompt} + expected output {self.expected} + headroom "
            f"{self.headroom} = {self.needed} tokens{guessed}, and the context holds {self.context}.{way_out}"
        )


def fence_for(texts: Sequence[str], least: int = 3) -> str:
    """Backticks, at least `least`, and longer than any run of backticks in `texts`."""
    longest = max((len(run) for text in texts for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(least, longest + 1)


def build_prompt(
    lines: Sequence[str],
    instruction: str,
    language: Language,
    region: Region | None = None,
    context: Sequence[ContextFile] = (),
) -> EditPrompt:
    """The prompt of one edit.

    Args:
        lines: the file's decoded lines, without line ends.
        instruction: what the user asks for, in any language.
        language: the file's; chooses the fence tag and a region's enclosing symbol.
        region: lines that may change; None for the whole file.
        context: read-only files, shown first, in this order.
    """
    text = _joined(lines)
    # Where code blocks are ordinary content, an edit may well add one: a fence of three would end there.
    fence = fence_for([text, instruction, *(file.text for file in context)], 4 if language.prose else 3)
    opening = fence + language.fence
    user = _user_message(lines, fence, instruction, language, region)
    shown = [_context(file) for file in context]
    messages = (Message("system", render("edit_system")), Message("user", "\n\n".join([*shown, user])))
    if region is None:
        return EditPrompt(messages, f"{opening}\n", opening, fence, text, 1, Anchor((), 0), None)
    locked = locked_prefix(region, lines, find_symbols(lines, language) or ())
    anchor = end_anchor(region, lines)
    end = _end_of_anchor(region, anchor, lines)
    return EditPrompt(
        messages=messages,
        prefill=_joined([opening, *locked]),
        opening=opening,
        stop_line=fence,
        source=_joined(lines[region.first - 1 : end]),
        source_line=region.first,
        anchor=anchor,
        region=region,
        locked=locked,
    )


def _user_message(lines: Sequence[str], fence: str, instruction: str, language: Language, region: Region | None) -> str:
    source = _joined(lines).removesuffix("\n")
    places = {"fence": fence, "tag": language.fence, "source": source, "instruction": instruction}
    if region is None:
        return render("edit_file", **places)
    # What "this function" means, in the model's terms: it cannot count lines, but it finds a text.
    solid = [line.strip() for line in lines[region.first - 1 : region.last] if not is_blank(line)] or [""]
    places |= {"first": str(region.first), "start": solid[0], "last": str(region.last), "end": solid[-1]}
    return render("edit_region", **places)


def _context(file: ContextFile) -> str:
    # A name may hold any character; the model sees one line of it.
    name = file.name if file.name.isprintable() else repr(file.name)
    fence = fence_for([file.text])
    return render("edit_context", name=name, fence=fence, tag=file.language.fence, source=file.text.removesuffix("\n"))


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _end_of_anchor(region: Region, anchor: Anchor, lines: Sequence[str]) -> int:
    """0-based line after the anchor; without one, the end of the file, which the reply then runs to."""
    if not anchor.lines:
        return len(lines)
    left = len(anchor.lines)
    for at in range(region.last, len(lines)):
        left -= not is_blank(lines[at])
        if not left:
            return at + 1
    return len(lines)
