"""Inline triggers: comments that begin with `redraft:` and say what is to be changed where they stand.

    # redraft: use pathlib here
    #   and drop the import of os          (continued: the next comments of the same column, indented by two or more)
    /* redraft: rename to `total` */

Works on decoded lines; knows nothing of files, models or when a file is looked at. Invariant: taking the triggers out
changes nothing but the lines they stand on, a text without triggers comes out as it went in, and the text without them
has none.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from app.editing.language import Language
from app.watch.comments import Comment, find_comments
from prompts import render

MARK = "redraft:"
"""In lower case, so that a heading that names the program is none."""

_DECORATION = "*!/#-;%' \t"
"""What a comment may have between its marker and its first word: `///`, `//!`, `/**`, `##`."""
_LEADING_STAR = re.compile(r"\s*\*?\s?")
_MOST_QUOTED = 120


@dataclass(frozen=True)
class Trigger:
    """One instruction in a file."""

    line: int
    """1-based line of the file where its comment starts."""
    instruction: str
    """What it says, on one line; not empty."""
    place: str
    """The line of code it is about, stripped: its own, or the next one that is not blank; empty at the end."""


@dataclass(frozen=True)
class Triggered:
    """A text with its triggers taken out."""

    triggers: tuple[Trigger, ...]
    kept: tuple[tuple[int, str], ...]
    """(0-based line of the file, its text without triggers) of every line that stays."""


def may_have_triggers(data: bytes) -> bool:
    """False for bytes that hold no trigger in any encoding that we open: a check that needs no parser."""
    return MARK.encode() in data or MARK.encode("utf-16-le") in data or MARK.encode("utf-16-be") in data


def find_triggers(lines: Sequence[str], language: Language) -> Triggered:
    """The triggers of a file, and its lines without them."""
    untouched = Triggered((), tuple(enumerate(lines)))
    if not any(MARK in line for line in lines):
        return untouched
    found = _groups(lines, find_comments(lines, language))
    if not found:
        return untouched
    kept = dict(enumerate(lines))
    for comments, _ in reversed(found):
        for comment in reversed(comments):
            _take_out(kept, comment)
    rest = tuple(sorted(kept.items()))
    code = [(line, text.strip()) for line, text in rest if text.strip()]
    triggers = [
        Trigger(comments[0].first + 1, " ".join(said), _place(code, comments[-1].last)) for comments, said in found
    ]
    return Triggered(tuple(triggers), rest)


def instruction_of(triggers: Sequence[Trigger], standing: str | None) -> str:
    """One instruction that says what a standing one and all triggers say."""
    asked = [trigger.instruction if not trigger.place else _placed(trigger) for trigger in triggers]
    if standing is not None:
        asked.insert(0, standing)
    if len(asked) == 1:
        return asked[0]
    return render("watch_several", changes="\n".join(f"{number}. {text}" for number, text in enumerate(asked, 1)))


def _placed(trigger: Trigger) -> str:
    return render("watch_place", instruction=trigger.instruction, place=trigger.place[:_MOST_QUOTED])


def _groups(lines: Sequence[str], comments: Sequence[Comment]) -> list[tuple[list[Comment], list[str]]]:
    """Each trigger's comments, the first with the mark, and what each of them says."""
    groups: list[tuple[list[Comment], list[str]]] = []
    open_group = False
    for comment in comments:
        said = _said(comment)
        if said is not None:
            if said:
                groups.append(([comment], [said]))
            open_group = bool(said) and not comment.block
        elif open_group and _continues(lines, groups[-1][0], comment):
            group, told = groups[-1]
            group.append(comment)
            told.append(comment.text.strip())
        else:
            open_group = False
    return groups


def _said(comment: Comment) -> str | None:
    """The instruction of a comment that has the mark, empty while nothing follows it; None for any other comment."""
    first, *rest = comment.text.strip().split("\n")
    head = first.lstrip(_DECORATION)
    if not head and rest:  # the mark may stand on the line below `/**`
        head, *rest = rest[0].lstrip(_DECORATION), *rest[1:]
    if not head.startswith(MARK):
        return None
    told = [head.removeprefix(MARK), *(_LEADING_STAR.sub("", line, count=1) for line in rest)]
    return " ".join(" ".join(told).split())


def _continues(lines: Sequence[str], group: Sequence[Comment], comment: Comment) -> bool:
    """True for a comment alone on the next line, in the same column, whose words stand further in."""
    before = group[-1]
    if comment.block or comment.first != before.last + 1 or comment.start != group[0].start:
        return False
    alone = not any(lines[place.first][: place.start].strip() for place in (group[0], comment))
    words = comment.text.lstrip()
    return alone and bool(words) and len(comment.text) - len(words) >= 2 + _indent(group[0])


def _indent(comment: Comment) -> int:
    return len(comment.text) - len(comment.text.lstrip())


def _take_out(kept: dict[int, str], comment: Comment) -> None:
    """Remove a comment from the lines; a line with nothing else on it goes."""
    before, after = kept[comment.first][: comment.start], kept[comment.last][comment.end :]
    if before.endswith("{") and after.startswith("}"):  # JSX: a comment is an expression in braces
        before, after = before[:-1], after[1:]
    for line in range(comment.first, comment.last + 1):
        kept.pop(line)
    if not before.strip():
        rest = before + after.lstrip()
    elif not after.strip():
        rest = before.rstrip()
    else:
        rest = before + (after.lstrip() if before[-1:] in " \t([{" else after)
    if rest.strip():
        kept[comment.first] = rest


def _place(code: Sequence[tuple[int, str]], line: int) -> str:
    """The first of the lines that are not blank, from `line` on; empty behind the last."""
    at = bisect_left(code, (line, ""))
    return code[at][1] if at < len(code) else ""
