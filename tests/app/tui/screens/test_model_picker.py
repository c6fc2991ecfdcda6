"""The model picker: facts as a table, consent before anything is fetched, progress, stopping and going on."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app import model_jobs
from app.json_events import plain_data
from app.model_room import rooms
from app.tui.model_worker import ModelWorker
from app.tui.screens.model_picker import ModelPicker, UseModel
from editor_engine.memory import CPU, MemoryPlan, Need
from tests.support.screens import Play, run_screen

WIDE = (120, 30)
FAKE = """
import json, os, signal, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
command, arguments = sys.argv[2], sys.argv[3:]
say = lambda **line: print(json.dumps(line), flush=True)
with (folder / "asked").open("a") as asked:
    asked.write(" ".join([command, *arguments]) + "\\n")
if command == "list":
    for row in json.loads((folder / "rows").read_text()):
        say(type="item", **row)
script = folder / command
if script.exists():
    exec(script.read_text())
say(type="result", outcome="changed", error=None)
"""


def row(model_id: str, **changes: object) -> dict[str, object]:
    facts = {
        "id": model_id,
        "bytes": 491_400_064,
        "licence": "Apache-2.0",
        "memory_bytes": 10**9,
        "fits": True,
        "installed": False,
        "whole": None,
        "path": None,
        "sha256": "a" * 64,
        "for_tests": False,
        "room": None,
    }
    return {**facts, **changes}


HERE = {"installed": True, "whole": True, "path": "/models/x.gguf"}
ROWS = [
    row("qwen2.5-coder-0.5b", **HERE),
    row("qwen2.5-coder-1.5b"),
    row("qwen2.5-coder-3b", licence="Qwen Research", fits=False),
    row("mine", licence=None, memory_bytes=None, fits=None, installed=True, path="/models/mine.gguf"),
    row("smollm2-135m", installed=True, whole=False, path="/models/s.gguf", for_tests=True),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stand-in of `redraft models` finds what to say, and writes down what it was asked."""
    (tmp_path / "fake.py").write_text(FAKE)
    (tmp_path / "rows").write_text(json.dumps(ROWS))
    command = (sys.executable, str(tmp_path / "fake.py"), str(tmp_path))
    for name in ("list_models", "pull_model", "verify_model"):
        whole = getattr(model_jobs, name)
        monkeypatch.setattr(f"app.tui.model_worker.{name}", bound(whole, command))
    return tmp_path


def bound(call: Callable[..., object], command: tuple[str, ...]) -> Callable[..., object]:
    return lambda *given, **named: call(*given, **named, command=command)


def asked(folder: Path) -> list[str]:
    return [line for line in (folder / "asked").read_text().splitlines() if not line.startswith("list")]


def picker(in_use: str | None = None, *options: str) -> tuple[ModelPicker, ModelWorker]:
    worker = ModelWorker(lambda message: screen.post_message(message), options)
    screen = ModelPicker(worker, in_use)
    return screen, worker


def test_the_table_says_what_a_choice_needs(folder: Path) -> None:
    async def steps(play: Play) -> None:
        lines = {line.split()[1]: line for line in play.text().splitlines() if "491 MB" in line}
        first = play.text().splitlines()
        assert any("* " in line and "qwen2.5-coder-0.5b" in line for line in first)
        assert "Apache-2.0" in lines["qwen2.5-coder-1.5b"] and "1.0 GB" in lines["qwen2.5-coder-1.5b"]
        assert "Qwen Research" in lines["qwen2.5-coder-3b"] and " no " in lines["qwen2.5-coder-3b"]
        assert "not in catalogue" in lines["mine"] and lines["mine"].count("unknown") == 2
        assert "damaged (for tests)" in lines["smollm2-135m"]

    run_screen(picker("qwen2.5-coder-0.5b")[0], steps, WIDE)


def test_the_memory_of_the_marked_model_is_taken_apart(folder: Path) -> None:
    draft = Need("small", 4 * 10**8, 1000, 0, drafts=True)
    plan = MemoryPlan((Need("big", 10**9, 20_000, 10**8), draft), 4096, True, free={CPU: 10**9})
    (room,) = rooms(plan, "a context of 1024 tokens [--context-length 1024]")
    shown = [row("first", room=None), row("second", room=plain_data(room), fits=room.fits)]
    (folder / "rows").write_text(json.dumps(shown))

    async def steps(play: Play) -> None:
        assert "Memory" not in play.text()
        await play.press("down")
        said = " ".join(play.text().replace("│", " ").split())
        for words in ("weights 1.00 GB", "draft model 400 MB", "its cache of 4096 tokens 82 MB", "available 1.00 GB"):
            assert words in said
        assert "does not fit" in said and "[--context-length" in said
        await play.press("up")
        assert "Memory" not in play.text()

    run_screen(picker(None, "--draft-model", "small", "--context-length", "4096")[0], steps, WIDE)
    listings = {line for line in (folder / "asked").read_text().splitlines() if line.startswith("list")}
    assert listings == {"list --json --draft-model small --context-length 4096"}


def test_only_a_whole_installed_model_is_used(folder: Path) -> None:
    async def steps(play: Play) -> None:
        await play.press("down", "enter")
        assert "p fetches it (491 MB)" in play.text()
        await play.press("end", "down", "down", "down", "enter")
        assert "is damaged; p fetches it again" in play.text()
        await play.press("up", "enter")

    assert run_screen(picker()[0], steps, WIDE) == [UseModel("mine")]


@pytest.mark.parametrize(
    ("keys", "arguments"),
    [
        (["down", "p", "y"], ["pull --json --from-index -- qwen2.5-coder-1.5b"]),
        (["down", "p", "n"], ["pull --json -- qwen2.5-coder-1.5b"]),
        (["down", "down", "p", "y"], ["pull --json --accept-licence -- qwen2.5-coder-3b"]),
    ],
)
def test_consent_comes_first_and_is_passed_on(folder: Path, keys: list[str], arguments: list[str]) -> None:
    async def steps(play: Play) -> None:
        for key in keys:
            await play.press(key)
        await play.settle()
        assert "is installed and its SHA-256 is right" in play.text()

    run_screen(picker()[0], steps, WIDE)
    assert asked(folder) == arguments


@pytest.mark.parametrize("keys", [["down", "down", "p", "n"], ["p"], ["down", "down", "down", "p"], ["s"]])
def test_nothing_is_fetched_without_consent_or_need(folder: Path, keys: list[str]) -> None:
    async def steps(play: Play) -> None:
        for key in keys:
            await play.press(key)

    run_screen(picker()[0], steps, WIDE)
    assert asked(folder) == []


def test_why_a_pull_failed_is_said(folder: Path) -> None:
    (folder / "pull").write_text(
        "say(type='result', outcome='failed', error={'code': 'model', 'message': 'Hub [x] is closed.'})\nsys.exit(4)"
    )

    async def steps(play: Play) -> None:
        for key in ("down", "p", "n"):
            await play.press(key)
        assert "Hub [x] is closed." in play.text()

    run_screen(picker()[0], steps, WIDE)


def test_a_pull_shows_progress_goes_on_without_the_screen_and_can_be_stopped(folder: Path) -> None:
    (folder / "pull").write_text(
        "(folder / 'pid').write_text(str(os.getpid()))\n"
        "say(type='progress', source='model hub', done=25, total=100)\ntime.sleep(600)"
    )
    screen, worker = picker()

    async def steps(play: Play) -> None:
        await play.press("down")
        await play.press("p")
        await play.pilot.press("n")
        while worker.progress is None:
            await asyncio.sleep(0)  # the event loop turns until the process has spoken
            await play.pilot.pause()
        await play.pilot.pause()
        assert "25%" in play.text() and "Fetching qwen2.5-coder-1.5b from the model hub." in play.text()
        await play.pilot.press("v")  # one thing at a time
        await play.pilot.press("up", "v")
        await play.pilot.pause()
        await play.pilot.press("escape")
        await play.pilot.pause()
        assert worker.busy_with == "qwen2.5-coder-1.5b"
        assert worker.stop()
        await play.settle()
        assert worker.busy_with is None

    assert run_screen(screen, steps, WIDE) == [None]
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)


def test_a_model_is_verified(folder: Path) -> None:
    async def steps(play: Play) -> None:
        await play.press("down", "v")
        assert "Only an installed model can be verified." in play.text()
        await play.press("up", "v")
        assert "qwen2.5-coder-0.5b is right." in play.text()

    run_screen(picker()[0], steps, WIDE)
    assert asked(folder) == ["verify --json -- qwen2.5-coder-0.5b"]


def test_a_list_that_cannot_be_had_is_said(folder: Path) -> None:
    (folder / "rows").write_text("[")

    async def steps(play: Play) -> None:
        assert "ended without an answer" in play.text()
        await play.press("enter", "p", "v", "escape")

    assert run_screen(picker()[0], steps, WIDE) == [None]
