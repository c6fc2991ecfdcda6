"""What is loaded by which path: a file by our kernels, a folder by transformers, neither by its name."""

import subprocess
import sys
from pathlib import Path

import pytest

from editor_engine.config import EngineConfig
from editor_engine.engine import Engine
from editor_engine.errors import EngineError, ModelFileError, ModelMissingError, OptionError, UnsupportedModelError
from editor_engine.events import Finished
from editor_engine.export import export_folder
from editor_engine.loading import load
from editor_engine.requests import CompletionRequest, Message
from tests.support.light_checkpoints import light_checkpoint
from tests.support.tiny_checkpoints import make_checkpoint
from tests.support.tiny_gguf import write_tiny


def test_a_file_is_native_and_a_folder_is_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    file = load(EngineConfig(write_tiny(tmp_path / "tiny.gguf"), threads=1))
    export_folder(tmp_path / "tiny.gguf", tmp_path / "folder.gguf", "float32")  # a name decides nothing
    folder = load(EngineConfig(tmp_path / "folder.gguf", threads=1))
    assert (file.model.info.backend, file.model.info.guarantee) == ("native", "exact")
    assert (folder.model.info.backend, folder.model.info.guarantee) == ("transformers", "not guaranteed")
    assert folder.template == file.template
    assert folder.tokenizer.stop_ids == file.tokenizer.stop_ids
    assert folder.cache_folder != file.cache_folder


def test_a_file_brings_no_torch_and_a_folder_that_is_refused_neither(tmp_path: Path) -> None:
    write_tiny(tmp_path / "tiny.gguf")
    broken = light_checkpoint(tmp_path / "broken")
    (broken / "tokenizer.json").write_text("{}", "utf-8")
    program = """
import sys
from pathlib import Path
from editor_engine.config import EngineConfig
from editor_engine.engine import Engine
from editor_engine.errors import EngineError
for path in sys.argv[1:]:
    try:
        Engine.load(EngineConfig(Path(path), threads=1))
    except EngineError as error:
        print(error)
print([name for name in ("torch", "transformers") if name in sys.modules])
"""
    command = [sys.executable, "-c", program, str(tmp_path / "tiny.gguf"), str(broken)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["tokenizer.json is damaged: it has no vocabulary.", "[]"]


@pytest.mark.parametrize(
    ("name", "error"), [("absent", ModelMissingError), ("empty", ModelMissingError), ("text.gguf", ModelFileError)]
)
def test_what_is_neither(tmp_path: Path, name: str, error: type[EngineError]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.gguf").write_text("no model", "utf-8")
    with pytest.raises(error):
        Engine.load(EngineConfig(tmp_path / name, threads=1))


def test_without_a_chat_template_there_is_no_engine_and_still_a_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    folder = make_checkpoint(tmp_path / "mute", "Llama")
    (folder / "tokenizer_config.json").write_text("{}", "utf-8")
    assert load(EngineConfig(folder, threads=1)).template is None
    with pytest.raises(UnsupportedModelError, match="has no chat template, so it cannot be given instructions"):
        Engine.load(EngineConfig(folder, threads=1))


def test_more_threads_than_processors_are_noted_and_far_more_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tiny(tmp_path / "tiny.gguf")
    monkeypatch.setattr("editor_engine.loading.default_threads", lambda: 2)
    assert Engine.load(EngineConfig(path, threads=2)).notes == ()
    (note,) = Engine.load(EngineConfig(path, threads=16)).notes
    assert note.startswith("16 threads share 2 processors and wait for each other")
    with pytest.raises(
        OptionError, match=r"^17 threads on 2 processors .*; at most 16 are started here, and --threads 0"
    ):
        Engine.load(EngineConfig(path, threads=17))


def test_a_chat_template_that_is_too_long_is_refused_before_the_weights_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    folder = make_checkpoint(tmp_path / "long", "Llama")
    (folder / "chat_template.jinja").write_text("{#" + "x" * 3_000_000 + "#}", "utf-8")
    monkeypatch.setattr("editor_engine.models.hf.load.load_hf", None)
    with pytest.raises(UnsupportedModelError, match="chat template has 3000004 characters"):
        Engine.load(EngineConfig(folder, threads=1))


def test_a_file_drafts_for_a_folder_and_a_folder_for_a_file(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    file = write_tiny(tmp_path / "tiny.gguf", seed=4)
    folder = export_folder(file, tmp_path / "tiny", "float32").folder
    request = CompletionRequest((Message("user", "Return the value of self."),), 40)

    def ids(target: Path, draft: Path | None) -> tuple[int, ...]:
        finished = list(Engine.load(EngineConfig(target, threads=1, draft_path=draft)).complete(request))[-1]
        assert isinstance(finished, Finished)
        assert (finished.stats.draft_model is None) == (draft is None)
        return finished.token_ids

    for target, draft in ((file, folder), (folder, file)):
        assert ids(target, draft) == ids(target, None)
