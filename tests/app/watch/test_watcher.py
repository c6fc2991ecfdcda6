"""A watch on real files: what a save leads to, and what it does not."""

import asyncio
import os
from collections import Counter
from pathlib import Path

import pytest

from app.editing.apply import apply_hunks
from app.editing.history import undo_edit
from app.editing.proposals import Standing
from app.errors import EngineUnreachableError, ModelError
from app.watch.breaker import Breaker
from app.watch.events import Applied, Failed, Held, Note, Proposed, Ready, StatusChanged, Superseded, Unchanged
from app.watch.rules import StandingRules
from tests.support.watch_rig import WatchClient, edit_with, watching

ALL = StandingRules("Say hello.")
TRIGGER = "# redraft: say hello\n"


def test_a_save_with_a_trigger_becomes_a_proposal_and_the_file_stays_as_it_is(
    tmp_path: Path, client: WatchClient
) -> None:
    async def work() -> None:
        async with watching(tmp_path, client) as rig:
            path = tmp_path / "a.py"
            path.write_text("x = 1\n" + TRIGGER)
            await rig.settle()
            [proposed] = rig.of(Proposed)
            assert proposed.proposal.instruction == "say hello"
            assert client.edited() == ["x = 1\n"]
            assert path.read_text() == "x = 1\n" + TRIGGER
            opened = rig.store.load(proposed.proposal)
            assert opened.standing is Standing.CURRENT
            apply_hunks(opened.document, opened.hunks, rig.journal)
            assert path.read_text() == "x = 1\nprint('hello')\n"

    asyncio.run(work())


def test_what_its_engine_has_to_say_is_said_first(tmp_path: Path, client: WatchClient) -> None:
    client.choice, client.notes = "Model: small, it fits.", ("No graphics processor is used.",)

    async def work() -> None:
        async with watching(tmp_path, client) as rig:
            said = [event.sentence for event in rig.of(Note)]
            assert said == ["Model: small, it fits.", "No graphics processor is used."]
            assert rig.events.index(rig.of(Note)[-1]) < rig.events.index(rig.of(Ready)[0])

    asyncio.run(work())


def test_without_a_standing_instruction_files_without_triggers_are_left_alone(
    tmp_path: Path, client: WatchClient
) -> None:
    async def work() -> None:
        async with watching(tmp_path, client) as rig:
            (tmp_path / "a.py").write_text("x = '# redraft: no'\n")
            (tmp_path / "b.py").write_text("x = 1\n")
            await rig.settle()
            assert client.requests == [] and rig.proposals() == []

    asyncio.run(work())


def test_what_was_there_before_the_start_waits_for_a_save(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        path.write_text(TRIGGER)
        path.with_name("b.py").write_text("b = 1\n")
        async with watching(tmp_path, client, standing=ALL) as rig:
            [ready] = rig.of(Ready)
            assert (ready.files, ready.folders, ready.events) == (2, 1, True)
            await rig.settle(100.0)  # an idle rescan as well
            assert client.requests == []
            path.chmod(0o600)
            await rig.settle()
            assert client.requests == []  # a new mode is no save
            path.write_text("a = 2\n")
            await rig.settle()
            assert client.edited() == ["a = 2\n"]

    asyncio.run(work())


def test_several_triggers_and_the_standing_instruction_are_one_edit(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL) as rig:
            (tmp_path / "a.py").write_text("# redraft: first\nx = 1  # redraft: second\n")
            await rig.settle()
            [proposed] = rig.of(Proposed)
            instruction = proposed.proposal.instruction
            assert instruction.index("Say hello.") < instruction.index("first") < instruction.index("second")
            assert client.edited() == ["x = 1\n"]

    asyncio.run(work())


def test_the_same_bytes_saved_again_are_no_save(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        async with watching(tmp_path, client, standing=ALL) as rig:
            for _ in range(3):
                path.write_text("x = 1\n")
                os.utime(path, (1, 1))
                await rig.settle()
            assert client.edited() == ["x = 1\n"]

    asyncio.run(work())


def test_nothing_runs_before_a_file_has_settled(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        async with watching(tmp_path, client, standing=ALL) as rig:
            for number in range(10):
                path.write_text(f"x = {number}\n")
                await rig.heard()
                rig.pace.advance(0.2)
            assert client.requests == []
            await rig.settle()
            assert client.edited() == ["x = 9\n"]
            [proposed] = rig.of(Proposed)
            assert proposed.timing.settle_s == pytest.approx(10 * 0.2 + 0.25)

    asyncio.run(work())


def test_a_save_while_its_file_is_edited_wins(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        async with watching(tmp_path, client, standing=ALL, settle_s=0.0) as rig:
            client.held = True
            path.write_text("x = 1\n")
            await rig.until(lambda: len(client.requests) == 1)
            assert rig.watcher.status.running == str(path)
            path.write_text("x = 2\n")
            await rig.until(lambda: len(rig.of(Superseded)) == 1)
            client.held = False
            await rig.settle()
            assert client.edited() == ["x = 1\n", "x = 2\n"]
            [stored] = rig.proposals()
            assert rig.store.load(stored).document.data == b"x = 2\n"

    asyncio.run(work())


def test_our_own_apply_triggers_nothing(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        async with watching(tmp_path, client, standing=ALL, apply=True) as rig:
            path.write_text("x = 1\n")
            await rig.settle()
            [applied] = rig.of(Applied)
            assert path.read_text() == "x = 1\nprint('hello')\n"
            os.utime(path, (0, 0))  # a clock that is wrong
            await rig.settle()
            os.utime(path, (1e10, 1e10))
            await rig.settle(100.0)
            assert len(client.requests) == 1 and rig.proposals() == []
            assert applied.receipt.outside_identical

    asyncio.run(work())


def test_two_watches_on_one_tree_do_not_answer_each_other(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        other = WatchClient(edit_with(lambda source: source + "print('other')\n"))
        async with (
            watching(tmp_path, client, standing=ALL, apply=True) as one,
            watching(tmp_path, other, standing=ALL, apply=True) as two,
        ):
            for number in range(3):
                path.write_text(f"x = {number}\n")
                await one.heard()
                await two.heard()
                one.pace.advance(0.25)  # both run at the same time
                two.pace.advance(0.25)
                for _ in range(3):
                    await one.settle()
                    await two.settle()
            assert len(client.requests) <= 3 and len(other.requests) <= 3
            assert len(one.of(Applied)) + len(two.of(Applied)) == 3

    asyncio.run(work())


def test_an_undo_triggers_nothing(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        async with watching(tmp_path, client, standing=ALL, apply=True) as rig:
            path.write_text("x = 1\n")
            await rig.settle()
            undo_edit(str(path), rig.journal)
            assert path.read_text() == "x = 1\n"
            await rig.settle()
            await rig.settle(100.0)
            assert len(client.requests) == 1

    asyncio.run(work())


def test_an_edit_with_a_warning_is_proposed_and_not_applied(tmp_path: Path) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        text = "".join(f"value_{number} = {number}\n" for number in range(40))
        client = WatchClient(edit_with(lambda source: source.replace(source[200:300], "")))
        async with watching(tmp_path, client, standing=ALL, apply=True) as rig:
            path.write_text(text)
            await rig.settle()
            assert path.read_text() == text
            [proposed] = rig.of(Proposed)
            assert proposed.why_not_applied and proposed.proposal.warnings
            assert rig.of(Applied) == []

    asyncio.run(work())


def test_a_newer_save_is_never_written_over(tmp_path: Path, client: WatchClient) -> None:
    path = tmp_path / "a.py"

    def save_once() -> None:
        client.at_token.clear()
        path.write_text("y = 1\n# mine\n")

    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL, apply=True) as rig:
            client.at_token[6] = save_once
            path.write_text("x = 1\n")
            await rig.settle()
            assert len(rig.of(Superseded)) == 1
            assert path.read_text() == "y = 1\n# mine\nprint('hello')\n"
            assert client.edited() == ["x = 1\n", "y = 1\n# mine\n"]

    asyncio.run(work())


def test_no_change_leaves_the_trigger_and_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        client = WatchClient(edit_with(lambda source: source))
        async with watching(tmp_path, client, apply=True) as rig:
            path = tmp_path / "a.py"
            path.write_text("x = 1\n" + TRIGGER)
            await rig.settle()
            assert [event.path for event in rig.of(Unchanged)] == [str(path)]
            assert path.read_text() == "x = 1\n" + TRIGGER and rig.proposals() == []

    asyncio.run(work())


def test_a_trigger_taken_back_takes_its_edit_back(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        async with watching(tmp_path, client, settle_s=0.0) as rig:
            client.held = True
            path.write_text("x = 1\n" + TRIGGER)
            await rig.until(lambda: len(client.requests) == 1)
            path.write_text("x = 1\n")
            await rig.until(lambda: len(rig.of(Superseded)) == 1)
            client.held = False
            await rig.settle()
            assert len(client.requests) == 1 and rig.proposals() == []

    asyncio.run(work())


def test_the_queue_is_bounded_and_nothing_in_it_is_lost(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL, most_queued=3) as rig:
            for number in range(20):
                (tmp_path / f"{number}.py").write_text(f"x = {number}\n")
            for _ in range(20):
                await rig.settle()
            assert Counter(client.edited()) == Counter(f"x = {number}\n" for number in range(20))
            assert len(rig.of(Note)) >= 1
            assert max(len(event.status.queued) for event in rig.of(StatusChanged)) <= 3

    asyncio.run(work())


def test_the_breaker_holds_a_file_back_and_then_runs_its_newest_state(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        async with watching(tmp_path, client, standing=ALL, breaker=Breaker(3, 30.0)) as rig:
            for number in range(3):
                path.write_text(f"x = {number}\n")
                await rig.settle()
            for number in range(3, 6):
                path.write_text(f"x = {number}\n")
                await rig.heard()
                rig.pace.advance(1.0)
                await rig.until(lambda: rig.watcher.status.state == "queued")
            (tmp_path / "b.py").write_text("b = 1\n")  # others are not held
            await rig.heard()
            rig.pace.advance(1.0)
            await rig.until(lambda: "b = 1\n" in client.edited())
            [held] = rig.of(Held)
            assert held.path == str(path) and 20 < held.for_s <= 30
            assert len(client.requests) == 4
            rig.pace.advance(30.0)
            await rig.idle()
            assert client.edited()[-1] == "x = 5\n" and len(client.requests) == 5

    asyncio.run(work())


def test_a_changed_file_is_read_by_the_engine_while_it_settles(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        path = tmp_path / "a.py"
        outside = tmp_path.with_name(f"{tmp_path.name}.new")
        outside.write_text("x = 1\n")
        async with watching(tmp_path, client, standing=ALL) as rig:
            outside.rename(path)  # in one step: a file that is written there is seen empty first, now and then
            await rig.heard()
            assert client.requests == []
            await rig.settle()
            [request] = client.requests
            assert len(client.warmed) == 1
            assert client.warmed[0].messages == request.messages and client.warmed[0].prefill == request.prefill

    asyncio.run(work())


def test_an_engine_that_keeps_failing_ends_the_watch(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        async with watching(tmp_path, client, standing=ALL) as rig:
            client.failures["count"] = EngineUnreachableError("The engine is gone.")
            for name in "abc":
                (tmp_path / f"{name}.py").write_text(f"{name} = 1\n")
            await rig.heard()
            rig.pace.advance(0.25)
            assert isinstance(await rig.ended(), EngineUnreachableError)
            assert len(rig.of(Failed)) == 3

    asyncio.run(work())


def test_a_missing_model_is_said_at_the_start(tmp_path: Path, client: WatchClient) -> None:
    async def work() -> None:
        client.failures["describe"] = ModelError("No model.")
        async with watching(tmp_path, client, standing=ALL, wait=False) as rig:
            assert isinstance(await rig.ended(), ModelError)

    asyncio.run(work())
