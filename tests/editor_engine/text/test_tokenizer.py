"""Text to ids and back, against a slow twin; on a tiny vocabulary in milliseconds, on real ones by marker."""

import unicodedata
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.errors import ModelFileError, RequestError, UnsupportedModelError
from editor_engine.text.bpe import PRE_TOKENIZERS
from editor_engine.text.byte_alphabet import CHARACTER_OF_BYTE, spelt_bytes
from editor_engine.text.tokenizer import Piece, Tokenizer, load_tokenizer
from editor_engine.text.tokenizer_cache import FILE_NAME
from tests.editor_engine.text.bpe_twin import TwinTokenizer
from tests.editor_engine.text.conftest import tiny_metadata
from tests.editor_engine.text.samples import CODE, MARKERS, own_sources
from tests.support.tiny_gguf import bytes_to_unicode

TINY = {pre: load_tokenizer(tiny_metadata(pre)) for pre in PRE_TOKENIZERS}
TWIN = {pre: TwinTokenizer(tiny_metadata(pre)) for pre in PRE_TOKENIZERS}

# Words of the tiny vocabulary among any characters, so that merges happen.
TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
        st.sampled_from(["return", " self", "\n\n", "    ", "\r\n", "'s", "'LL", "42", "<|im_end|>", "\t", " import"]),
    ),
    max_size=12,
).map("".join)


def test_byte_alphabet_is_a_bijection_and_the_one_of_gpt2() -> None:
    assert len(set(CHARACTER_OF_BYTE)) == 256
    assert {byte: CHARACTER_OF_BYTE[byte] for byte in range(256)} == bytes_to_unicode()
    assert spelt_bytes("".join(CHARACTER_OF_BYTE)) == bytes(range(256))
    assert spelt_bytes("▁") is None


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
@settings(derandomize=True, deadline=None, max_examples=150)
@given(text=TEXTS)
def test_ids_equal_the_twin_and_spell_the_text(pre: str, text: str) -> None:
    ids = TINY[pre].encode(text)
    assert ids == TWIN[pre].encode(text)
    assert b"".join(map(TINY[pre].token_bytes, ids)) == text.encode()


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
@pytest.mark.parametrize("text", CODE)
def test_code_of_many_languages(pre: str, text: str) -> None:
    assert TINY[pre].encode(text) == TWIN[pre].encode(text)


def test_text_is_not_normalised() -> None:
    decomposed = "e\u0301 \ufb01 \u212b"
    assert unicodedata.normalize("NFC", decomposed) != decomposed
    assert TINY["qwen2"].decode(TINY["qwen2"].encode(decomposed)) == decomposed


def test_marker_texts_are_data_unless_asked_for() -> None:
    tokenizer = TINY["qwen2"]
    special = set(tokenizer.special_tokens.values())
    assert special.isdisjoint(tokenizer.encode(MARKERS))
    assert special.issuperset(tokenizer.encode("<|im_start|><|im_end|>", special=True))
    assert tokenizer.decode(tokenizer.encode(MARKERS, special=True)) == MARKERS


def test_the_longest_marker_wins() -> None:
    tokens = [*tiny_metadata()["tokenizer.ggml.tokens"], "<|im", "<|im_end|><|im_end|>"]  # type: ignore[misc]
    types = [*tiny_metadata()["tokenizer.ggml.token_type"], 4, 4]  # type: ignore[misc]
    tokenizer = load_tokenizer(tiny_metadata(tokens=tokens, token_type=types))
    assert tokenizer.encode("<|im_end|><|im_end|>", special=True) == [len(tokens) - 1]
    assert tokenizer.encode("<|imx", special=True) == [len(tokens) - 2, *tokenizer.encode("x")]


def test_pieces_join_plain_runs_across_their_borders() -> None:
    tokenizer = TINY["qwen2"]
    start, end = tokenizer.special_tokens["<|im_start|>"], tokenizer.special_tokens["<|im_end|>"]
    pieces = [Piece("<|im_start|>im", True), Piece("port<|im_end|>", False), Piece("<|im_end|>", True)]
    assert tokenizer.encode_pieces(pieces) == [start, *tokenizer.encode("import<|im_end|>"), end]
    assert tokenizer.encode_pieces([]) == []


def test_first_token_is_added_once_where_the_model_expects_it() -> None:
    plain = tiny_metadata()
    tokens = plain["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    bos = tokens.index("<|endoftext|>")
    tokenizer = load_tokenizer({**plain, "tokenizer.ggml.bos_token_id": bos, "tokenizer.ggml.add_bos_token": True})
    text = tokenizer.encode("def")
    assert tokenizer.encode_pieces([Piece("def", True)]) == [bos, *text]
    assert tokenizer.encode_pieces([Piece("<|endoftext|>def", True)]) == [bos, *text]
    assert tokenizer.encode("def") == text


def test_stop_ids_are_the_markers_and_what_the_file_names() -> None:
    special = TINY["qwen2"].special_tokens
    assert TINY["qwen2"].eos_id == special["<|im_end|>"]
    assert TINY["qwen2"].stop_ids == tuple(sorted([special["<|endoftext|>"], special["<|im_end|>"]]))
    with_turn_end = load_tokenizer({**tiny_metadata(), "tokenizer.ggml.eot_token_id": 7})
    assert 7 in with_turn_end.stop_ids


@settings(derandomize=True, deadline=None, max_examples=150)
@given(prefix=TEXTS, text=TEXTS)
def test_continuation_is_what_follows_in_context(prefix: str, text: str) -> None:
    tokenizer = TINY["qwen2"]
    prefix_ids = tokenizer.encode(prefix)
    whole = tokenizer.encode(prefix + text)
    ids = tokenizer.encode_continuation([5, *prefix_ids], prefix, text)
    assert tokenizer.decode(ids) == text
    if prefix and whole[: len(prefix_ids)] == prefix_ids:
        assert ids == whole[len(prefix_ids) :]
    else:
        assert ids == tokenizer.encode(text)


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
def test_continuation_of_a_long_prefix_looks_at_its_tail_only(pre: str) -> None:
    tokenizer = TINY[pre]
    for prefix in ("import x\n\n  \n\tdef\n" * 60, " \n" * 300, "return " * 200, "a\n" * 300 + "    "):
        for text in ("    return self\n", "\n\nself", "def"):
            prefix_ids, whole = tokenizer.encode(prefix), tokenizer.encode(prefix + text)
            expected = whole[len(prefix_ids) :] if whole[: len(prefix_ids)] == prefix_ids else tokenizer.encode(text)
            assert tokenizer.encode_continuation(prefix_ids, prefix, text) == expected


def test_continuation_does_not_trust_ids_that_are_not_the_prefix() -> None:
    tokenizer = TINY["qwen2"]
    assert tokenizer.encode_continuation([1, 2], "x", "import") == tokenizer.encode("import")


def test_line_of_token_counts_line_feeds_before_its_first_byte() -> None:
    tokenizer = TINY["qwen2"]
    text = "import\n\n\rdef x\r\n\n\nreturn"
    ids = tokenizer.encode(text)
    starts = [len(b"".join(map(tokenizer.token_bytes, ids[:place]))) for place in range(len(ids))]
    assert tokenizer.line_of_token(ids) == [text.encode()[:start].count(b"\n") for start in starts]
    assert tokenizer.line_of_token([]) == []


@pytest.mark.parametrize("token_id", [-1, 10**6])
def test_an_unknown_id_is_refused(token_id: int) -> None:
    with pytest.raises(RequestError, match="vocabulary"):
        TINY["qwen2"].token_bytes(token_id)


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(RequestError, match=r"U\+D800"):
        TINY["qwen2"].encode("a\ud800")


def test_a_byte_without_a_token_is_refused_not_dropped() -> None:
    tokens, types = tiny_metadata()["tokenizer.ggml.tokens"], tiny_metadata()["tokenizer.ggml.token_type"]
    assert isinstance(tokens, list) and isinstance(types, list)
    tokens[4] = "unused"
    tokenizer = load_tokenizer(tiny_metadata(tokens=tokens, token_type=types))
    with pytest.raises(RequestError, match="0x04"):
        tokenizer.encode("a\x04b")
    assert tokenizer.decode(tokenizer.encode("a\x05b")) == "a\x05b"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"model": "llama"}, UnsupportedModelError),
        ({"model": None}, UnsupportedModelError),
        ({"pre": "tekken"}, UnsupportedModelError),
        ({"pre": None}, UnsupportedModelError),
        ({"tokens": None}, ModelFileError),
        ({"tokens": "abc"}, ModelFileError),
        ({"tokens": ["a", "a"]}, ModelFileError),
        ({"token_type": [1, 1]}, ModelFileError),
        ({"merges": ["a"]}, ModelFileError),
        ({"merges": ["a b c"]}, ModelFileError),
        ({"merges": ["zz zz"]}, ModelFileError),
        ({"eos_token_id": None}, ModelFileError),
        ({"eos_token_id": 10**6}, ModelFileError),
        ({"eos_token_id": "x"}, ModelFileError),
    ],
)
def test_metadata_that_makes_no_tokenizer(changes: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        load_tokenizer(tiny_metadata(**changes))


def test_a_merge_whose_parts_are_no_tokens_is_refused() -> None:
    with pytest.raises(ModelFileError, match="do not fit together"):
        load_tokenizer(tiny_metadata(merges=["im port"]))


class Untouchable(dict[str, object]):
    """Metadata whose large lists must not be asked for."""

    def get(self, key: str, default: object = None) -> object:
        assert not key.endswith(("tokens", "merges", "token_type")), "the cache was not used"
        return super().get(key, default)


def test_cache_is_used_and_equal(tmp_path: Path) -> None:
    built = load_tokenizer(tiny_metadata(), tmp_path / "a" / "b")
    cached = load_tokenizer(Untouchable(tiny_metadata()), tmp_path / "a" / "b")
    assert cached.encode(MARKERS, special=True) == built.encode(MARKERS, special=True)
    assert (cached.stop_ids, cached.special_tokens) == (built.stop_ids, built.special_tokens)
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == [FILE_NAME]


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _flip(data: bytes) -> bytes:
    return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]


def _other_version(data: bytes) -> bytes:
    return data.replace(b'"version": 1', b'"version": 0')


def _lost_field(data: bytes) -> bytes:
    return data.replace(b'"eos_id"', b'"was_eos"')


@pytest.mark.parametrize(
    "damage",
    [_cut, _flip, _other_version, _lost_field, lambda data: b"", lambda data: b"\xff[]\n", lambda data: b"[" * 200_000],
)
def test_a_damaged_cache_is_built_again(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    load_tokenizer(tiny_metadata(), tmp_path)
    file = tmp_path / FILE_NAME
    good = file.read_bytes()
    file.write_bytes(damage(good))
    assert load_tokenizer(tiny_metadata(), tmp_path).encode("import") == TINY["qwen2"].encode("import")
    assert file.read_bytes() == good


def test_the_cache_of_another_kind_is_not_used(tmp_path: Path) -> None:
    load_tokenizer(tiny_metadata("qwen2"), tmp_path)
    assert load_tokenizer(tiny_metadata("smollm"), tmp_path).encode("a\n\nb") == TINY["smollm"].encode("a\n\nb")


def test_a_cache_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    assert load_tokenizer(tiny_metadata(), blocker / "cache").encode("import") == TINY["qwen2"].encode("import")


# --- real vocabularies ------------------------------------------------------------------------------------------------


def _speakable(tokenizer: Tokenizer, text: str) -> str:
    """`text` without characters that have bytes the vocabulary lacks (smollm2 has no token for some control bytes)."""
    missing = {byte for byte in range(256) if not _has_byte(tokenizer, byte)}
    return "".join(character for character in text if missing.isdisjoint(character.encode()))


def _has_byte(tokenizer: Tokenizer, byte: int) -> bool:
    return tokenizer._bpe.token_to_id(CHARACTER_OF_BYTE[byte]) is not None


@pytest.mark.model
@pytest.mark.parametrize("fixture", ["smollm2_metadata", "qwen_metadata"])
def test_real_vocabulary_equals_the_twin(fixture: str, request: pytest.FixtureRequest) -> None:
    metadata: Mapping[str, object] = request.getfixturevalue(fixture)
    tokenizer, twin = load_tokenizer(metadata), TwinTokenizer(metadata)

    for text in [*CODE, *own_sources()]:
        ids = tokenizer.encode(text)
        assert ids == twin.encode(text)
        assert tokenizer.decode(ids) == text

    @settings(derandomize=True, deadline=None, max_examples=200)
    @given(text=TEXTS)
    def any_text(text: str) -> None:
        text = _speakable(tokenizer, text)
        ids = tokenizer.encode(text)
        assert ids == twin.encode(text)
        assert tokenizer.decode(ids) == text

    any_text()


@pytest.mark.model
def test_qwen_equals_transformers_on_normalised_text(qwen_metadata: Mapping[str, object]) -> None:
    """transformers' own Qwen2 tokenizer over the same tables; it applies NFC first, so only NFC text is compared."""
    transformers = pytest.importorskip("transformers")
    tokens, merges = qwen_metadata["tokenizer.ggml.tokens"], qwen_metadata["tokenizer.ggml.merges"]
    assert isinstance(tokens, list) and isinstance(merges, list)
    reference = transformers.Qwen2Tokenizer(
        vocab={token: index for index, token in enumerate(tokens)},
        merges=[tuple(merge.split(" ")) for merge in merges],
    )
    tokenizer = load_tokenizer(qwen_metadata)
    for text in [*CODE, *own_sources()]:
        text = unicodedata.normalize("NFC", text)
        if "<|" not in text:  # markers in text are special tokens to transformers and data to us
            assert tokenizer.encode(text) == reference(text)["input_ids"]
    marked = "<|endoftext|>def f():\n    pass<|endoftext|>\n"
    assert tokenizer.encode(marked, special=True) == reference(marked)["input_ids"]


@pytest.mark.model
def test_special_tokens_of_the_real_files(
    qwen_metadata: Mapping[str, object], smollm2_metadata: Mapping[str, object]
) -> None:
    assert load_tokenizer(qwen_metadata).stop_ids == (151643, 151645)
    assert load_tokenizer(smollm2_metadata).stop_ids == (0, 2)
    assert load_tokenizer(qwen_metadata).encode("<|fim_middle|>", special=True) == [151660]
