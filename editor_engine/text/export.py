"""Writes the tokenizer of a GGUF file as the files a Hugging Face checkpoint has: tokenizer.json and its settings.

Knows both forms; nothing of weights. Invariant: `folder_tokenizer` reads back a tokenizer that gives the same ids and
the same text as the file's own.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from tokenizers import AddedToken, decoders

from editor_engine.text.bpe import build_bpe, entries
from editor_engine.text.folder_tokenizer import TOKENIZER, TOKENIZER_CONFIG
from editor_engine.text.stop_ids import GENERATION_CONFIG
from editor_engine.text.tokenizer import CONTROL, USER_DEFINED, Tokenizer


def write_tokenizer(metadata: Mapping[str, object], tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and generation_config.json; `tokenizer` is that of `metadata`.

    Raises OSError.
    """
    bpe = build_bpe(metadata)
    bpe.decoder = decoders.ByteLevel()
    kinds = dict(enumerate(entries(metadata, "tokenizer.ggml.token_type")))
    for text, index in tokenizer.special_tokens.items():
        # One by one: the library numbers those it does not know, and these are all in the vocabulary.
        add = bpe.add_special_tokens if kinds[index] == CONTROL else bpe.add_tokens
        add([AddedToken(text, normalized=False, special=kinds[index] != USER_DEFINED)])
    bpe.save(str(folder / TOKENIZER))

    def text_of(index: int | None) -> str | None:
        return None if index is None else tokenizer.token_bytes(index).decode("utf-8", "replace")

    template = metadata.get("tokenizer.chat_template")
    if (
        isinstance(template, str)
        and metadata.get("tokenizer.ggml.add_bos_token") is True
        and "bos_token" not in template
    ):
        template = "{{- bos_token }}" + template  # a GGUF reader puts it first, a template for transformers writes it
    _write(
        folder / TOKENIZER_CONFIG,
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": text_of(tokenizer.bos_id),
            "eos_token": text_of(tokenizer.eos_id),
            "clean_up_tokenization_spaces": False,
            "chat_template": template if isinstance(template, str) else None,
        },
    )
    ids = {"bos_token_id": tokenizer.bos_id, "eos_token_id": list(tokenizer.stop_ids)}
    _write(folder / GENERATION_CONFIG, {name: value for name, value in ids.items() if value is not None})


def _write(path: Path, value: Mapping[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")
