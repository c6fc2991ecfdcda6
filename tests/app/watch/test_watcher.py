"""A watch on real files: what a save leads to, and what it does not."""

import asyncio
from pathlib import Path

import pytest

from app.watch.events import Proposed
from app.watch.rules import StandingRules
from tests.support.watch_rig import WatchClient, edit_with, watching

ALL = StandingRules("Say hello.")


def hello(source: str) -> str:
    return source + "print('hello')\n"


@pytest.fixture
def client() -> WatchClient:
    return WatchClient(edit_with(hello))


def test_a_save_with_a_trigger_becomes_a_proposal(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        async with watching(tmp_path, client) as rig:
            (tmp_path / "a.py").write_text("x = 1\n# redraft: say hello\n")
            await rig.settle()
            [proposed] = rig.of(Proposed)
            assert proposed.proposal.instruction == "say hello"
            assert client.edited() == ["x = 1\n"]
            opened = rig.store.load(proposed.proposal)
            assert opened.standing == "current"

    asyncio.run(work())
