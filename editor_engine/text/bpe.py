"""Builds the byte-level BPE of a model from the metadata of its GGUF file.

Knows the `tokenizers` library and the two pre-tokenizers this engine runs; knows nothing of caches or chats. Invariant:
no normaliser and no added tokens, so text is data whatever it spells and `decode(encode(text)) == text`.
"""

from collections.abc import Mapping, Sequence

import tokenizers
from tokenizers import Regex, models, pre_tokenizers

from editor_engine.errors import ModelFileError, UnsupportedModelError

QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)
"""Words of the `qwen2` pre-tokenizer, as published in Qwen2's tokenizer.json."""

GPT2_SPLIT = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""Words of GPT-2; `smollm` first sets every digit apart, as published in SmolLM2's tokenizer.json."""

PRE_TOKENIZERS = ("gpt-2", "qwen2", "smollm")
"""Values of tokenizer.ggml.pre that this engine runs."""


def entries(metadata: Mapping[str, object], key: str) -> Sequence[object]:
    """The list under `key`. Raises ModelFileError when it is absent or no list."""
    value = metadata.get(key)
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise ModelFileError(f"The model file has no list {key}; its tokenizer cannot be built.")
    return value


def build_bpe(metadata: Mapping[str, object]) -> tokenizers.Tokenizer:
    """The bare BPE of the file: no normaliser, no added tokens, no post-processing.

    Unicode is not normalised (Qwen's published tokenizer applies NFC): a file's bytes must survive the way through the
    tokens. Raises UnsupportedModelError for another tokenizer or pre-tokenizer, ModelFileError for tables that do not
    fit together.
    """
    pre = check_supported(metadata)
    tokens = entries(metadata, "tokenizer.ggml.tokens")
    vocabulary = {str(token): index for index, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        raise ModelFileError("The model file lists the same token twice; it is damaged.")
    merges = [tuple(str(merge).split(" ")) for merge in entries(metadata, "tokenizer.ggml.merges")]
    for merge in merges:
        if len(merge) != 2 or "".join(merge) not in vocabulary:
            raise ModelFileError(f"The model file has a merge {' '.join(merge)!r} that makes no token; it is damaged.")
    try:
        model = models.BPE(vocabulary, [(left, right) for left, right in merges])
    except Exception as error:  # the library raises bare Exception for tables that do not fit together
        raise ModelFileError(f"The model file's tokenizer tables do not fit together: {error}.") from error
    bpe = tokenizers.Tokenizer(model)
    bpe.pre_tokenizer = pre_tokenizer(pre)
    return bpe


def check_supported(metadata: Mapping[str, object]) -> str:
    """The name of the file's pre-tokenizer. Raises UnsupportedModelError for a tokenizer this engine does not run."""
    kind = metadata.get("tokenizer.ggml.model")
    if kind != "gpt2":
        raise UnsupportedModelError(
            f"The model's tokenizer is of kind {kind!r}; this engine runs byte-level BPE ('gpt2') only."
        )
    pre = metadata.get("tokenizer.ggml.pre")
    if not isinstance(pre, str) or pre not in PRE_TOKENIZERS:
        raise UnsupportedModelError(
            f"The model's pre-tokenizer is {pre!r}; this engine runs {', '.join(PRE_TOKENIZERS)}."
        )
    return pre


def pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    """Splits text into words, which no merge crosses, and spells their bytes; `name` is one of PRE_TOKENIZERS."""
    if name == "qwen2":
        split = pre_tokenizers.Split(Regex(QWEN2_SPLIT), behavior="isolated")
    else:
        split = pre_tokenizers.Split(Regex(GPT2_SPLIT), behavior="isolated")
    spell = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split, spell])
    return pre_tokenizers.Sequence([split, spell])
