"""A watch in a process of its own: what it says, how it ends, and that it never outlives whoever started it."""

import asyncio
import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from app.editing.proposals import ProposalStore
from app.errors import InterruptedByUserError, StateError
from app.paths import proposals_dir
from app.watch.presence import running_watches, stop_watch
from app.watch_command import watch
from app.watch_jobs import Said, WatchOrder, command_options, run_watch
from tests.support.headless_edit import assert_sentence
from tests.support.watch_program import PROGRAM

REAL = (sys.executable, "-c", PROGRAM, "watch", "--json", "--until-eof")
ROOT = Path(__file__).resolve().parents[2]


def script(folder: Path, text: str) -> list[str]:
    """A command that runs `text`, whose arguments are those of `redraft watch`."""
    path = folder / "fake.py"
    path.write_text("import json, sys\nsay = lambda **line: print(json.dumps(line), flush=True)\n" + text)
    return [sys.executable, str(path)]


def said(command: list[str], order: WatchOrder) -> list[Said]:
    heard: list[Said] = []
    asyncio.run(run_watch(order, lambda pid: None, heard.append, command=command))
    return heard


def test_every_line_that_matters_becomes_a_sentence(tmp_path: Path) -> None:
    lines = [
        {"type": "ready", "roots": ["/tree"], "folders": 2, "files": 3, "events": True, "seconds": 0.1},
        {"type": "status", "state": "idle"},
        {"type": "proposal", "path": "/tree/a.py", "hunks": 1},
        {"type": "proposal", "path": "/tree/b\n.py", "hunks": 2},
        {"type": "unchanged", "path": "/tree/a.py"},
        {"type": "held", "path": "/tree/a.py", "for_s": 9},
        {"type": "failed", "path": "/tree/a.py", "error": {"code": "x", "message": "The reply is empty."}},
        {"type": "note", "message": "Something."},
        {"type": "failed", "path": "/tree/a.py", "error": None},
        {"type": "proposal"},
        {"type": "ready", "roots": 7},
        {"type": "of another version"},
        {"type": "result", "outcome": "cancelled", "exit_code": 130, "error": None},
    ]
    heard = said(script(tmp_path, f"for line in {lines!r}: say(**line)\n"), WatchOrder("/tree", ""))
    assert [one.failed for one in heard] == [False] * 5 + [True, False]
    words = [one.sentence for one in heard]
    assert words[0] == "Watching /tree: 3 files in 2 folders, after 0.1 s."
    assert words[1] == "/tree/a.py: 1 hunk to review." and words[2].endswith("2 hunks to review.")
    assert words[5:] == ["/tree/a.py: The reply is empty.", "Something."] and "\n" not in "".join(words)


@pytest.mark.parametrize(
    ("order", "arguments"),
    [
        (WatchOrder("src", ""), "-- src"),
        (WatchOrder("--apply", "  "), "-- --apply"),
        (WatchOrder("src", "Add types", ("--model", "tiny")), "-i Add types --model tiny -- src"),
    ],
)
def test_what_is_ordered_is_what_is_run(tmp_path: Path, order: WatchOrder, arguments: str) -> None:
    text = "say(type='result', outcome='failed', error={'message': ' '.join(sys.argv[1:])})\n"
    with pytest.raises(StateError, match=f"^{arguments}$"):
        said(script(tmp_path, text), order)


def test_options_of_ours_are_those_of_a_watch() -> None:
    given = command_options(engine="http://h:1", load={"model": "m", "threads": 0}, strict=True, no_draft=True)
    assert given == ("--engine", "http://h:1", "--model", "m", "--threads", "0", "--strict", "--no-draft")
    known = {name for parameter in watch.params for name in parameter.opts}
    assert {word for word in given if word.startswith("--")} < known
    assert command_options(engine=None, load={}, strict=None, no_draft=None) == ()


@pytest.mark.parametrize("text", ["", "sys.exit(3)", "print('no json')"])
def test_a_watch_that_ends_without_an_answer_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(StateError, match="The watch ended without an answer") as caught:
        said(script(tmp_path, text), WatchOrder("src", ""))
    assert_sentence(str(caught.value))


@pytest.mark.parametrize("by_us", [True, False])
def test_a_real_watch_proposes_and_ends_when_told_by_us_or_by_another(tmp_path: Path, by_us: bool) -> None:
    async def work() -> list[int]:
        heard: asyncio.Queue[Said] = asyncio.Queue()
        pids: list[int] = []
        job = asyncio.ensure_future(
            run_watch(WatchOrder(str(tmp_path), ""), pids.append, heard.put_nowait, command=REAL)
        )
        assert (await heard.get()).sentence.startswith("Watching ")
        (tmp_path / "a.py").write_text("x = 1\n# redraft: say hello\n")
        assert (await heard.get()).sentence.endswith("a.py: 1 hunk to review.")
        assert [found.pid for found in running_watches()] == pids
        if by_us:
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
        else:
            assert stop_watch(pids[0])
            with pytest.raises(InterruptedByUserError, match="The watch was stopped"):
                await job
        return pids

    [pid] = asyncio.run(work())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert running_watches() == [] and ProposalStore(proposals_dir()).count() == 1


def test_a_watch_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    starter = f"""
import asyncio, sys
sys.path.insert(0, {str(ROOT)!r})
from app.watch_jobs import WatchOrder, run_watch
order = WatchOrder({str(tmp_path)!r}, "")
pids = []
asyncio.run(run_watch(order, pids.append, lambda said: print(pids[0], flush=True), command={REAL!r}))
"""
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = json.loads(process.stdout.readline())
        handle = os.pidfd_open(pid)
        process.kill()
        process.wait(timeout=30)
        assert select.select([handle], [], [], 30)[0], "the watch lives on"
        os.close(handle)
    assert running_watches() == []
