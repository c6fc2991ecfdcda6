"""When Python looks for garbage: not before it is told to, not at what was there by then, and as always afterwards."""

import gc

import pytest

from app.tui.garbage import looked_for_later


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
