"""Carrying hunks over to a newer file: where both sides are far apart it works, where they touch it is a conflict."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.diff import apply_edits, join, make_hunks
from app.editing.document import open_bytes
from app.editing.rebase import moved_hunks, rebase
from app.editing.result import make_result
from app.errors import ConflictError

BASE = [f"line {number}" for number in range(30)]


def joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def rebased(ours: list[str], theirs: list[str], base: list[str] = BASE) -> bytes:
    document, newer = open_bytes(joined(base), "f"), open_bytes(joined(theirs), "f")
    hunks = make_hunks(make_result(document, joined(ours).decode()))
    return apply_edits(newer.data, rebase(document, hunks, newer))


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    our_line=st.integers(0, 29),
    their_line=st.integers(0, 29),
    our_kind=st.sampled_from(["change", "insert", "delete"]),
    their_kind=st.sampled_from(["change", "insert", "delete"]),
)
def test_single_changes(our_line: int, their_line: int, our_kind: str, their_kind: str) -> None:
    """The slow twin: edit a list of single lines, each tagged by who changed it."""

    def edited(lines: list[str], at: int, kind: str, who: str) -> list[str]:
        middle = {"change": [who], "insert": [who, lines[at]], "delete": []}[kind]
        return lines[:at] + middle + lines[at + 1 :]

    ours = edited(BASE, our_line, our_kind, "ours")
    theirs = edited(BASE, their_line, their_kind, "theirs")
    if abs(our_line - their_line) > 1:
        # Later place first, so that the earlier one's number still holds.
        both = BASE
        for at, kind, who in sorted([(our_line, our_kind, "ours"), (their_line, their_kind, "theirs")], reverse=True):
            both = edited(both, at, kind, who)
        assert rebased(ours, theirs) == joined(both)
    elif our_line == their_line:
        with pytest.raises(ConflictError, match=f"around line {our_line + 1}"):
            rebased(ours, theirs)


def test_lines_added_on_top_move_the_hunks_down() -> None:
    ours = [*BASE[:10], "ours", *BASE[10:]]
    assert rebased(ours, ["theirs"] * 3 + BASE) == joined(["theirs"] * 3 + ours)


def test_both_append_is_a_conflict() -> None:
    with pytest.raises(ConflictError):
        rebased([*BASE, "ours"], [*BASE, "theirs"])


def test_one_conflict_stops_all_changes() -> None:
    ours = ["ours", *BASE[1:20], "ours", *BASE[21:]]
    with pytest.raises(ConflictError):
        rebased(ours, [*BASE[:20], "theirs", *BASE[21:]])


def test_repeated_lines_are_not_confused() -> None:
    base = ["{", "}"] * 10
    ours = [*base[:11], "ours", *base[11:]]
    assert rebased(ours, ["top", *base], base) == joined(["top", *ours])


def test_a_changed_line_end_is_a_change() -> None:
    document = open_bytes(b"a\nb\nc\n", "f")
    hunks = make_hunks(make_result(document, "a\nB\nc\n"))
    with pytest.raises(ConflictError):
        rebase(document, hunks, open_bytes(b"a\r\nb\nc\n", "f"))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    ours=st.sets(st.integers(0, 29), min_size=1, max_size=5),
    theirs=st.dictionaries(st.integers(0, 29), st.sampled_from(["change", "insert", "delete"]), max_size=4),
)
def test_hunks_that_all_move_write_what_a_rebase_writes(ours: set[int], theirs: dict[int, str]) -> None:
    new = [f"{line} ours" if at in ours else line for at, line in enumerate(BASE)]
    meanwhile = [
        text
        for at, line in enumerate(BASE)
        for text in {"change": ["theirs"], "insert": ["theirs", line], "delete": []}.get(theirs.get(at, ""), [line])
    ]
    document, newer = open_bytes(joined(BASE), "f"), open_bytes(joined(meanwhile), "f")
    hunks = make_hunks(make_result(document, joined(new).decode()))
    moved = moved_hunks(document, hunks, newer)
    assert len(moved) == len(hunks)
    fitting = [hunk for hunk, found in zip(hunks, moved, strict=True) if found is not None]
    kept = [hunk for hunk in moved if hunk is not None]
    assert join(newer, kept) == apply_edits(newer.data, rebase(document, fitting, newer))
    assert [hunk.index for hunk in kept] == list(range(1, len(kept) + 1))
    assert all(one.old_end <= other.old_first for one, other in pairwise(kept))
    for hunk, found in zip(hunks, moved, strict=True):
        if found is None:
            with pytest.raises(ConflictError):
                rebase(document, [hunk], newer)
