"""Many saves at once: the last state of every file is edited once, nothing twice, and nothing piles up.

REDRAFT_SOAK=1 (`make soak`) makes 1,000 saves over 200 files instead of 200 over 40.
"""

import asyncio
import gc
import random
import threading
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from app.watch.events import Proposed
from app.watch.rules import StandingRules
from tests.support.soak import SOAK
from tests.support.watch_rig import WatchClient, edit_with, watching

SAVES, FILES = (1000, 200) if SOAK else (200, 40)
ALL = StandingRules("Say hello.")


def save(path: Path, text: str, how: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if how == 0:
        path.write_text(text)
    elif how == 1:
        path.with_suffix(".part").write_text(text)
        path.with_suffix(".part").replace(path)
    else:
        path.unlink(missing_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("apply", [False, True])
def test_every_last_state_is_edited_once(tmp_path: Path, apply: bool) -> None:
    client = WatchClient(edit_with(lambda source: f"{source}print('hello')\n"))
    chance = random.Random(8)
    last: dict[Path, str] = {}

    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL, apply=apply) as rig:
            left = SAVES
            while left:
                burst = min(left, chance.randint(1, 2 * FILES))
                left -= burst
                for number in range(burst):
                    path = tmp_path / f"d{chance.randrange(FILES) % 7}" / f"f{chance.randrange(FILES)}.py"
                    last[path] = f"x = {left} * {number}\n"
                    save(path, last[path], chance.randrange(3))
                before = len(client.requests)
                states = dict(last)
                await rig.settle()
                rig.pace.advance(31.0)  # out of the breaker's window
                edited = Counter(client.edited()[before:])
                assert set(edited.values()) == {1}
                assert set(edited) <= set(states.values())
            assert Counter(client.edited()).most_common(1)[0][1] == 1
            assert set(last.values()) <= set(client.edited())
            if apply:
                assert all(path.read_text() == f"{text}print('hello')\n" for path, text in last.items())
            else:
                stored = {Path(one.path): rig.store.load(one).document.text for one in rig.proposals()}
                assert stored == last

    asyncio.run(work())


def test_saves_that_never_stop_are_not_lost(tmp_path: Path) -> None:
    """Saves come while others settle, wait and run."""
    client = WatchClient(edit_with(lambda source: f"{source}print('hello')\n"))
    chance = random.Random(9)
    last: dict[Path, str] = {}

    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL) as rig:
            for number in range(SAVES):
                path = tmp_path / f"f{chance.randrange(FILES)}.py"
                last[path] = f"x = {number}\n"
                save(path, last[path], chance.randrange(3))
                rig.pace.advance(chance.choice([0.0, 0.1, 0.3]))
                for _ in range(chance.randrange(20)):
                    await asyncio.sleep(0)
            for _ in range(10):
                await rig.settle(31.0)
            stored = {Path(one.path): rig.store.load(one).document.text for one in rig.proposals()}
            assert stored == last
            runs = Counter(event.proposal.base_sha256 for event in rig.of(Proposed))
            assert set(runs.values()) == {1}

    asyncio.run(work())


def test_memory_and_threads_stay_as_they_are(tmp_path: Path) -> None:
    client = WatchClient(edit_with(lambda source: f"{source}print('hello')\n"))

    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL) as rig:

            async def burst(number: int) -> int:
                for at in range(10):
                    (tmp_path / f"f{at}.py").write_text(f"x = {number}\n")
                await rig.settle()
                rig.pace.advance(31.0)
                for kept in (rig.events, client.requests, client.warmed):
                    kept.clear()
                if rig.source is not None:
                    rig.source.heard.clear()
                gc.collect()
                return tracemalloc.get_traced_memory()[0]

            tracemalloc.start()
            try:
                for number in range(3):
                    first = await burst(number)
                threads = threading.active_count()
                for number in range(3, 9):
                    last = await burst(number)
            finally:
                tracemalloc.stop()
            assert threading.active_count() == threads
            assert last - first < 200_000, (first, last)

    asyncio.run(work())
