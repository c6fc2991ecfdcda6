"""Whole edits on folders with Hugging Face checkpoints: command line, regions, proof, reuse, cancel, server, watch.

Tiny models of every family know their replies by heart, so that edits come to their end; one writes nonsense, which
must be refused like any other nonsense.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.editing.language import detect_language
from app.editing.prompt import build_prompt
from app.editing.region import Region
from app.errors import ExitCode
from editor_engine.config import EngineConfig
from editor_engine.engine import Engine
from editor_engine.events import EngineEvent, Finished, FinishReason, Started, Text
from editor_engine.requests import CancelFlag, CompletionRequest
from tests.support.command_line import run_command
from tests.support.light_checkpoints import light_checkpoint
from tests.support.serving import serving
from tests.support.taught_checkpoints import Lesson, teach
from tests.support.tiny_checkpoints import ARCHITECTURES, make_checkpoint

pytest.importorskip("torch")
pytest.importorskip("transformers")

SOURCE = 'def load(path):\n    return open(path)\n\n\ndef save(path, text):\n    open(path, "w").write(text)\n'
INSTRUCTION = "Rename load to read."
CHANGED = SOURCE.replace("def load", "def read")
REGION_INSTRUCTION = "Close the file."
REGION = Region(1, 2)
REGION_CHANGED = SOURCE.replace("    return open(path)\n", "    with open(path) as file:\n        return file.read()\n")
OPTIONS = [["--no-draft"], ["--dtype", "bfloat16"], ["--attention", "eager"], ["--quantise", "nf4"]]
TAUGHT = ("Qwen2", "Gemma3")
"""One whose cache is plain, one with windows shorter than the prompt; these know the edit of a region, too."""


def whole(source: str = SOURCE, instruction: str = INSTRUCTION) -> CompletionRequest:
    return build_prompt(source.splitlines(), instruction, detect_language("a.py")).request(400)


def region() -> CompletionRequest:
    return build_prompt(SOURCE.splitlines(), REGION_INSTRUCTION, detect_language("a.py"), REGION).request(400)


@pytest.fixture(scope="session")
def taught(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("taught")
    rest = REGION_CHANGED.removeprefix(region().prefill.partition("\n")[2])
    lessons = [Lesson(whole(), f"{CHANGED}```"), Lesson(region(), f"{rest}```")]
    return {family: teach(root / family, family, lessons[: 1 + (family in TAUGHT)]) for family in ARCHITECTURES}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "a.py"
    path.parent.mkdir()
    path.write_text(SOURCE, "utf-8")
    return path


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    out, err = capsys.readouterr()
    assert err == ""
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize(
    ("family", "options"),
    [*((family, []) for family in ARCHITECTURES), *((family, options) for options in OPTIONS for family in TAUGHT)],
)
def test_an_edit_is_applied_proved_and_drafted(
    taught: dict[str, Path], file: Path, capsys: pytest.CaptureFixture[str], family: str, options: list[str]
) -> None:
    command = [
        "edit",
        str(file),
        "-i",
        INSTRUCTION,
        "--model",
        str(taught[family]),
        "--threads",
        "1",
        "--apply",
        "--json",
    ]
    assert main([*command, "--prove", *options]) == ExitCode.OK
    lines = lines_of(capsys)
    result = lines[-1]
    assert file.read_text("utf-8") == CHANGED
    assert (result["outcome"], result["hunks"]) == ("applied", 1)
    assert result["proof"] is not None
    start = next(line for line in lines if line["type"] == "start")
    assert start["engine"]["model_id"] == family if "engine" in start else True
    assert result["stats"]["output_tokens"] > 0
    if options != ["--no-draft"]:
        assert result["stats"]["tokens_per_pass"] > 1.5  # drafted from the file, as on the native path


@pytest.mark.parametrize("family", TAUGHT)
def test_a_region_changes_nothing_outside_it(
    taught: dict[str, Path], file: Path, capsys: pytest.CaptureFixture[str], family: str
) -> None:
    command = ["edit", str(file), "-i", REGION_INSTRUCTION, "--lines", "1:2", "--model", str(taught[family])]
    assert main([*command, "--threads", "1", "--apply", "--json"]) == ExitCode.OK
    assert lines_of(capsys)[-1]["outcome"] == "applied"
    assert file.read_text("utf-8") == REGION_CHANGED


def test_the_badge_is_not_guaranteed_until_it_is_proved(
    taught: dict[str, Path], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["edit", str(file), "-i", INSTRUCTION, "--model", str(taught["Qwen2"]), "--threads", "1"]
    assert main([*command, "--verbose"]) == ExitCode.OK
    assert "not guaranteed" in capsys.readouterr().err
    assert main([*command, "--verbose", "--prove"]) == ExitCode.OK
    assert "checked: all" in capsys.readouterr().err


def ids_of(events: list[EngineEvent]) -> tuple[int, ...]:
    finished = events[-1]
    assert isinstance(finished, Finished)
    return finished.token_ids


@pytest.mark.parametrize("family", TAUGHT)
def test_a_prompt_is_read_once_and_a_cancel_leaves_no_trace(taught: dict[str, Path], family: str) -> None:
    engine = Engine.load(EngineConfig(taught[family], threads=1))
    first = list(engine.complete(whole()))
    truth = ids_of(first)
    assert "".join(event.text for event in first if isinstance(event, Text)).startswith(CHANGED)
    again = list(engine.complete(whole()))
    started = again[0]
    assert isinstance(started, Started) and started.cached_tokens >= started.prompt_tokens - 1
    assert ids_of(again) == truth

    flag, seen = CancelFlag(), list[EngineEvent]()
    for event in engine.complete(region(), flag):
        seen.append(event)
        if isinstance(event, Text):
            flag.set()
    stopped = seen[-1]
    assert isinstance(stopped, Finished) and stopped.reason is FinishReason.CANCELLED
    assert ids_of(list(engine.complete(whole()))) == truth

    flag = CancelFlag()
    flag.set()  # before anything: within the prefill
    assert ids_of(list(engine.complete(region(), flag))) == ()
    fresh = Engine.load(EngineConfig(taught[family], threads=1))
    assert ids_of(list(engine.complete(region()))) == ids_of(list(fresh.complete(region())))


def test_nonsense_is_refused(tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_checkpoint(tmp_path / "random", "Llama")
    capsys.readouterr()  # transformers shows how far saving is; loading must not
    command = ["edit", str(file), "-i", INSTRUCTION, "--model", str(folder), "--threads", "1", "--apply", "--json"]
    code = main(command)
    result = lines_of(capsys)[-1]
    assert code in (ExitCode.REFUSED, ExitCode.UNCHANGED)
    assert (result["exit_code"], result["type"]) == (code, "result")
    assert file.read_text("utf-8") == SOURCE


def test_what_cannot_be_loaded_is_one_sentence_and_exit_4(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pickled = light_checkpoint(tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    cut = light_checkpoint(tmp_path / "cut")
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:-9])
    for folder, words in (
        (pickled, "pickled weights"),
        (cut, "it was cut"),
        (tmp_path / "none" / "x", "no model file"),
    ):
        assert main(["edit", str(file), "-i", "x", "--model", str(folder)]) == ExitCode.ENGINE
        out, err = capsys.readouterr()
        assert out == "" and words in err and err.count("\n") == 1


def test_a_model_without_a_chat_template_says_so(
    tmp_path: Path, taught: dict[str, Path], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(taught["Qwen2"], tmp_path / "mute"))
    settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    del settings["chat_template"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    assert main(["edit", str(file), "-i", "x", "--model", str(folder), "--threads", "1"]) == ExitCode.ENGINE
    assert "has no chat template, so it cannot be given instructions" in capsys.readouterr().err


def test_the_server_serves_a_folder(
    tmp_path: Path, taught: dict[str, Path], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    body = {"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 5, "model": "Qwen2"}
    with serving("--model", taught["Qwen2"], "--threads", "1") as server:
        assert server.start["model"]["id"] == "Qwen2"
        with server.client() as client:
            answers = [client.post("/v1/chat/completions", json=body) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200]
        texts = {answer.json()["choices"][0]["message"]["content"] for answer in answers}
        assert len(texts) == 1
        # By itself: same version, same folder, same options.
        edit = ["edit", "a.py", "-i", INSTRUCTION, "--apply", "--verbose", "--model", str(taught["Qwen2"])]
        ran = run_command(file.parent, *edit)
        assert ran.code == 0, ran.err
        assert "torch" not in ran.modules
        server.end()
    assert file.read_text("utf-8") == CHANGED


def test_watch_edits_with_a_folder(taught: dict[str, Path], file: Path) -> None:
    file.write_text(SOURCE + f"# redraft: {INSTRUCTION}\n", "utf-8")
    model = ["--model", str(taught["Qwen2"]), "--threads", "1"]
    ran = run_command(file.parent, "watch", "a.py", "--once", "--apply", "--json", *model)
    assert ran.code == 0, ran.out.decode() + ran.err
    assert file.read_text("utf-8") == CHANGED
