"""tokenizer.json and what is beside it: ids as the public library gives them, text that comes back, damage in words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers, pre_tokenizers

from editor_engine.errors import EngineError, ModelFileError, ModelMissingError, RequestError, UnsupportedModelError
from editor_engine.text.folder_tokenizer import load_folder_tokenizer
from editor_engine.text.tokenizer import Piece, Tokenizer
from tests.editor_engine.text.samples import CODE, MARKERS
from tests.support.tiny_checkpoints import ROWS, SPECIAL, TEMPLATE, token_ids, write_tokenizer

TEXTS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(
        ["return", " self", "\n\n", "    ", "\r\n", "<|im_end|>", "\t", "ab", " ab", "<0x0A>", "▁", "e\u0301"]
    ),
    max_size=10,
).map("".join)

WORDS = ["▁", "a", "b", "ab", "▁ab", "▁▁", "\n", "<", "x", "0"]


def spaced_folder(folder: Path, *, fallback: bool = True, first: str = "prepend") -> Path:
    """A tokenizer of the sentencepiece kind, as Llama 2, Gemma and Phi-3 have; `first` is how a space is put first."""
    entries = ["<unk>", *([f"<0x{byte:02X}>" for byte in range(256)] if fallback else []), *WORDS]
    vocabulary = {entry: index for index, entry in enumerate(entries)}
    merges = [("a", "b"), ("▁", "▁"), ("▁", "ab")]
    bpe = tokenizers.Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=fallback))
    if first == "prepend":
        bpe.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    elif first == "metaspace":
        bpe.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    else:
        bpe.normalizer = normalizers.Replace(" ", "▁")
    bpe.add_special_tokens([AddedToken("<s>"), AddedToken("<|end|>", rstrip=True), AddedToken("<|user|>", rstrip=True)])
    bpe.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("▁▁▁", normalized=False)])
    folder.mkdir(exist_ok=True)
    bpe.enable_truncation(5)
    bpe.enable_padding(length=8)
    bpe.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": "<|end|>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    return folder


def byte_folder(folder: Path) -> Path:
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    root = tmp_path_factory.mktemp("tokenizers")
    folders = {"bytes": byte_folder(root / "bytes")}
    folders |= {first: spaced_folder(root / first, first=first) for first in ("prepend", "metaspace", "none")}
    return {name: load_folder_tokenizer(folder).tokenizer for name, folder in folders.items()}


KINDS = ["bytes", "prepend", "metaspace", "none"]


@pytest.mark.parametrize("kind", KINDS)
def test_any_text_comes_back_and_is_never_a_special_token(tokenizer_of: dict[str, Tokenizer], kind: str) -> None:
    tokenizer = tokenizer_of[kind]
    special = set(tokenizer.special_tokens.values())

    @settings(derandomize=True, deadline=None, max_examples=200)
    @given(text=TEXTS)
    def any_text(text: str) -> None:
        try:
            ids = tokenizer.encode(text)
        except RequestError as error:  # "▁" itself, which such a vocabulary cannot tell from a space
            assert kind != "bytes" and "▁" in text and "does not give this text back" in str(error)
            return
        assert special.isdisjoint(ids)
        assert b"".join(map(tokenizer.token_bytes, ids)) == text.encode()
        assert tokenizer.decode(ids) == text

    any_text()


@pytest.mark.parametrize("text", [text for text in CODE if "<|" not in text])  # else the library finds markers in it
def test_byte_level_ids_are_those_of_the_public_library(tmp_path: Path, text: str) -> None:
    folder = byte_folder(tmp_path / "bytes")
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert load_folder_tokenizer(folder).tokenizer.encode(text) == library.encode(text, add_special_tokens=False).ids


def test_spaced_ids_are_those_of_the_public_library_but_for_the_space_put_first(tmp_path: Path) -> None:
    folder = spaced_folder(tmp_path / "none", first="none")
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    library.no_truncation()
    library.no_padding()
    for text in ["ab ab", "  ab\n\n\nab b", "a  \n\n b", "ü 漢 \x00", "x0x"]:
        ids = library.encode(text, add_special_tokens=False).ids
        for first in ("none", "prepend"):
            assert load_folder_tokenizer(spaced_folder(tmp_path / first, first=first)).tokenizer.encode(text) == ids


def test_a_spaced_vocabulary_spells_bytes_spaces_and_blank_runs(tokenizer_of: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizer_of["prepend"]
    ids = tokenizer.encode("ab  ab\n\nü")
    assert [tokenizer.token_bytes(index) for index in ids] == [b"ab", b"  ", b"ab", b"\n\n", b"\xc3", b"\xbc"]
    assert tokenizer.bos_id is not None and tokenizer.token_bytes(tokenizer.bos_id) == b"<s>"


def test_without_bytes_to_fall_back_to_some_text_is_refused(tmp_path: Path) -> None:
    folder = spaced_folder(tmp_path / "few", fallback=False, first="metaspace")
    with pytest.raises(UnsupportedModelError, match="does not give a line of code back as it was"):
        load_folder_tokenizer(folder)


def test_markers_are_the_templates_alone_and_may_eat_its_white_space(tokenizer_of: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizer_of["prepend"]
    end, user = tokenizer.special_tokens["<|end|>"], tokenizer.special_tokens["<|user|>"]
    pieces = [Piece("<|user|>\n", True), Piece("\n ab<|end|> ", False), Piece(" <|end|>\n  ab", True)]
    ids = tokenizer.encode_pieces(pieces)
    assert (ids[0], ids.count(end), ids.count(user)) == (user, 1, 1)
    assert tokenizer.decode(ids) == "<|user|>\n ab<|end|>  <|end|>ab"  # the data's own white space stays


def test_no_bos_is_put_first_and_ends_come_from_all_configurations(tmp_path: Path) -> None:
    folder = byte_folder(tmp_path)
    ids = token_ids()
    (folder / "config.json").write_text('{"eos_token_id": 5}', "utf-8")
    (folder / "generation_config.json").write_text('{"eos_token_id": [6, 5]}', "utf-8")
    tokenizer = load_folder_tokenizer(folder).tokenizer
    # <|endoftext|> ends a reply wherever a vocabulary has it, as with GGUF files.
    assert tokenizer.stop_ids == tuple(sorted({5, 6, ids["<|im_end|>"], ids["<|endoftext|>"]}))
    assert tokenizer.eos_id == ids["<|im_end|>"]
    assert tokenizer.encode_pieces([Piece("ab", True)]) == tokenizer.encode("ab")


def test_padding_of_the_embedding_says_nothing_and_what_is_beyond_it_is_an_error(tmp_path: Path) -> None:
    tokenizer = load_folder_tokenizer(byte_folder(tmp_path), rows=ROWS).tokenizer
    assert tokenizer.vocab_size == len(token_ids()) < ROWS
    assert tokenizer.token_bytes(ROWS - 1) == b""
    for index in (ROWS, -1):
        with pytest.raises(RequestError, match="There is no token"):
            tokenizer.token_bytes(index)


def test_more_tokens_than_rows_are_refused_with_both_numbers(tmp_path: Path) -> None:
    size = len(token_ids())
    with pytest.raises(UnsupportedModelError, match=f"has {size} tokens and an embedding of {size - 1} rows"):
        load_folder_tokenizer(byte_folder(tmp_path), rows=size - 1)
    assert load_folder_tokenizer(tmp_path, rows=size).tokenizer.vocab_size == size


# --- templates --------------------------------------------------------------------------------------------------------


def test_where_a_template_lies(tmp_path: Path) -> None:
    def found(value: object) -> str | None:
        write_tokenizer(tmp_path, lambda settings: settings.update(chat_template=value))
        return load_folder_tokenizer(tmp_path).template

    assert found("one") == "one"
    assert found([{"name": "tool_use", "template": "two"}, {"name": "default", "template": "three"}]) == "three"
    assert found([{"name": "tool_use", "template": "two"}]) is None
    assert found(None) is None
    with pytest.raises(ModelFileError, match="its chat template is no text"):
        found(3)
    found("one")
    (tmp_path / "chat_template.json").write_text('{"chat_template": "four"}', "utf-8")
    assert load_folder_tokenizer(tmp_path).template == "four"
    (tmp_path / "chat_template.jinja").write_text("five é", "utf-8")
    assert load_folder_tokenizer(tmp_path).template == "five é"
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(ModelFileError, match="is not UTF-8"):
        load_folder_tokenizer(tmp_path)


# --- what is missing, damaged or not run here -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tokenizer.model", "vocab.json"])
def test_a_folder_with_older_files_only_is_told_how_to_convert(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UnsupportedModelError, match=rf"as {name} only.*AutoTokenizer as T;.*writes one"):
        load_folder_tokenizer(tmp_path)


def test_a_folder_without_any(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match=r"has no tokenizer\.json"):
        load_folder_tokenizer(tmp_path)


def _set(*path: Any, value: object) -> Callable[[dict[str, Any]], None]:
    def change(tables: dict[str, Any]) -> None:
        for key in path[:-1]:
            tables = tables[key]
        tables[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (_set("model", value=None), ModelFileError, "it has no vocabulary"),
        (_set("model", "vocab", value=3), ModelFileError, "it has no vocabulary"),
        (_set("model", "vocab", "a", value="0"), ModelFileError, "has no number"),
        (_set("model", "vocab", "a", value=-1), ModelFileError, "has no number"),
        (_set("model", "type", value="Unigram"), UnsupportedModelError, "of kind 'Unigram'; this engine runs BPE"),
        (_set("model", "vocab", value=[["a", 0.0]]), ModelFileError, "its vocabulary is a list"),
        (
            _set("model", value={"vocab": [["a", 0.0]]}),
            UnsupportedModelError,
            "of kind 'Unigram'; this engine runs BPE",
        ),
        (_set("model", "continuing_subword_prefix", value="##"), UnsupportedModelError, "marks parts of words"),
        (_set("model", "end_of_word_suffix", value="</w>"), UnsupportedModelError, "marks parts of words"),
        (_set("model", "merges", value=[["q", "qqq"]]), ModelFileError, r"tokenizer\.json is damaged"),
        (_set("model", "merges", value=3), ModelFileError, r"tokenizer\.json is damaged"),
        (_set("added_tokens", value=[{"id": 1}]), ModelFileError, "an added token has no text"),
        (_set("added_tokens", 0, "id", value=2.5), ModelFileError, "an added token has no text or no number"),
        (_set("added_tokens", 0, "content", value=""), ModelFileError, "an added token has no text"),
        (_set("pre_tokenizer", value=None), UnsupportedModelError, "neither byte-level BPE nor"),
        (_set("pre_tokenizer", value=[]), ModelFileError, "is no step of a tokenizer"),
        (_set("pre_tokenizer", value={"type": "Sequence"}), ModelFileError, "a sequence of steps has none"),
        (_set("pre_tokenizer", "type", value={}), ModelFileError, "is no step of a tokenizer"),
        (_set("normalizer", value={"type": ["NFC"]}), ModelFileError, "is no step of a tokenizer"),
        (_set("normalizer", value={"type": "Lowercase"}), UnsupportedModelError, "rewrites text .*'Lowercase'"),
        (
            _set("normalizer", value={"type": "Replace", "pattern": {"String": "a"}, "content": "b"}),
            UnsupportedModelError,
            "rewrites text .*'Replace'",
        ),
    ],
)
def test_tables_that_are_damaged_or_rewrite_text(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], error: type[EngineError], words: str
) -> None:
    path = byte_folder(tmp_path) / "tokenizer.json"
    tables = json.loads(path.read_text("utf-8"))
    change(tables)
    path.write_text(json.dumps(tables), "utf-8")
    with pytest.raises(error, match=words):
        load_folder_tokenizer(tmp_path)


def folder_that_splits_first(folder: Path, step: dict[str, Any]) -> Path:
    path = byte_folder(folder) / "tokenizer.json"
    tables = json.loads(path.read_text("utf-8"))
    tables["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [step, tables["pre_tokenizer"]]}
    path.write_text(json.dumps(tables), "utf-8")
    return folder


def test_a_pattern_that_gives_up_on_a_text_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    endless = {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated", "invert": False}
    tokenizer = load_folder_tokenizer(folder_that_splits_first(tmp_path, endless)).tokenizer
    assert tokenizer.decode(tokenizer.encode("aaa b")) == "aaa b"
    with pytest.raises(RequestError, match=r"fails over this text .*; use another model"):
        tokenizer.encode("a" * 300 + " b")
    assert capfd.readouterr().err == ""  # the library panics, and says so on its own


def test_a_step_that_fails_over_any_text_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    nothing = folder_that_splits_first(tmp_path, {"type": "FixedLength", "length": 0})
    with pytest.raises(UnsupportedModelError, match="does not give a line of code back as it was"):
        load_folder_tokenizer(nothing)
    assert capfd.readouterr().err == ""


def test_nfc_and_a_space_put_first_are_left_out(tmp_path: Path) -> None:
    path = byte_folder(tmp_path) / "tokenizer.json"
    tables = json.loads(path.read_text("utf-8"))
    tables["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}]}
    tables["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "\\d"}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False},
    ]}  # fmt: skip
    path.write_text(json.dumps(tables), "utf-8")
    tokenizer = load_folder_tokenizer(tmp_path).tokenizer
    for text in ["e\u0301 \u212b", "ab", " ab 12"]:
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"eos_token": "<nowhere>"}, "its eos_token '<nowhere>' is not in the vocabulary"),
        ({"bos_token": 3}, "its bos_token 3 is not in the vocabulary"),
        ({"bos_token": {"content": None}, "eos_token": {}}, None),
    ],
)
def test_named_tokens_must_be_there(tmp_path: Path, changes: dict[str, object], words: str | None) -> None:
    write_tokenizer(tmp_path, lambda settings: settings.update(changes))
    if words is None:
        assert load_folder_tokenizer(tmp_path).tokenizer.bos_id is None
    else:
        with pytest.raises(ModelFileError, match=words):
            load_folder_tokenizer(tmp_path)


def test_a_reply_that_never_ends_is_refused(tmp_path: Path) -> None:
    path = byte_folder(tmp_path) / "tokenizer.json"
    path.write_text(path.read_text("utf-8").replace("<|im_end|>", "<|a|>").replace("<|endoftext|>", "<|b|>"), "utf-8")
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(ModelFileError, match="says which token ends a reply"):
        load_folder_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 10**6}), "utf-8")
    with pytest.raises(ModelFileError, match="end with the token 1000000, and the vocabulary has"):
        load_folder_tokenizer(tmp_path)


VALUES = (
    st.none() | st.booleans() | st.integers(-1, 9) | st.text(max_size=2) | st.just([]) | st.just({}) | st.just([{}])
)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(data=st.data())
def test_any_damaged_value_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = byte_folder(tmp_path_factory.getbasetemp() / "damaged")
    path = folder / "tokenizer.json"
    node = tables = json.loads(path.read_text("utf-8"))
    while True:
        key = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        if not node[key] or not isinstance(node[key], dict | list) or data.draw(st.booleans()):
            break
        node = node[key]
    node[key] = data.draw(VALUES)
    path.write_text(json.dumps(tables), "utf-8")
    try:
        tokenizer = load_folder_tokenizer(folder).tokenizer
        assert tokenizer.decode(tokenizer.encode("def f():\n")) == "def f():\n"
    except EngineError as error:
        assert str(error).endswith(".")


def test_special_tokens_are_all_there(tokenizer_of: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizer_of["bytes"]
    assert set(tokenizer.special_tokens) == set(SPECIAL)
    ids = tokenizer.encode(MARKERS)
    assert set(tokenizer.special_tokens.values()).isdisjoint(ids)
