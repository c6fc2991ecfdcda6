"""Qwen2.5 Coder 0.5B through transformers: its GGUF file dequantised to a folder, one edit, drafted and plain."""

from pathlib import Path

import pytest

from app.editing.language import detect_language
from app.editing.prompt import build_prompt
from editor_engine.config import EngineConfig, HfOptions
from editor_engine.engine import Engine
from editor_engine.events import EngineEvent, Finished, FinishReason, Text
from editor_engine.models.hf.checkpoint import open_folder
from editor_engine.quant.gguf import GgufFile
from editor_engine.text.folder_tokenizer import load_folder_tokenizer
from editor_engine.text.tokenizer import load_tokenizer
from tests.editor_engine.text.samples import CODE, MARKERS, own_sources

pytestmark = pytest.mark.model

SOURCE = """def total(items):
    result = 0
    for item in items:
        result += item
    return result
"""


def decoded(engine: Engine, *, draft: bool) -> tuple[str, Finished]:
    prompt = build_prompt(SOURCE.splitlines(), "Rename total to add_up.", detect_language("a.py"))
    events: list[EngineEvent] = list(engine.complete(prompt.request(64, draft=draft)))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return "".join(event.text for event in events if isinstance(event, Text)), finished


def test_the_folder_is_what_the_file_is(qwen05_path: Path, qwen05_folder: Path) -> None:
    file, checkpoint = GgufFile(qwen05_path), open_folder(qwen05_folder)
    assert (checkpoint.architecture, checkpoint.tied) == ("Qwen2ForCausalLM", False)
    assert checkpoint.rows == file.tensors["token_embd.weight"].shape[0]
    ours, text = load_tokenizer(file.metadata), load_folder_tokenizer(qwen05_folder, rows=checkpoint.rows)
    assert text.template == file.metadata["tokenizer.chat_template"]
    assert text.tokenizer.stop_ids == ours.stop_ids
    assert text.tokenizer.special_tokens == ours.special_tokens
    for sample in [*CODE, MARKERS, *own_sources()]:
        ids = ours.encode(sample)
        assert text.tokenizer.encode(sample) == ids
        assert text.tokenizer.decode(ids) == sample


@pytest.mark.parametrize("options", [HfOptions(dtype="bfloat16"), HfOptions(quantise="nf4")], ids=["bfloat16", "nf4"])
def test_an_edit_is_drafted_and_the_same_without(qwen05_folder: Path, options: HfOptions) -> None:
    engine = Engine.load(EngineConfig(qwen05_folder, context_length=1024, hf=options))
    text, drafted = decoded(engine, draft=True)
    plain_text, plain = decoded(engine, draft=False)
    assert drafted.token_ids == plain.token_ids and text == plain_text
    assert drafted.reason is FinishReason.STOP_LINE
    assert "    for item in items:\n        result += item\n    return result\n" in text
    assert drafted.stats.accepted and drafted.stats.passes and plain.stats.passes
    assert drafted.stats.passes < plain.stats.passes
