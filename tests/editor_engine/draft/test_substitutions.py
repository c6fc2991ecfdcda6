"""A pair is used from its second sighting on, for as long as it is right more often than wrong."""

import pytest

from editor_engine.draft.substitutions import Substitutions

SOURCE = (1, 2, 3, 9, 1, 2, 3, 9)


def test_one_sighting_is_not_enough() -> None:
    learned = Substitutions()
    learned.learn((1, 2), (7,))
    assert learned.at(SOURCE, 0) is None
    learned.learn((1, 2), (7,))
    found = learned.at(SOURCE, 4)
    assert found is not None and found.emitted == (7,)
    assert learned.at(SOURCE, 1) is None


def test_the_longest_span_wins() -> None:
    learned = Substitutions()
    for _ in range(2):
        learned.learn((1,), (7,))
        learned.learn((1, 2, 3), (8, 8))
    found = learned.at(SOURCE, 0)
    assert found is not None and found.source == (1, 2, 3)
    short = learned.at((1, 2, 4), 0)
    assert short is not None and short.source == (1,)


def test_kept_spans_count_against_a_pair() -> None:
    learned = Substitutions()
    for _ in range(3):
        learned.learn((1, 2), (7,))
    for _ in range(2):
        learned.unchanged(SOURCE, 0)
        assert learned.at(SOURCE, 0) is not None
    learned.unchanged(SOURCE, 4)
    assert learned.at(SOURCE, 0) is None
    learned.unchanged(SOURCE, 3)  # no span starts there


def test_a_better_replacement_takes_the_place() -> None:
    learned = Substitutions()
    learned.learn((1, 2), (7,))
    for _ in range(3):
        learned.learn((1, 2), (8,))
    found = learned.at(SOURCE, 0)
    assert found is not None and found.emitted == (8,)


@pytest.mark.parametrize(("source", "emitted"), [((), (1,)), ((1,), ()), ((1,) * 7, (2,)), ((1,), (2,) * 7)])
def test_insertions_deletions_and_long_spans_are_not_substitutions(
    source: tuple[int, ...], emitted: tuple[int, ...]
) -> None:
    learned = Substitutions()
    for _ in range(3):
        learned.learn(source, emitted)
    assert learned.at((1,) * 9, 0) is None


def test_memory_is_bounded() -> None:
    learned = Substitutions()
    for _ in range(2):
        for span in range(1000):
            learned.learn((span,), (5000,))
            learned.learn((span,), (5000,))
    kept = [span for span in range(1000) if learned.at((span,), 0) is not None]
    assert kept == list(range(744, 1000))
