"""The index against a search through the whole array, and the bound on its steps."""

from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.draft.ngram_index import BARRIER, Match, NgramIndex

TOKENS = st.lists(st.integers(BARRIER, 2), max_size=40)


def obvious(tokens: list[int], tail: list[int], low: int, high: int) -> dict[int, int]:
    """Place to match length, for lengths from 2."""
    found = {}
    for place in range(max(low, 0), min(high, len(tokens))):
        length = 0
        while length < min(32, len(tail), place) and tokens[place - 1 - length] == tail[-1 - length]:
            length += 1
        if length >= 2 and tokens[place] != BARRIER:
            found[place] = length
    return found


@settings(derandomize=True, deadline=None, max_examples=300)
@given(TOKENS, st.lists(st.integers(0, 2), max_size=9), st.integers(0, 40), st.integers(0, 40))
def test_longest_match_of_a_region(tokens: list[int], tail: list[int], low: int, high: int) -> None:
    index = NgramIndex(tokens)
    found = obvious(tokens, tail, low, high)
    longest = max(found.values(), default=0)
    if len(found) > 24:
        return  # more places than a lookup walks
    places = [place for place, length in found.items() if length == longest]
    assert index.forward(tail, low, high) == (Match(min(places), longest) if places else None)
    assert index.backward(tail, low, high) == (Match(max(places), longest) if places else None)


def test_a_gram_is_known_once_a_token_follows_it() -> None:
    index = NgramIndex([5, 6])
    assert index.backward([5, 6], 0, 9) is None
    index.append(7)
    assert index.backward([5, 6], 0, 9) == Match(2, 2)


def test_nothing_matches_across_a_barrier() -> None:
    index = NgramIndex([1, BARRIER, 2, 3])
    assert index.forward([1, 2], 0, 9) is None
    assert index.forward([BARRIER, 2], 0, 9) is None


class CountingTail(list[int]):
    """Counts how often a token is read."""

    reads = 0

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        CountingTail.reads += 1
        return super().__getitem__(key)


def test_steps_do_not_grow_with_repetition() -> None:
    reads = []
    for lines in (100, 4000):
        index = NgramIndex([1, 2, 3, 4, 5] * lines)
        CountingTail.reads = 0
        index.forward(CountingTail([9, 1, 2, 3, 4]), 0, 5 * lines)
        index.backward(CountingTail([9, 1, 2, 3, 4]), 0, 5 * lines)
        reads.append(CountingTail.reads)
    assert reads[0] == reads[1] < 500
