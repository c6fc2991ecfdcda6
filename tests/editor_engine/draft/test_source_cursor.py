"""The cursor keeps to the file, and finds its place again after each kind of edit."""

import pytest

from editor_engine.draft.ngram_index import BARRIER, NgramIndex
from editor_engine.draft.source_cursor import Site, SourceCursor

SOURCE = list(range(10, 40))


class Follower:
    """A cursor over SOURCE with an index that starts with it."""

    def __init__(self, source: list[int] | None = None, *, resync: bool = True) -> None:
        self.source = SOURCE if source is None else source
        self.index = NgramIndex([BARRIER, *self.source, BARRIER])
        self.cursor = SourceCursor(self.source, self.index, 1, resync=resync)
        self.output: list[int] = []

    def emit(self, *tokens: int) -> list[bool]:
        result = []
        for token in tokens:
            self.index.append(token)
            self.output.append(token)
            result.append(self.cursor.advance(token, self.output[-36:], len(self.output)))
        return result


@pytest.mark.parametrize(
    ("edit", "rest"),
    [
        ([900], SOURCE[9:]),  # one token replaced
        ([900, 901], SOURCE[9:]),  # one replaced by two
        ([900, 901, 902], SOURCE[8:]),  # three inserted
        ([], SOURCE[14:]),  # six deleted
        ([900], SOURCE[20:]),  # much replaced by little
    ],
)
def test_three_equal_tokens_bring_it_back(edit: list[int], rest: list[int]) -> None:
    follower = Follower()
    assert follower.emit(*SOURCE[:8]) == [True] * 8
    follower.emit(*edit, *rest[:3])
    cursor = follower.cursor
    assert cursor.following and cursor.position == SOURCE.index(rest[3])
    assert cursor.sites == [Site(8, 8)]
    assert follower.emit(*rest[3:6]) == [True] * 3


def test_going_back_needs_five() -> None:
    follower = Follower()
    follower.emit(*SOURCE[:20])
    follower.emit(*SOURCE[2:6])
    assert not follower.cursor.following
    follower.emit(SOURCE[6])
    assert follower.cursor.following and follower.cursor.position == 7


def test_the_nearest_place_ahead_wins_among_equals() -> None:
    source = [1, 2, 3, 50, 1, 2, 3, 51, 1, 2, 3, 52, 60, 61]
    follower = Follower(source)
    follower.emit(1, 2, 3, 50, 99, 1, 2, 3)
    assert follower.cursor.position == 7


def test_the_end_of_the_source_is_a_site_like_any_other() -> None:
    follower = Follower()
    follower.emit(*SOURCE)
    assert not follower.cursor.following
    follower.emit(700, 701, *SOURCE[4:9])
    assert follower.cursor.following and follower.cursor.position == 9


def test_jump_goes_on_behind_a_foreseen_replacement() -> None:
    follower = Follower()
    follower.emit(*SOURCE[:8])
    follower.cursor.jump(10, 9)
    assert follower.emit(*SOURCE[10:12]) == [True, True]
    follower.cursor.jump(len(SOURCE), 12)
    assert not follower.cursor.following


def test_an_empty_source_is_never_followed() -> None:
    follower = Follower([])
    assert follower.emit(1, 2, 3) == [False] * 3
    assert not follower.cursor.following and follower.cursor.sites == []


def test_without_resync_every_edit_is_one_replaced_token() -> None:
    follower = Follower(resync=False)
    assert follower.emit(SOURCE[0], 900, SOURCE[2], SOURCE[2]) == [True, False, True, False]
    assert follower.cursor.position == 4
    follower.emit(*[900] * 100)
    assert not follower.cursor.following
