"""The queue of saves and the breaker: held against a slow, obvious twin over random histories."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.watch.breaker import Breaker
from app.watch.saves import Pushed, SaveQueue


def queue(limit: int = 100, runs: int = 100) -> SaveQueue:
    return SaveQueue(Breaker(runs, 30.0), settle_s=0.25, limit=limit)


def test_a_file_settles_when_it_was_left_alone() -> None:
    saves = queue()
    assert saves.touch("a", 0.0)
    assert not saves.touch("a", 0.2)
    assert saves.settled(0.25) == [] and saves.next_at(0.25) == pytest.approx(0.45)
    assert saves.settled(0.45) == [("a", 0.0)]
    assert saves.settled(9.0) == [] and saves.next_at(9.0) is None


def test_the_newest_state_takes_the_place_of_an_older_one() -> None:
    saves = queue()
    assert saves.push("a", "1", 0, 0) is Pushed.QUEUED
    assert saves.push("b", "1", 0, 0) is Pushed.QUEUED
    assert saves.push("a", "2", 1, 1) is Pushed.QUEUED
    assert saves.push("a", "2", 1, 1) is Pushed.KNOWN
    assert saves.waiting() == ("a", "b")
    taken = saves.take(2)
    assert taken is not None and (taken.path, taken.sha256, taken.touched_at, taken.queued_at) == ("a", "2", 1, 1)
    assert saves.take(2) is None
    assert saves.push("a", "2", 3, 3) is Pushed.KNOWN
    assert saves.push("a", "3", 3, 3) is Pushed.SUPERSEDES
    assert saves.is_busy("a") and saves.queued == 2
    saves.done(4)
    assert saves.running is None


def test_a_full_queue_refuses_new_files_and_takes_newer_states() -> None:
    saves = queue(limit=1)
    saves.push("a", "1", 0, 0)
    assert saves.push("b", "1", 0, 0) is Pushed.FULL
    assert saves.push("a", "2", 0, 0) is Pushed.QUEUED
    saves.forget("a")
    assert saves.push("b", "1", 0, 0) is Pushed.QUEUED


def test_the_breaker_lets_others_pass() -> None:
    saves = queue(runs=1)
    for path in ("a", "a", "b"):
        saves.push(path, str(saves.queued), 0, 0)
    saves.take(0)
    saves.done(0)
    saves.push("a", "again", 1, 1)
    assert saves.held_until("a", 1) == 30
    taken = saves.take(1)
    assert taken is not None and taken.path == "b"
    saves.done(1)
    assert saves.take(1) is None and saves.next_at(1) == 30
    taken = saves.take(30)
    assert taken is not None and taken.sha256 == "again"


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 20)), max_size=40), st.integers(1, 4))
def test_no_window_holds_more_runs_than_allowed(tries: list[tuple[str, float]], runs: int) -> None:
    breaker = Breaker(runs, 30.0)
    now = 0.0
    started: dict[str, list[float]] = {"a": [], "b": []}
    for path, pause in tries:
        now += pause
        free = breaker.free_at(path, now)
        recent = [at for at in started[path] if at + 30.0 > now]
        assert (free <= now) == (len(recent) < runs)
        if free <= now:
            breaker.started(path, now)
            started[path].append(now)
        else:
            assert free == recent[-runs] + 30.0
        breaker.tidy(now)


@dataclass
class Twin:
    """Slow and obvious: the whole history, searched anew for every answer."""

    settling: dict[str, tuple[float, float]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    newest: dict[str, str] = field(default_factory=dict)
    running: tuple[str, str] | None = None

    def push(self, path: str, sha256: str, limit: int) -> Pushed:
        if path in self.order:
            if self.newest[path] == sha256:
                return Pushed.KNOWN
        elif self.running == (path, sha256):
            return Pushed.KNOWN
        elif len(self.order) >= limit:
            return Pushed.FULL
        else:
            self.order.append(path)
        self.newest[path] = sha256
        return Pushed.SUPERSEDES if self.running is not None and self.running[0] == path else Pushed.QUEUED


_STEPS = st.one_of(
    st.tuples(st.just("touch"), st.sampled_from("abc"), st.just("")),
    st.tuples(st.just("push"), st.sampled_from("abc"), st.sampled_from("123")),
    st.tuples(st.sampled_from(["take", "done", "settle", "wait"]), st.just(""), st.just("")),
    st.tuples(st.just("forget"), st.sampled_from("abc"), st.just("")),
)


@settings(derandomize=True, deadline=None, max_examples=400)
@given(st.lists(_STEPS, max_size=40))
def test_it_is_its_twin(steps: list[tuple[str, str, str]]) -> None:
    saves, twin, now = queue(limit=2), Twin(), 0.0
    for step, path, sha256 in steps:
        if step == "touch":
            assert saves.touch(path, now) == (path not in twin.settling)
            twin.settling[path] = (twin.settling.get(path, (now, now))[0], now)
        elif step == "push":
            assert saves.push(path, sha256, now, now) is twin.push(path, sha256, 2)
        elif step == "take":
            taken = saves.take(now)
            if twin.running is None and twin.order:
                first = twin.order.pop(0)
                twin.running = (first, twin.newest[first])
                assert taken is not None and (taken.path, taken.sha256) == twin.running
            else:
                assert taken is None
        elif step == "done":
            saves.done(now)
            twin.running = None
        elif step == "settle":
            due = [(name, first) for name, (first, last) in twin.settling.items() if now - last >= 0.25]
            assert sorted(saves.settled(now)) == sorted(due)
            for name, _ in due:
                del twin.settling[name]
        elif step == "wait":
            now += 0.125
        else:
            saves.forget(path)
            twin.settling.pop(path, None)
            twin.order = [name for name in twin.order if name != path]
        assert saves.waiting() == tuple(twin.order) and saves.settling == len(twin.settling)
        assert (saves.running is None) == (twin.running is None)
