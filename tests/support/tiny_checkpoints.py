"""Makes folders with tiny random Hugging Face checkpoints: a few layers, real files, a byte-level tokenizer.

Knows transformers' configurations and file names, not what is tested. The same arguments give the same bytes. Weights
are drawn wide enough that logits differ from token to token and replies do not end in a loop at once.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from editor_engine.text.byte_alphabet import CHARACTER_OF_BYTE

WINDOW = 24
"""Tokens the sliding layers see: fewer than a prompt has."""

CONTEXT = 4096
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
STOP = "<|im_end|>"
ROWS = 384
"""Of the embedding: more than there are tokens, as real models pad."""

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_WORDS = (
    "    ",
    "        ",
    "def",
    "return",
    "self",
    " =",
    " (",
    "):\n",
    " in",
    " for",
    " if",
    "import",
    " the",
    "\n\n",
)

_COMMON: Mapping[str, Any] = {
    "vocab_size": ROWS,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.25,
    "tie_word_embeddings": False,
}


def _alternating(layers: int) -> list[str]:
    return ["full_attention" if number % 2 else "sliding_attention" for number in range(layers)]


ARCHITECTURES: Mapping[str, Mapping[str, Any]] = {
    "Qwen2": {"num_hidden_layers": 2},
    "Qwen3": {"num_hidden_layers": 2, "head_dim": 16},
    "Llama": {"num_hidden_layers": 2},
    "Mistral": {"num_hidden_layers": 2, "sliding_window": WINDOW, "head_dim": 16},
    "Gemma2": {"num_hidden_layers": 4, "head_dim": 16, "sliding_window": WINDOW, "layer_types": _alternating(4),
               "query_pre_attn_scalar": 16},
    "Gemma3": {"num_hidden_layers": 4, "head_dim": 16, "sliding_window": WINDOW, "layer_types": _alternating(4),
               "query_pre_attn_scalar": 16},
    "Phi3": {"num_hidden_layers": 2, "pad_token_id": 0},
    "Starcoder2": {"num_hidden_layers": 2, "sliding_window": WINDOW, "use_bias": True},
}  # fmt: skip
"""Name of the family to what its configuration has of its own."""


def make_checkpoint(
    folder: Path, family: str, *, seed: int = 0, dtype: str = "float32", change: Mapping[str, Any] | None = None
) -> Path:
    """Write a checkpoint of one of ARCHITECTURES with weights in `dtype`; `change` goes into its configuration."""
    import torch
    import transformers

    prefix = "Gemma3Text" if family == "Gemma3" else family
    ids = token_ids()
    settings = {
        **_COMMON,
        "bos_token_id": ids[SPECIAL[0]],
        "eos_token_id": ids[STOP],
        **ARCHITECTURES[family],
        **(change or {}),
    }
    config = getattr(transformers, f"{prefix}Config")(**settings)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = getattr(transformers, f"{family}ForCausalLM")(config)
        for name, parameter in module.named_parameters():
            if name.endswith("bias") or "norm" in name:  # made as zeros and ones, which would hide faults
                parameter.data += 0.1 * torch.randn_like(parameter)
    module.to(getattr(torch, dtype)).save_pretrained(folder)
    write_tokenizer(folder)
    return folder


def token_ids() -> dict[str, int]:
    """Spelling of every token to its id."""
    entries = [*CHARACTER_OF_BYTE, *_merged()]
    return {text: index for index, text in enumerate([*dict.fromkeys(entries), *SPECIAL])}


def _spelt(text: str) -> str:
    return "".join(CHARACTER_OF_BYTE[byte] for byte in text.encode())


def _merged() -> list[str]:
    """What merges make, in their order: every beginning of every word."""
    found = [_spelt(word)[:end] for word in _WORDS for end in range(2, len(_spelt(word)) + 1)]
    return list(dict.fromkeys(found))


def write_tokenizer(folder: Path, change: Callable[[dict[str, Any]], None] = lambda settings: None) -> None:
    """tokenizer.json, tokenizer_config.json with a chat template; `change` is shown the latter."""
    ids = token_ids()
    added = [
        {"id": ids[text], "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False}
        for text in SPECIAL
    ]  # fmt: skip
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tables = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {text: index for text, index in ids.items() if text not in SPECIAL},
            "merges": [[word[:-1], word[-1]] for word in _merged()],
        },
    }
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": TEMPLATE,
        "bos_token": None,
        "eos_token": STOP,
        "model_max_length": CONTEXT,
    }
    change(settings)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tables), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
