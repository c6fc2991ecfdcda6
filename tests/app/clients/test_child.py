"""The engine in a child process: the same answers as in this one, and a child that misbehaves in every way it can."""

import asyncio
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from app.clients.child import KEPT_LOGS, ChildClient
from app.clients.child_pipe import Silence
from app.clients.in_process import InProcessClient, own_client
from app.engine_client import EngineClient, TokenCounts
from app.errors import AppError, EngineUnreachableError, FileTooLongError, MemoryLimitError, ModelError, UsageError
from app.load_options import LoadOptions
from app.paths import logs_dir
from editor_engine.config import model_cache_dir
from editor_engine.events import EngineEvent, Finished, FinishReason, Prefill, Text
from editor_engine.requests import CancelFlag, CompletionRequest, Message
from tests.support import obedient_engine
from tests.support.obedient_engine import PATIENCE_S, ObedientEngine, ask
from tests.support.tiny_gguf import write_tiny

OBEDIENT = (sys.executable, obedient_engine.__file__, str(os.getpid()))
SHORT_S = 0.2
"""Grace for a child that will not obey anyway."""

MakeClient = Callable[[], EngineClient]


def child(*, grace_s: float = PATIENCE_S, on_note: Callable[[str], None] = lambda sentence: None) -> ChildClient:
    return ChildClient(LoadOptions(), command=OBEDIENT, grace_s=grace_s, on_note=on_note)


def speaking(code: str, *, grace_s: float = SHORT_S, **options: Any) -> ChildClient:
    """A child that runs this Python; `order` is the first line it was sent."""
    program = f"import os, sys, time\norder = sys.stdin.readline()\n{code}"
    return ChildClient(LoadOptions(), command=[sys.executable, "-c", program], grace_s=grace_s, **options)


@pytest.fixture(params=["in process", "child"])
def make(request: pytest.FixtureRequest) -> MakeClient:
    if request.param == "child":
        return child
    return lambda: InProcessClient(cast(Callable[[], Any], lambda: (ObedientEngine(), "obedient")))


@asynccontextmanager
async def opened(client: EngineClient) -> AsyncGenerator[EngineClient, None]:
    try:
        yield client
    finally:
        await client.close()


async def collected(
    client: EngineClient, request: CompletionRequest, cancel: CancelFlag | None = None
) -> list[EngineEvent]:
    async with aclosing(client.complete(request, cancel or CancelFlag())) as events:
        return [event async for event in events]


def test_both_ways_say_the_same(make: MakeClient) -> None:
    async def work() -> None:
        async with opened(make()) as client:
            described = await client.describe()
            assert (described.model_id, described.sha256, described.notes) == ("obedient", "c" * 64, ("a note",))
            assert (described.device, described.threads, described.context_length) == ("cpu", 2, 4096)
            assert described.exactness == "exact" and described.capabilities.region
            assert await client.count(ask()) == TokenCounts(11, 7)
            expected = list(ObedientEngine().complete(ask("say 3"), CancelFlag()))
            assert await collected(client, ask("say 3")) == expected
            assert await collected(client, ask("say 3", "print")) == expected

    asyncio.run(work())


def test_both_ways_stop_when_asked_and_go_on(make: MakeClient) -> None:
    async def work() -> None:
        async with opened(make()) as client:
            cancel = CancelFlag()
            async with aclosing(client.complete(ask("wait", "say 1"), cancel)) as events:
                async for event in events:
                    cancel.set()
                    last = event
            assert isinstance(last, Finished) and last.reason is FinishReason.CANCELLED
            before = CancelFlag()
            before.set()
            (only,) = await collected(client, ask("say 1"), before)
            assert isinstance(only, Finished) and only.reason is FinishReason.CANCELLED
            assert isinstance((await collected(client, ask("say 1")))[-1], Finished)

    asyncio.run(work())


@pytest.mark.parametrize("way", ["leave", "cancel the task"])
def test_both_ways_are_idle_when_the_consumer_has_left(make: MakeClient, way: str) -> None:
    async def work() -> None:
        async with opened(make()) as client:
            begun = asyncio.Event()

            async def left() -> None:
                async with aclosing(client.complete(ask("wait"), CancelFlag())) as events:
                    async for _ in events:
                        begun.set()
                        if way == "leave":
                            return

            running = asyncio.ensure_future(left())
            await begun.wait()
            if way != "leave":
                running.cancel()
            await asyncio.wait([running])
            events = await collected(client, ask("say 1"))  # refused, were the engine still busy
            assert isinstance(events[-1], Finished)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("model_missing", ModelError),
        ("out_of_memory", MemoryLimitError),
        ("context_length_exceeded", FileTooLongError),
        ("numerics", EngineUnreachableError),
        ("option", UsageError),
        ("request", EngineUnreachableError),
    ],
)
def test_both_ways_raise_the_same_errors_and_go_on(make: MakeClient, word: str, expected: type[AppError]) -> None:
    async def work() -> None:
        async with opened(make()) as client:
            for call in (lambda: client.count(ask(f"fail {word}")), lambda: collected(client, ask(f"fail {word}"))):
                with pytest.raises(expected, match=f"^A failure of kind {word}\\.$") as caught:
                    await call()
                assert type(caught.value) is expected
            assert isinstance((await collected(client, ask("say 1")))[-1], Finished)

    asyncio.run(work())


def test_memory_that_runs_out_in_a_reply_ends_that_reply_only(make: MakeClient) -> None:
    async def work() -> None:
        async with opened(make()) as client:
            heard: list[EngineEvent] = []
            with pytest.raises(MemoryLimitError, match="out_of_memory"):
                async with aclosing(client.complete(ask("say 2", "fail out_of_memory"), CancelFlag())) as events:
                    async for event in events:
                        heard.append(event)
            assert sum(isinstance(event, Text) for event in heard) == 2
            assert isinstance((await collected(client, ask("say 1")))[-1], Finished)

    asyncio.run(work())


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


def test_nothing_is_left_after_close_and_nothing_starts_before_it_is_asked() -> None:
    threads = threading.active_count()
    files = os.listdir("/proc/self/fd") if sys.platform == "linux" else []

    async def work() -> None:
        unused = child()
        await unused.close()
        async with opened(child()) as client:
            cast(ChildClient, client).start()
            await client.describe()
        await client.close()
        with pytest.raises(EngineUnreachableError, match="closed"):
            await client.describe()

    asyncio.run(work())
    assert threading.active_count() <= threads + 1  # asyncio's own for `to_thread` ends with the loop
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == len(files)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_close_ends_a_child_that_will_not_leave() -> None:
    async def work() -> None:
        client = speaking('print(\'{"note": "here"}\', flush=True); time.sleep(30)')
        client.start()
        await client.close()

    asyncio.run(work())
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_only_the_newest_logs_are_kept() -> None:
    async def work() -> None:
        for _ in range(KEPT_LOGS + 3):
            async with opened(speaking("sys.exit('a last word')")) as client:
                with pytest.raises(EngineUnreachableError):
                    await client.describe()

    asyncio.run(work())
    assert len(list(logs_dir().glob("engine-*.log"))) == KEPT_LOGS


def test_the_key_of_another_engine_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_ENGINE_KEY", "secret")
    code = "sys.exit('key' if 'REDRAFT_ENGINE_KEY' in os.environ else 'none')"

    async def work() -> None:
        async with opened(speaking(code)) as client:
            with pytest.raises(EngineUnreachableError, match="ends with: none"):
                await client.describe()

    asyncio.run(work())


PARENT = """
import asyncio, sys
from app.clients.child import ChildClient
from app.load_options import LoadOptions
from tests.support.obedient_engine import ask
from editor_engine.requests import CancelFlag

async def work():
    client = ChildClient(LoadOptions(), command=[sys.executable, sys.argv[1], str(__import__("os").getpid())])
    await client.describe()
    pipe = client._pipe._process
    print(pipe.pid, __import__("os").getpgid(pipe.pid), __import__("os").getpriority(0, pipe.pid), flush=True)
    async for event in client.complete(ask("wait"), CancelFlag()):
        print("waiting", flush=True)

asyncio.run(work())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_child_ends_with_a_parent_that_is_killed(number: signal.Signals, tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, obedient_engine.__file__],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=root,
        text=True,
    )
    assert parent.stdout is not None
    with parent.stdout:
        pid, group, nice = map(int, parent.stdout.readline().split())
        assert group == pid != parent.pid  # ctrl-C in the terminal is not for it
        assert nice >= os.getpriority(os.PRIO_PROCESS, 0) + 5 or nice == 19
        assert parent.stdout.readline() == "waiting\n"
        # Read only while the child holds its end: the descriptor says when the process is gone, without a clock.
        gone = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        parent.send_signal(number)
        parent.wait(PATIENCE_S)
    if gone is not None:
        try:
            assert select.select([gone], [], [], PATIENCE_S)[0]
        finally:
            os.close(gone)


def test_prefill_progress_reaches_the_parent_before_the_end() -> None:
    async def work() -> None:
        async with opened(child()) as client:
            cancel = CancelFlag()
            async with aclosing(client.complete(ask("wait"), cancel)) as events:
                assert await anext(events) == Prefill(0, 11)
                cancel.set()
                assert isinstance(await anext(events), Finished)

    asyncio.run(work())


def test_the_real_process_gives_the_same_tokens_as_the_engine_in_process(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny(path)
    request = CompletionRequest((Message("user", "def f():\n    pass\n"),), 30, prefill="```\n", source="def f():\n")

    async def finished(client: EngineClient) -> Finished:
        async with opened(client):
            assert (await client.describe()).model_id == "tiny"
            assert (await client.count(request)).prompt > 0
            last = (await collected(client, request))[-1]
            assert isinstance(last, Finished)
            return last

    in_process = asyncio.run(finished(own_client(LoadOptions(str(path), 1))))
    notes: list[str] = []
    shutil.rmtree(model_cache_dir(), ignore_errors=True)
    in_child = asyncio.run(finished(ChildClient(LoadOptions(str(path), 1), on_note=notes.append)))
    assert any("Packing the weights" in note and "100 %" in note for note in notes)
    assert in_child.token_ids == in_process.token_ids and in_child.token_ids
    assert in_child.reason is in_process.reason
    missing = ChildClient(LoadOptions(str(tmp_path / "none.gguf"), 1))
    with pytest.raises(ModelError, match="no model file"):
        asyncio.run(finished(missing))


def test_a_folder_of_the_user_s_named_like_ours_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    monkeypatch.chdir(tmp_path)

    async def work() -> None:
        async with opened(ChildClient(LoadOptions("none.gguf", 1))) as client:
            with pytest.raises(ModelError, match="no model file"):
                await client.describe()

    asyncio.run(work())


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
