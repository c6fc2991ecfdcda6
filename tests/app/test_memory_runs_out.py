"""Memory that runs out in the middle of an edit ends that edit with words, and the file is as it was."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.cli import main
from app.clients.in_process import NO_MEMORY
from app.errors import ExitCode
from editor_engine.errors import OutOfMemoryError
from editor_engine.models.native.model import NativeModel
from tests.support.headless_edit import SOURCE, assert_interface, assert_sentence
from tests.support.tiny_gguf import TinyShape, tiny_source


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_source(shape=TinyShape(context=4096)).write(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.mark.parametrize("passes", [0, 1, 12])
@pytest.mark.parametrize("words", ["", "Memory ran out in a pass of 64 tokens."])
def test_an_edit_ends_with_words_and_the_file_is_as_it_was(
    file: Path,
    tiny: Path,
    passes: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    forward, done = NativeModel.forward, [0]

    def until_full(self: NativeModel, tokens: Sequence[int], *, head_rows: int) -> list[int]:
        done[0] += 1
        if done[0] > passes:
            raise OutOfMemoryError(words) if words else MemoryError()  # one of its own: it holds on to all it passed
        return forward(self, tokens, head_rows=head_rows)

    monkeypatch.setattr(NativeModel, "forward", until_full)
    arguments = ["edit", str(file), "-i", "Do.", "--apply", "--model", str(tiny), "--threads", "1"]
    assert main(arguments) == ExitCode.ENGINE
    said = capfd.readouterr().err.splitlines()[-1]
    assert said == f"redraft: {words or NO_MEMORY}"
    assert_sentence(said)
    assert done[0] == passes + 1 and file.read_text() == SOURCE
    done[0] = 0
    assert main([*arguments, "--json"]) == ExitCode.ENGINE
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert_interface(lines, ExitCode.ENGINE)
    assert (lines[-1]["outcome"], lines[-1]["error"]["code"]) == ("failed", "memory")
    assert [path.name for path in file.parent.iterdir()] == [file.name]
