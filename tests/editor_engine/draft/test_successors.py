"""Frequencies against counting the whole text again."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.draft.ngram_index import BARRIER
from editor_engine.draft.successors import ORDERS, Successor, Successors


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.integers(BARRIER, 2), max_size=30), st.lists(st.integers(0, 2), min_size=1, max_size=3))
def test_best_and_last_follower(tokens: list[int], tail: list[int]) -> None:
    successors = Successors()
    weights = [1 + place % 2 for place in range(len(tokens))]
    for place, weight in enumerate(weights):
        successors.add(tokens, place, weight)
    found = {(entry.order, entry.frequent): entry for entry in successors.after(tail)}
    for order in ORDERS[: len(tail)]:
        gram = tail[-order:]
        places = [
            place
            for place in range(order, len(tokens))
            if tokens[place - order : place] == gram and tokens[place] != BARRIER
        ]
        counts: Counter[int] = Counter()
        for place in places:
            counts[tokens[place]] += weights[place]
        if not places:
            assert (order, True) not in found
            continue
        best: Successor = found[order, True]
        assert counts[tokens[best.place]] == max(counts.values())
        assert best.total == counts.total()
        assert best.share == max(counts.values()) / counts.total()
        assert best.place == max(place for place in places if tokens[place] == tokens[best.place])
        last = found.get((order, False), best)
        assert last.place == places[-1]
