"""The slow, obvious byte-level BPE: split into words with the `regex` module, then merge the best pair, one at a time.

Knows nothing of the `tokenizers` library, so it can stand beside it. Invariant: follows the definition and nothing else
(lowest rank first, leftmost first among equals).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import regex  # type: ignore[import-untyped]  # has no stubs; comes with transformers

from tests.support.tiny_gguf import bytes_to_unicode

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def twin_words(pre: str, text: str) -> list[str]:
    """The words of `text` by pre-tokenizer name."""
    if pre == "qwen2":
        return [match.group() for match in regex.finditer(QWEN2, text)]
    stretches = regex.findall(r"\p{N}|\P{N}+", text) if pre == "smollm" else [text]
    return [match.group() for stretch in stretches for match in regex.finditer(GPT2, stretch)]


class TwinTokenizer:
    """Encodes by the definition, from the metadata of a GGUF file."""

    def __init__(self, metadata: Mapping[str, object]) -> None:
        tokens, merges = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"]
        assert isinstance(tokens, Sequence) and isinstance(merges, Sequence)
        self._pre = str(metadata["tokenizer.ggml.pre"])
        self._ids = {token: index for index, token in enumerate(tokens)}
        self._ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        self._spelling = bytes_to_unicode()

    def encode(self, text: str) -> list[int]:
        """Ids of `text`."""
        return [self._ids[symbol] for word in twin_words(self._pre, text) for symbol in self._merged(word)]

    def _merged(self, word: str) -> list[str]:
        symbols = [self._spelling[byte] for byte in word.encode("utf-8")]
        never = len(self._ranks)
        while len(symbols) > 1:
            pairs = pairwise(symbols)
            rank, place = min((self._ranks.get(pair, never), place) for place, pair in enumerate(pairs))
            if rank == never:
                break
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
        return symbols
