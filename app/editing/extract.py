"""Reply -> the new lines of the file or region, or a named failure.

Two ways in: `extract_reply` for an engine whose reply we opened (nothing is parsed but what our own fence may have left
behind), and `extract_fenced` for servers that cannot open a reply (one outer fence). Knows nothing of diffs or checks.
Invariant: a reply is taken whole or refused; only `\\n` ends a line, and every other character is data.
"""

import re
from collections.abc import Sequence

from app.editing.language import Language
from app.editing.prompt import EditPrompt
from app.editing.region import is_blank, splice
from app.editing.syntax import syntax_errors
from app.errors import (
    InterruptedByUserError,
    ReplyCutError,
    ReplyEmptyError,
    ReplyEndlessError,
    ReplyNotCodeError,
)
from editor_engine.events import FinishReason

_SHORT_FENCE = "```"
_FENCE = re.compile(r" {0,3}(`{3,})([^`]*)")
_WORD = re.compile(r"\w+")

# Below so many non-blank lines a rewrite may well share nothing with its source.
_LEAST_LINES_TO_COMPARE = 3
_LEAST_SHARED_WORDS = 0.1


def extract_reply(
    text: str, reason: FinishReason, prompt: EditPrompt, source: Sequence[str], language: Language
) -> list[str]:
    """The whole new file from a reply that `prompt` opened.

    Args:
        text: the reply after the opening, without stop token, stop line and anchor.
        reason: why it ended.
        prompt: what was asked; its region is put back into the file.
        source: the file's decoded lines.
        language: the file's, to tell an answer in prose from a file.

    Returns:
        Lines without line ends; a final newline or its lack is the document's business.

    Raises:
        ReplyCutError, ReplyEndlessError: the reply did not come to its end.
        ReplyEmptyError: it has no text (a region that the model deleted up to its anchor is none such).
        ReplyNotCodeError: it has nothing in common with the file.
        InterruptedByUserError: it was cancelled.
    """
    _refuse_unfinished(reason)
    lines = _split(text)
    region = prompt.region
    old = source if region is None else source[region.first - 1 : region.last]
    lines = _without_our_fences(lines, old, prompt, reason)
    if region is not None and reason is not FinishReason.ANCHOR and not prompt.anchor.lines:
        lines = _without_tail(lines, source[region.last :])
    if all(map(is_blank, lines)) and not (region is not None and reason is FinishReason.ANCHOR):
        raise ReplyEmptyError("The model answered with an empty file; nothing was changed.")
    if region is not None:
        return splice(region, source, lines)
    _refuse_prose(lines, source, language)
    return lines


def extract_fenced(text: str, reason: FinishReason, source: Sequence[str], language: Language) -> list[str]:
    """The whole new file from a reply that holds it in one outer fence, with or without prose around it.

    The block opens at the first line of at least three backticks. Where the source has no run of backticks as long, the
    first bare line of the same backticks closes it and another block after it is refused; where it has, inner fences
    cannot be told from ours, so the block must be closed by the reply's last non-blank line.

    Raises:
        As `extract_reply`, and ReplyNotCodeError for no block or several.
    """
    _refuse_unfinished(reason)
    lines = _split(text)
    if all(map(is_blank, lines)):
        raise ReplyEmptyError("The model answered with an empty reply; nothing was changed.")
    opened = next((at for at, line in enumerate(lines) if _FENCE.fullmatch(line)), None)
    if opened is None:
        raise ReplyNotCodeError("The reply has no code block with the new file in it; nothing was changed.")
    match = _FENCE.fullmatch(lines[opened])
    fence = match[1] if match else _SHORT_FENCE
    closing = [at for at in range(opened + 1, len(lines)) if lines[at].strip() == fence]
    if not closing:
        raise ReplyCutError("The reply ended before its code block was closed; nothing was changed.")
    if any(fence in line for line in source):
        end = closing[-1]
        if any(not is_blank(line) for line in lines[end + 1 :]):
            raise ReplyNotCodeError("The reply goes on after its last code fence, so its end is not certain.")
    else:
        end = closing[0]
        if any(line.lstrip().startswith(fence) for line in lines[end + 1 :]):
            raise ReplyNotCodeError("The reply has several code blocks where one whole file was asked for.")
    body = lines[opened + 1 : end]
    if all(map(is_blank, body)):
        raise ReplyEmptyError("The model answered with an empty file; nothing was changed.")
    _refuse_prose(body, source, language)
    return body


def _refuse_unfinished(reason: FinishReason) -> None:
    if reason is FinishReason.LENGTH:
        raise ReplyCutError("The reply was cut at the token limit, so it is not the whole file; nothing was changed.")
    if reason is FinishReason.REPETITION:
        raise ReplyEndlessError("The model went round in a loop and was stopped; nothing was changed.")
    if reason is FinishReason.CANCELLED:
        raise InterruptedByUserError("The edit was cancelled; nothing was changed.")


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def repeats_opening(line: str, prompt: EditPrompt, first: str) -> bool:
    """True for a reply's first line that says the opening again; `first` is the first line of what is edited."""
    return not prompt.locked and line == prompt.opening != first


def is_closing(line: str, prompt: EditPrompt) -> bool:
    """True for a line that, as a reply's last one, may be the closing fence."""
    return line in (prompt.stop_line, _SHORT_FENCE)


def _without_our_fences(lines: list[str], old: Sequence[str], prompt: EditPrompt, reason: FinishReason) -> list[str]:
    """Drop an opening the model repeated, and a closing fence that came right before the stop token."""
    if lines and repeats_opening(lines[0], prompt, old[0]):
        lines = lines[1:]
    if reason is FinishReason.ANCHOR:
        return lines
    solid = [line for line in old if not is_blank(line)]
    if lines and is_closing(lines[-1], prompt) and not (solid and solid[-1] == lines[-1]):
        return lines[:-1]
    return lines


def _without_tail(lines: list[str], tail: Sequence[str]) -> list[str]:
    """Drop the rest of the file, repeated by a reply that had no anchor to end at."""
    expected = [line for line in tail if not is_blank(line)]
    left = len(expected)
    end = len(lines)
    while left and end:
        line = lines[end - 1]
        if not is_blank(line):
            if line != expected[left - 1]:
                return lines
            left -= 1
        end -= 1
    if left:
        return lines
    # Blank lines of the file's own between the region and its tail stay outside, too.
    gap = next((at for at, line in enumerate(tail) if not is_blank(line)), len(tail))
    while gap and end and is_blank(lines[end - 1]):
        end, gap = end - 1, gap - 1
    return lines[:end]


def _refuse_prose(lines: Sequence[str], source: Sequence[str], language: Language) -> None:
    """Raise for a reply that shares no line with the file and is no text of its language either."""
    old = {line.strip() for line in source if not is_blank(line)}
    if len(old) < _LEAST_LINES_TO_COMPARE or any(line.strip() in old for line in lines):
        return
    before, after = syntax_errors(source, language), syntax_errors(lines, language)
    if before is not None and after is not None:
        strange = len(after) > len(before)
    else:
        words = {word for line in old for word in _WORD.findall(line)}
        kept = words & {word for line in lines for word in _WORD.findall(line)}
        strange = len(kept) < _LEAST_SHARED_WORDS * len(words)
    if strange:
        raise ReplyNotCodeError("The model answered with something other than the file; nothing was changed.")
