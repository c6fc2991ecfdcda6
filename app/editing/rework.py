"""Hunks made anew from hunks: split, some of their lines only, with other text, without what a check found.

Everything here goes by changes of the source, so what is left of a hunk still joins with the others. Knows nothing of
decisions. Invariant: a line that is kept is the very bytes of the source; a new line takes its neighbour's newline; the
final newline stays as the source has it.
"""

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet

from app.editing.alignment import Match
from app.editing.churn import churned_lines
from app.editing.diff import Change, Hunk, changes_of, hunk_of
from app.editing.document import Document
from app.editing.result import make_result, matched_result
from app.errors import ReplyEmptyError
from app.paths import shown


def changed_positions(hunk: Hunk) -> frozenset[int]:
    """Positions in `hunk.lines` that are removed or added lines."""
    return frozenset(at for at, line in enumerate(hunk.lines) if line.kind != " ")


def new_side(hunk: Hunk) -> list[str]:
    """The hunk's lines as they will be."""
    return [line.text for line in hunk.lines if line.kind != "-"]


def split_hunk(document: Document, hunk: Hunk) -> tuple[Hunk, ...]:
    """One hunk for each change, the lines between shared out; a hunk of one change is itself."""
    parts: list[Hunk] = []
    first = hunk.old_first
    for change, following in zip(hunk.changes, [*hunk.changes[1:], None], strict=True):
        end = hunk.old_end if following is None else (change.end + following.first + 1) // 2
        parts.append(hunk_of(document, [change], first, end))
        first = end
    return tuple(parts)


def picked_changes(document: Document, hunk: Hunk, chosen: Collection[int]) -> tuple[Change, ...]:
    """The changes that the chosen removed and added lines (positions in `hunk.lines`) make; the others do not happen.

    Of one change, the added lines stand where its last line stood that is really removed, else after all of its lines.
    Raises UnencodableError, and ReplyEmptyError where nothing would be left of the file.
    """
    texts: list[str] = []
    matches: list[Match] = []
    source = document.lines
    old_at = 0

    def keep(end: int) -> None:
        nonlocal old_at
        if end > old_at:
            matches.append(Match(old_at, len(texts), end - old_at))
            texts.extend(source[old_at:end])
        old_at = end

    for change, removed, added in change_positions(hunk):
        new = [hunk.lines[at].text for at in added if at in chosen]
        gone = [change.first + at - removed.start for at in removed if at in chosen]
        place = gone[-1] + 1 if gone else change.end
        for line in gone:
            keep(line)
            old_at = line + 1
        keep(place)
        texts += new
        keep(change.end)
    keep(len(source))
    if not document.final_newline:
        while texts and not texts[-1]:
            texts.pop()
    if not texts:
        raise ReplyEmptyError(f"That would leave nothing of {shown(document.name)}.")
    left = [Match(match.old, match.new, min(match.length, len(texts) - match.new)) for match in matches]
    return tuple(changes_of(matched_result(document, texts, [match for match in left if match.length > 0])))


def rewritten(document: Document, hunk: Hunk, lines: Sequence[str]) -> Hunk | None:
    """The hunk with `lines` in place of all it shows of the new file; None where that is the source again.

    Raises UnencodableError, and ReplyEmptyError where nothing would be left of the file.
    """
    source = document.lines
    locked = hunk.old_first, len(source) - hunk.old_end
    text = "".join(f"{line}\n" for line in [*source[: hunk.old_first], *lines, *source[hunk.old_end :]])
    return with_changes(document, hunk, changes_of(make_result(document, text, locked)))


def with_changes(document: Document, hunk: Hunk, changes: Sequence[Change]) -> Hunk | None:
    """A hunk over the same lines, or more where the changes need them; None without any change."""
    if not changes:
        return None
    first, end = min(hunk.old_first, changes[0].first), max(hunk.old_end, changes[-1].end)
    return hunk_of(document, changes, first, end)


def without_removals(document: Document, hunk: Hunk, lines: Collection[int]) -> Hunk | None:
    """The hunk without the removal of these source lines (1-based); None where nothing is left of it."""
    back = {at for at, line in enumerate(hunk.lines) if line.kind == "-" and line.old_line in lines}
    return with_changes(document, hunk, picked_changes(document, hunk, changed_positions(hunk) - back))


def without_changes_at(document: Document, hunk: Hunk, lines: AbstractSet[int]) -> Hunk | None:
    """The hunk without the changes that remove any of these source lines (1-based); None where nothing is left."""
    left = [change for change in hunk.changes if lines.isdisjoint(range(change.first + 1, change.end + 1))]
    return with_changes(document, hunk, left)


def without_churn(document: Document, hunk: Hunk) -> Hunk | None:
    """The hunk without changes of white space alone; None where nothing is left of it."""
    old = [line.text for line in hunk.lines if line.kind != "+"]
    new = [line.text for line in hunk.lines if line.kind != "-"]
    places = [at for at, line in enumerate(hunk.lines) if line.kind != "+"]
    new_places = [at for at, line in enumerate(hunk.lines) if line.kind != "-"]
    back: set[int] = set()
    for churn in churned_lines(old, new):
        blank = not old[churn.source].strip() or hunk.lines[places[churn.source]].kind == " "
        if blank:  # blank lines come and go: the whole stretch of them
            back |= _blank_stretch(hunk, places[churn.source])
        else:
            back |= {places[churn.source], new_places[churn.result]}
    return with_changes(document, hunk, picked_changes(document, hunk, changed_positions(hunk) - back))


def _blank_stretch(hunk: Hunk, at: int) -> set[int]:
    """The blank changed lines of the change that line `at` is part of, or right above."""
    stretch: set[int] = set()
    for _, removed, added in change_positions(hunk):
        if at in removed or removed.start == at + 1:
            stretch |= {line for line in (*removed, *added) if not hunk.lines[line].text.strip()}
    return stretch


def change_positions(hunk: Hunk) -> Iterator[tuple[Change, range, range]]:
    """Each change with the positions of its removed and of its added lines in `hunk.lines`."""
    at, old_at = 0, hunk.old_first
    for change in hunk.changes:
        start = at + change.first - old_at
        middle = start + change.end - change.first
        at, old_at = middle + len(change.added), change.end
        yield change, range(start, middle), range(middle, at)
