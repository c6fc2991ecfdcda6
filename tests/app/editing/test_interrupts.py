"""Signals while a file is replaced, and signals that are answered as ctrl-C is."""

import signal
from collections.abc import Iterator

import pytest

from app.early_signals import Noted, note_signals, raise_noted
from app.editing.interrupts import ends_as_interrupts, interrupts_held

LIKE = [signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """pytest's own handlers, back again whatever a test did."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *LIKE)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", LIKE)
def test_its_like_end_as_ctrl_c_does_and_the_old_handlers_are_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), ends_as_interrupts():
        signal.raise_signal(number)
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", LIKE)
def test_whoever_answers_ctrl_c_answers_its_like(number: signal.Signals) -> None:
    came = []
    with ends_as_interrupts():
        signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
        signal.raise_signal(number)
    assert came == [number]


def test_a_background_job_that_ignores_ctrl_c_ends_when_it_is_told_to() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), ends_as_interrupts():
        signal.raise_signal(signal.SIGTERM)


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ends_as_interrupts():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


@pytest.mark.parametrize("number", [signal.SIGINT, *LIKE])
def test_what_is_answered_as_ctrl_c_is_spent_while_a_file_is_replaced(number: signal.Signals) -> None:
    with ends_as_interrupts():
        with interrupts_held() as held:
            signal.raise_signal(number)
            assert held.pending()
        assert held.arrived == [number]


@pytest.mark.parametrize("number", LIKE)
def test_elsewhere_it_is_raised_again_at_the_end(number: signal.Signals) -> None:
    came = []
    signal.signal(number, lambda number, frame: came.append(number))
    with interrupts_held():
        signal.raise_signal(number)
        assert came == []
    assert came == [number]


@pytest.mark.parametrize("number", [signal.SIGINT, *LIKE])
def test_what_came_early_can_be_raised_and_what_comes_late_is_noted(number: signal.Signals) -> None:
    note_signals()
    signal.raise_signal(number)
    with pytest.raises(KeyboardInterrupt), ends_as_interrupts() as raise_earlier:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        raise_earlier()
    for late in (signal.SIGINT, *LIKE):
        signal.raise_signal(late)


def test_without_anything_early_nothing_is_raised() -> None:
    with ends_as_interrupts() as raise_earlier:
        raise_earlier()
    note_signals()
    with ends_as_interrupts() as raise_earlier:
        raise_earlier()


def test_what_was_noted_is_raised_again_once() -> None:
    note_signals()
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        raise_noted()
    assert not any(isinstance(signal.getsignal(number), Noted) for number in (signal.SIGINT, *LIKE))
    raise_noted()
