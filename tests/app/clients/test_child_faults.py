"""A child that crashes, hangs, does not obey or speaks nonsense: told in a sentence, ended, mended where it can be."""

import asyncio
import os
import random
import sys
import threading
from contextlib import aclosing, suppress
from typing import Any, cast

import pytest

from app.clients.child import ChildClient
from app.clients.child_pipe import Silence
from app.engine_client import TokenCounts
from app.errors import AppError, EngineUnreachableError
from app.load_options import LoadOptions
from app.paths import logs_dir
from editor_engine.events import EngineEvent, Finished, Text
from editor_engine.requests import CancelFlag
from tests.support.children import OBEDIENT, SHORT_S, child, collected, opened, speaking
from tests.support.obedient_engine import PATIENCE_S, ask


@pytest.mark.parametrize("order", ["kill 9", "end 3"])
def test_a_crash_between_edits_is_mended_once_and_told(order: str) -> None:
    notes: list[str] = []

    async def work() -> None:
        async with opened(child(on_note=notes.append)) as client:
            with pytest.raises(EngineUnreachableError):
                await client.count(ask(order))  # and again in the second process: no third one
            assert await client.count(ask()) == TokenCounts(11, 7)
            assert "started again" in (await client.describe()).notes[-1]

    asyncio.run(work())
    told = [note for note in notes if "stopped" in note]
    assert len(told) == 1
    assert ("SIGKILL" if order == "kill 9" else "exit status 3") in told[0]
    assert [note for note in notes if "Loading" in note] == ["Loading the model."] * 3


def test_an_end_while_nothing_was_asked_is_told_at_the_next_order_and_once() -> None:
    notes: list[str] = []

    async def work() -> None:
        async with opened(child(on_note=notes.append)) as client:
            assert await client.count(ask()) == TokenCounts(11, 7)
            pipe = cast(Any, client)._pipe
            pipe._process.kill()
            await asyncio.to_thread(pipe._threads[0].join)
            assert await client.count(ask()) == TokenCounts(11, 7)
            assert await client.count(ask()) == TokenCounts(11, 7)

    asyncio.run(work())
    assert [note for note in notes if "stopped" in note] == [
        "The engine's process stopped: it was ended by SIGKILL, as a system does that has run out of memory. "
        "It was started again."
    ]


@pytest.mark.parametrize("answers", [False, True])
def test_a_child_that_hangs_is_ended_without_being_asked(answers: bool) -> None:
    notes: list[str] = []
    said = "print('{\"id\": %d, \"event\": {}}' % json.loads(order)['id'], flush=True)" if answers else ""
    client = speaking(f"import json; {said}\ntime.sleep({PATIENCE_S})", on_note=notes.append, silence=Silence(0, 0))

    async def work() -> None:
        async with opened(client):
            with pytest.raises(EngineUnreachableError, match="it hung"):
                async with aclosing(client._answers({"do": "complete"}, CancelFlag())) as heard:
                    async for _ in heard:
                        pass

    asyncio.run(work())
    # It is started once more, but not when it had begun to answer.
    assert len([note for note in notes if "it hung" in note]) == (0 if answers else 1)


def test_a_time_that_passed_while_we_were_stopped_ourselves_ends_no_child() -> None:
    async def work() -> None:
        silence = Silence(loading=0, answering=0)  # over before it is looked at
        async with opened(ChildClient(LoadOptions(), command=OBEDIENT, grace_s=PATIENCE_S, silence=silence)) as client:
            assert await client.count(ask()) == TokenCounts(11, 7)
            assert isinstance((await collected(client, ask("say 3")))[-1], Finished)
            assert (await client.describe()).notes == ("a note",)

    asyncio.run(work())


def test_a_crash_in_the_middle_is_an_error_with_its_reason_and_no_second_answer() -> None:
    async def work() -> list[EngineEvent]:
        events: list[EngineEvent] = []
        async with opened(child()) as client:
            with pytest.raises(EngineUnreachableError, match="SIGSEGV; its log ends with: Fatal Python error"):
                async with aclosing(client.complete(ask("say 2", "kill 11"), CancelFlag())) as stream:
                    async for event in stream:
                        events.append(event)
            assert isinstance((await collected(client, ask("say 1")))[-1], Finished)
        return events

    assert [event.text for event in asyncio.run(work()) if isinstance(event, Text)] == ["text 0\n", "text 1\n"]


def test_a_fault_of_ours_is_told_and_its_words_stay_out_of_the_log() -> None:
    async def work() -> None:
        async with opened(child()) as client:
            with pytest.raises(EngineUnreachableError, match="internal error of the engine, ZeroDivisionError"):
                await collected(client, ask("fault"))

    asyncio.run(work())
    (log,) = logs_dir().glob("engine-*.log")
    text = log.read_text()
    assert "ZeroDivisionError" in text and "obedient_engine.py" in text
    assert "source text" not in text
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_child_that_does_not_stop_is_ended() -> None:
    async def work() -> None:
        async with opened(child(grace_s=SHORT_S)) as client:
            cancel = CancelFlag()
            with pytest.raises(EngineUnreachableError, match="did not stop"):
                async with aclosing(client.complete(ask("deaf"), cancel)) as events:
                    async for _ in events:
                        cancel.set()
            async with aclosing(client.complete(ask("deaf"), CancelFlag())) as events:
                async for _ in events:
                    break
            assert await client.count(ask()) == TokenCounts(11, 7)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('hello', flush=True); time.sleep(30)", "no answer"),
        ("print('[1, 2]', flush=True); time.sleep(30)", "no answer"),
        ("print('{}', flush=True); time.sleep(30)", "no answer"),
        ("print('{\"id\": [1]}', flush=True); time.sleep(30)", "no answer"),
        ('print(\'{"id": -5, "done": true}\', flush=True); time.sleep(30)', "no answer"),
        ("sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush(); time.sleep(30)", "no answer"),
        ("sys.stdout.write('x' * (17 << 20)); time.sleep(30)", "no answer"),
        ('sys.stdout.write(\'{"id": 1, "ev\'); sys.stdout.flush(); os._exit(7)', "exit status 7"),
        ("os.close(1); time.sleep(30)", "stopped answering"),
        ("sys.exit('a last word')", "its log ends with: a last word"),
        ("os.kill(os.getpid(), 40)", "SIGRTMIN|signal 40"),
    ],
)
def test_a_child_that_speaks_nonsense_is_ended_and_the_reason_told(code: str, reason: str) -> None:
    async def work() -> None:
        async with opened(speaking(code)) as client:
            with pytest.raises(EngineUnreachableError, match=reason):
                await client.describe()

    asyncio.run(work())


@pytest.mark.parametrize(
    "answer", ["'counts': None", "'counts': [1]", "'counts': [1, 'x']", "'event': {}", "'done': 1"]
)
def test_answers_of_the_wrong_shape_are_errors(answer: str) -> None:
    code = "import json\n" + f"print(json.dumps(dict({{{answer}}}, id=json.loads(order)['id'])), flush=True)\n"

    async def work() -> None:
        async with opened(speaking(code + "sys.stdin.read()")) as client:
            with pytest.raises(EngineUnreachableError):
                await client.count(ask())
        async with opened(speaking(code + "sys.stdin.read()")) as client:
            with pytest.raises(EngineUnreachableError):
                await client.describe()

    asyncio.run(work())


def test_an_event_of_the_wrong_shape_is_an_error() -> None:
    code = "import json\nprint(json.dumps({'id': json.loads(order)['id'], 'event': {}}), flush=True)\nsys.stdin.read()"

    async def work() -> None:
        async with opened(speaking(code)) as client:
            with pytest.raises(EngineUnreachableError):
                await collected(client, ask())

    asyncio.run(work())


def test_a_program_that_is_not_there_is_said_so() -> None:
    client = ChildClient(LoadOptions(), command=["/nonexistent/python"])
    with pytest.raises(EngineUnreachableError, match="cannot be started"):
        client.start()


def _misfortunes(seed: int, count: int) -> None:
    """One client, and again and again a crash, a kill, a cancel, a consumer that leaves; then it must work."""
    chance = random.Random(seed)

    async def one(client: ChildClient) -> None:
        what = chance.choice(["kill from outside", "crash", "cancel", "leave", "cancel the task", "fail"])
        orders = {"crash": ["say 2", chance.choice(["kill 9", "end 3", "kill 11"])], "fail": ["say 1", "fail numerics"]}
        cancel = CancelFlag()
        waits = what == "cancel the task" or chance.random() < 0.5

        async def consume() -> None:
            left = chance.randrange(4)
            request = ask(*orders.get(what, ["say 3", "wait"] if waits else ["say 3"]))
            async with aclosing(client.complete(request, cancel)) as events:
                async for _ in events:
                    left -= 1
                    if left < 0 and what == "kill from outside":
                        pipe = client._pipe
                        assert pipe is not None
                        pipe._process.kill()
                    elif left < 0 and what != "crash":
                        cancel.set()
                    if left < 0 and what == "leave":
                        return

        task = asyncio.ensure_future(consume())
        if what == "cancel the task":
            await asyncio.sleep(0)
            task.cancel()
        with suppress(AppError, asyncio.CancelledError):
            await task

    async def work() -> None:
        async with opened(child()) as client:
            for _ in range(count):
                await one(cast(ChildClient, client))
                assert isinstance((await collected(client, ask("say 1")))[-1], Finished)

    files, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    asyncio.run(work())
    assert len(os.listdir("/proc/self/fd")) == files and threading.active_count() <= threads
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
@pytest.mark.parametrize("seed", range(2))
def test_whatever_befalls_a_run_the_next_one_is_answered(seed: int) -> None:
    _misfortunes(seed, 12)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_whatever_befalls_hundreds_of_runs_the_next_one_is_answered() -> None:
    _misfortunes(99, 500)
