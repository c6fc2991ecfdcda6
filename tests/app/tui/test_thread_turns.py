"""Turns of threads: short while the interface runs, and as before when it has ended, by whatever."""

import sys

import pytest

from app.tui.thread_turns import TURN_S, short_turns


def test_turns_are_short_inside_and_as_before_afterwards() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(OSError), short_turns():
        assert sys.getswitchinterval() == pytest.approx(TURN_S) and TURN_S < before
        raise OSError
    assert sys.getswitchinterval() == before
