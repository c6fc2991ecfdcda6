"""When Python looks for garbage: not before it is told to, not at what was there by then, and as always afterwards."""

import gc
from collections.abc import Callable

import pytest

from app.tui.garbage import look_if_due, looked_for_later


def test_nothing_is_looked_at_before_the_first_picture_and_what_is_there_never_again() -> None:
    with looked_for_later() as begin:
        assert not gc.isenabled() and gc.get_freeze_count() == 0
        begin()
        assert gc.isenabled() and gc.get_freeze_count() > 10_000
        assert len(gc.get_objects()) < 1_000
    assert gc.isenabled() and gc.get_freeze_count() == 0


def test_a_start_that_fails_leaves_the_collector_on() -> None:
    with pytest.raises(OSError), looked_for_later():
        raise OSError
    assert gc.isenabled()


class Ring:
    """Garbage that only a look can find."""

    def __init__(self) -> None:
        self.itself = self


def oldest_looks(look: Callable[[], None]) -> int:
    """How often all is looked at while rings pile up that do not go, `look` being called now and then."""
    looks, kept = 0, []

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal looks
        looks += phase == "start" and info["generation"] == 2

    gc.callbacks.append(count)
    try:
        with looked_for_later() as begin:
            begin()
            young, middle, _ = gc.get_threshold()
            for number in range(12 * (young + 1) * (middle + 1)):
                kept.append(Ring())
                if number % 1_000 == 0:
                    look()
            return looks
    finally:
        gc.callbacks.remove(count)


def test_all_is_looked_at_when_nobody_waits_and_not_in_between() -> None:
    before = gc.get_threshold()
    assert oldest_looks(lambda: None) == 0
    assert oldest_looks(look_if_due) == 1
    assert gc.get_threshold() == before


def test_a_look_that_is_not_due_is_none() -> None:
    gc.collect()
    before = gc.get_stats()[2]["collections"]
    look_if_due()
    assert gc.get_stats()[2]["collections"] == before
