"""Model jobs: progress as it comes, reasons as sentences, and no process left behind however a call ends."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from app import json_process
from app.errors import ModelError
from app.model_jobs import PullProgress, list_models, pull_model, verify_model
from tests.support.headless_edit import assert_sentence

STUBBORN = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"


def script(folder: Path, text: str) -> list[str]:
    """A command that runs `text`, whose arguments are those of `redraft models`."""
    path = folder / "fake.py"
    path.write_text("import json, os, sys, time\nsay = lambda **line: print(json.dumps(line), flush=True)\n" + text)
    return [sys.executable, str(path)]


def pulled(command: list[str], **options: bool) -> list[PullProgress]:
    got: list[PullProgress] = []
    asyncio.run(pull_model("tiny", got.append, command=command, **options))
    return got


def test_progress_and_success(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        "say(type='progress', source='model hub', done=1, total=2)\n"
        "say(type='progress', source='model hub', done=2, total=2)\n"
        "say(type='result', outcome='changed', error=None, argv=sys.argv)\n",
    )
    assert pulled(command) == [PullProgress("model hub", 1, 2), PullProgress("model hub", 2, 2)]


def test_consent_is_passed_on(tmp_path: Path) -> None:
    command = script(
        tmp_path, "say(type='result', outcome='failed', error={'code': 'model', 'message': ' '.join(sys.argv[1:])})\n"
    )
    with pytest.raises(ModelError, match=r"^pull --json --from-index --accept-licence -- tiny$"):
        pulled(command, from_index=True, accept_licence=True)
    with pytest.raises(ModelError, match=r"^pull --json -- tiny$"):
        pulled(command)
    with pytest.raises(ModelError, match=r"^verify --json -- tiny$"):
        asyncio.run(verify_model("tiny", command=command))


@pytest.mark.parametrize(
    "text",
    ["", "sys.exit(3)", "os.kill(os.getpid(), 9)", "print('[1]'); print('x' * 100); sys.stdout.buffer.write(b'\\xff')"],
)
def test_a_process_that_ends_without_an_answer_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(ModelError, match="ended without an answer") as caught:
        pulled(script(tmp_path, text))
    assert_sentence(str(caught.value))


def test_lines_that_make_no_sense_are_no_progress(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        "say(type='progress', source='x')\nsay(type='progress', source='x', done='many', total=None)\n"
        "print('{')\nsay(type='result', outcome='changed', error=None)\n",
    )
    assert pulled(command) == []


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be started"):
        pulled([str(tmp_path / "none")])


@pytest.mark.parametrize("stubborn", [False, True])
def test_cancelling_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stubborn: bool) -> None:
    monkeypatch.setattr(json_process, "_PATIENCE_S", 0.05 if stubborn else 5.0)
    command = script(
        tmp_path,
        (STUBBORN if stubborn else "")
        + "say(type='progress', source='s', done=os.getpid(), total=1)\ntime.sleep(600)\n",
    )

    async def work() -> int:
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        job = asyncio.ensure_future(
            pull_model("tiny", lambda progress: started.set_result(progress.done), command=command)
        )
        pid = await started
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        return pid

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(work()), 0)


def test_the_real_command_is_not_taken_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit('not ours')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match="No model is called 'tiny'; known: qwen"):
        asyncio.run(pull_model("tiny", lambda _: None))


def test_the_list_is_that_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = asyncio.run(list_models())
    assert rows[0].id == "qwen2.5-coder-0.5b" and not any(row.installed for row in rows)
    assert all(row.path is None and row.memory_bytes for row in rows)
    with pytest.raises(ModelError, match="another version"):
        asyncio.run(list_models(command=script(tmp_path, "say(type='item', id='x')\n")))
