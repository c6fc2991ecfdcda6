"""Two vocabularies are one where they overlap, or the first token that differs is named."""

from pathlib import Path

import pytest

from editor_engine.errors import UnsupportedModelError
from editor_engine.quant.gguf import GgufFile
from editor_engine.text.tokenizer import Tokenizer, load_tokenizer
from editor_engine.text.vocabulary import refuse_other_vocabulary
from tests.support.tiny_gguf import tiny_vocabulary


def tokenizer(*, rename: dict[int, str] | None = None, more: int = 0) -> Tokenizer:
    tokens, types, merges = tiny_vocabulary()
    for index, text in (rename or {}).items():
        tokens[index] = text
    tokens += [f"[PAD{index}]" for index in range(more)]
    types += [5] * more
    return load_tokenizer(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "qwen2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": merges,
            "tokenizer.ggml.eos_token_id": tokens.index("<|im_end|>"),
        }
    )


def test_the_same_vocabulary_is_shared_whole() -> None:
    plain = tokenizer()
    assert refuse_other_vocabulary("large", plain, "small", tokenizer()) == plain.vocab_size


def test_a_look_at_the_tables_agrees_with_a_walk_over_all_ids() -> None:
    plain, padded, renamed = tokenizer(), tokenizer(more=7), tokenizer(rename={5: "another"})
    assert plain.spells_as(tokenizer())
    assert not plain.spells_as(padded) and not plain.spells_as(renamed)
    assert [plain.spelling(index) for index in range(plain.vocab_size)] == [
        tokenizer().token_bytes(index) for index in range(plain.vocab_size)
    ]


def test_padding_of_one_embedding_is_no_difference_and_is_not_shared() -> None:
    plain, padded = tokenizer(), tokenizer(more=7)
    assert padded.vocab_size == plain.vocab_size + 7
    for pair in [(plain, padded), (padded, plain)]:
        assert refuse_other_vocabulary("large", pair[0], "small", pair[1]) == plain.vocab_size


def test_the_first_token_that_differs_is_named_with_both_models() -> None:
    special = tiny_vocabulary()[0].index("<|im_start|>")
    other = tokenizer(rename={special: "<|turn\x1b|>"})
    with pytest.raises(UnsupportedModelError) as refused:
        refuse_other_vocabulary("large", tokenizer(), "small", other)
    said = str(refused.value)
    assert "small cannot draft for large" in said and f"Token {special} is" in said
    assert "'<|im_start|>'" in said and r"'<|turn\x1b|>'" in said and "\x1b" not in said


@pytest.mark.model
def test_models_of_two_families_are_refused(smollm2_path: Path, qwen05_path: Path) -> None:
    texts = [load_tokenizer(GgufFile(path).metadata) for path in (smollm2_path, qwen05_path)]
    with pytest.raises(UnsupportedModelError, match="Token 0 is"):
        refuse_other_vocabulary("smollm2", texts[0], "qwen", texts[1])
    assert refuse_other_vocabulary("qwen", texts[1], "qwen", texts[1]) == texts[1].vocab_size
