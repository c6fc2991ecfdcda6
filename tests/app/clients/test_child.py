"""The engine in a child process: the same answers as in this one, and nothing of it left afterwards."""

import asyncio
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

import pytest

from app.clients.child import KEPT_LOGS, ChildClient
from app.clients.in_process import InProcessClient, own_client
from app.engine_client import EngineClient, TokenCounts
from app.errors import AppError, EngineUnreachableError, FileTooLongError, MemoryLimitError, ModelError, UsageError
from app.load_options import LoadOptions
from app.paths import logs_dir
from editor_engine.config import model_cache_dir
from editor_engine.events import EngineEvent, Finished, FinishReason, Prefill, Text
from editor_engine.requests import CancelFlag, CompletionRequest, Message
from tests.support import obedient_engine
from tests.support.children import child, collected, opened, speaking
from tests.support.obedient_engine import PATIENCE_S, ObedientEngine, ask
from tests.support.tiny_gguf import write_tiny

MakeClient = Callable[[], EngineClient]


@pytest.fixture(params=["in process", "child"])
def make(request: pytest.FixtureRequest) -> MakeClient:
    if request.param == "child":
        return child
    return lambda: InProcessClient(cast(Callable[[], Any], lambda: (ObedientEngine(), "obedient")))


def test_both_ways_say_the_same(make: MakeClient) -> None:
    async def work() -> None:
        async with opened(make()) as client:
            described = await client.describe()
            assert (described.model_id, described.sha256, described.notes) == ("obedient", "c" * 64, ("a note",))
            assert described.choice == "Model: obedient, nobody named one."
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


@pytest.mark.parametrize("loads", ["Event().wait()", "packed(1, 10)"])
def test_close_ends_a_child_that_loads_at_once_and_one_that_packs_without_leavings(tmp_path: Path, loads: str) -> None:
    """A library is not waited for; what is packed is left in order. Nobody has to be killed for either."""
    left = tmp_path / "left"
    program = f"""
import sys
from pathlib import Path
from threading import Event
from app.clients.engine_process import run_process
def load(packed):
    try:
        while True:
            {loads}
    finally:
        Path({str(left)!r}).touch()
run_process(load, {os.getpid()})
"""

    async def work() -> None:
        notes: SimpleQueue[str] = SimpleQueue()
        command = [sys.executable, "-c", program]
        client = ChildClient(LoadOptions(), command=command, grace_s=PATIENCE_S, on_note=notes.put)
        waiting = asyncio.ensure_future(client.describe())
        until = "Packing" if "packed" in loads else "Loading"
        while not (await asyncio.to_thread(notes.get, timeout=PATIENCE_S)).startswith(until):
            pass
        await client.close()
        with pytest.raises(EngineUnreachableError):
            await waiting

    asyncio.run(work())
    assert left.exists() == ("packed" in loads)
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
