"""A signal ends a watch also in the midst of computing, and breaks off only what writes nothing."""

import asyncio
import os
import signal
import sys

import pytest

from app.errors import InterruptedByUserError
from app.watch import overdue
from app.watch.overdue import SIGNALS, ended_by_signals, runs_in


def endless() -> None:
    while True:
        pass


@pytest.mark.parametrize("number", SIGNALS)
def test_what_computes_without_end_is_broken_off(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    monkeypatch.setattr(overdue, "_MAY_BREAK", frozenset({endless.__code__}))
    monkeypatch.setattr(overdue, "_PATIENCE_S", 0.001)
    told = []

    async def work() -> None:
        with ended_by_signals(asyncio.get_running_loop(), lambda: told.append("stop")):
            os.kill(os.getpid(), number)
            with pytest.raises(InterruptedByUserError):
                endless()
            assert told == ["stop"]  # before the error: whoever catches it knows what it means
            await asyncio.sleep(0)

    before = [signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)]
    asyncio.run(work())
    assert told == ["stop", "stop"]
    assert [signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_idle_loop_hears_of_a_signal_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overdue, "_PATIENCE_S", 1000.0)

    async def work() -> None:
        stopped = asyncio.Event()
        with ended_by_signals(asyncio.get_running_loop(), stopped.set):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(stopped.wait(), 20.0)

    asyncio.run(work())


def test_only_what_is_under_way_counts() -> None:
    async def suspended() -> None:
        await asyncio.Event().wait()

    def inner() -> bool:
        return runs_in(sys._getframe(), frozenset({work.__code__}))

    async def work() -> bool:
        return inner()

    async def both() -> tuple[bool, bool]:
        task = asyncio.ensure_future(suspended())
        await asyncio.sleep(0)
        found = runs_in(sys._getframe(), frozenset({suspended.__code__}))
        task.cancel()
        return found, await work()

    assert asyncio.run(both()) == (False, True)
