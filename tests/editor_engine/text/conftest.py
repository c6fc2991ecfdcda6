"""Vocabularies for the tests of `editor_engine.text`: a tiny one that is made up, and real ones by marker."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from editor_engine.quant.gguf import GgufFile
from tests.support.tiny_gguf import CHAT_TEMPLATE, tiny_vocabulary


def tiny_metadata(pre: object = "qwen2", **changes: object) -> dict[str, object]:
    """Tokenizer metadata of a few hundred tokens; `changes` by the last word of the key."""
    tokens, types, merges = tiny_vocabulary()
    metadata: dict[str, object] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.eos_token_id": tokens.index("<|im_end|>"),
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }
    for name, value in changes.items():
        if value is None:
            del metadata[f"tokenizer.ggml.{name}"]
        else:
            metadata[f"tokenizer.ggml.{name}"] = value
    return metadata


@pytest.fixture(scope="session")
def smollm2_metadata(smollm2_path: Path) -> Mapping[str, object]:
    return GgufFile(smollm2_path).metadata


@pytest.fixture(scope="session")
def qwen_metadata(qwen05_path: Path) -> Mapping[str, object]:
    return GgufFile(qwen05_path).metadata
