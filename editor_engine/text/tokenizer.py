"""Text to token ids and back, with the vocabulary of one model.

Made from a GGUF file here, and from a folder by folder_tokenizer.py. Knows how entries of a vocabulary spell text and
which are special; nothing of chats, drafting or the model's arithmetic. Invariants: text is data, only a `Piece` marked
special may become special tokens; the bytes of the tokens of a text are the bytes of the text, or `encode` raises.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import tokenizers

from editor_engine.errors import ModelFileError, RequestError
from editor_engine.text.bpe import build_bpe, check_supported, entries
from editor_engine.text.byte_alphabet import CHARACTER_OF_BYTE, spaced_bytes, spelt_bytes
from editor_engine.text.quiet_call import PanicError, quiet_call
from editor_engine.text.tokenizer_cache import read_cache, write_cache

CONTROL, USER_DEFINED = 3, 4
"""Values of tokenizer.ggml.token_type that mark an entry as special (GGUF specification)."""

STOP_TEXTS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>")
"""Control tokens that end a reply wherever a vocabulary has them, besides the ones the file names."""

TAIL_CHARACTERS = 256
"""At least so much of a prefix is looked at to see what its end does to the text that follows."""


@dataclass(frozen=True)
class Piece:
    """A stretch of a rendered prompt."""

    text: str
    special: bool
    """True: written by the chat template, so marker texts in it are special tokens. False: data."""


@dataclass(frozen=True)
class TokenizerFacts:
    """What the metadata says beside the tables."""

    pre: str
    """Name of the pre-tokenizer."""
    vocab_size: int
    special: dict[str, int]
    """Text of every control and user-defined token to its id."""
    missing_bytes: tuple[int, ...]
    """Byte values that no token spells; empty for most models."""
    bos_id: int | None
    eos_id: int
    add_bos: bool
    """True: the model expects its first token to be `bos_id`."""
    stop_ids: tuple[int, ...]
    """Ids that end a reply, ascending."""
    spaced: bool = False
    """True: entries spell text, with U+2581 for a space and `<0x0A>` for a byte. False: they spell bytes, in the
    byte alphabet."""
    blanks: dict[str, int] = field(default_factory=dict)
    """Runs of white space that are tokens whole, before any merge; they are data like any other text."""
    eats_left: tuple[str, ...] = ()
    """Special tokens that take the template's white space before them with them."""
    eats_right: tuple[str, ...] = ()
    """Likewise, after them."""
    rows: int = 0
    """Of the embedding, where it may be longer than the vocabulary; ids without an entry then stand for no text."""
    tokens_sha256: str = ""
    """Of all entries in order, special ones marked; empty where nobody took it."""
    doubted: bool = False
    """True: the tables are not ours, so every encoding is read back and compared with the text, and may panic."""


class Tokenizer:
    """The tokenizer of one model. Safe to share between threads."""

    def __init__(self, bpe: tokenizers.Tokenizer, facts: TokenizerFacts) -> None:
        self._bpe = bpe
        self._facts = facts
        self._special_text = {index: text for text, index in facts.special.items()}
        self._marker = _alternatives(facts.special, facts.eats_left, facts.eats_right)
        self._blank = _alternatives(facts.blanks)
        self._blank_text = {index: text for text, index in facts.blanks.items()}
        self._missing = frozenset(facts.missing_bytes)
        self._bytes: dict[int, bytes] = {}

    @property
    def vocab_size(self) -> int:
        """Ids run from 0 to vocab_size - 1."""
        return self._facts.vocab_size

    @property
    def eos_id(self) -> int:
        return self._facts.eos_id

    @property
    def bos_id(self) -> int | None:
        return self._facts.bos_id

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Ids that end a reply, ascending."""
        return self._facts.stop_ids

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Text of every control and user-defined token to its id."""
        return self._facts.special

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Ids of `text`; marker texts in it become special tokens only with `special`.

        Raises RequestError for text with a lone surrogate, or with a byte the model has no token for.
        """
        if not special:
            return self._encode_data(text)
        ids: list[int] = []
        for part in self._split_markers(text):
            ids.extend([part] if isinstance(part, int) else self._encode_data(part))
        return ids

    def encode_pieces(self, pieces: Iterable[Piece]) -> list[int]:
        """Ids of a rendered prompt, with `bos_id` first where the model expects it.

        Data and the template's own plain text between two markers are encoded as one run, as the model was trained.
        """
        ids: list[int] = []
        run = ""
        for piece in pieces:
            for part in self._split_markers(piece.text) if piece.special else [piece.text]:
                if isinstance(part, str):
                    run += part
                else:
                    ids += [*self._encode_data(run), part]
                    run = ""
        ids += self._encode_data(run)
        bos = self._facts.bos_id
        if self._facts.add_bos and bos is not None and ids[:1] != [bos]:
            ids.insert(0, bos)
        return ids

    def encode_continuation(self, prefix_ids: Sequence[int], prefix_text: str, text: str) -> list[int]:
        """Ids of `text` as the model would emit it right after `prefix_text`, whose tokens end `prefix_ids`.

        Where a token would lie across the border, `text` is encoded on its own: the model cannot emit half a token.
        """
        tail = prefix_text[_tail_start(prefix_text) :]
        tail_ids = self._encode_data(tail)
        count = len(tail_ids)
        if count and list(prefix_ids[-count:]) == tail_ids:
            joined = self._encode_data(tail + text)
            if joined[:count] == tail_ids:
                return joined[count:]
        return self._encode_data(text)

    def token_bytes(self, token_id: int) -> bytes:
        """Bytes that a token stands for; of a special token, its own text. Raises RequestError for an unknown id."""
        known = self._bytes.get(token_id)
        if known is None:
            known = self._bytes[token_id] = self._look_up(token_id)
        return known

    def spells_as(self, other: "Tokenizer") -> bool:
        """True: every id of both stands for the same text. False says nothing: the tables were not compared."""
        return bool(self._facts.tokens_sha256) and self._facts.tokens_sha256 == other._facts.tokens_sha256

    def spelling(self, token_id: int) -> bytes:
        """`token_bytes`, looked up and not kept: for walks over the whole vocabulary."""
        return self._look_up(token_id)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of `ids`; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

    def line_of_token(self, ids: Iterable[int]) -> list[int]:
        """For each token the 0-based line (ended by LF) in which its first byte lies."""
        lines: list[int] = []
        line = 0
        for token_id in ids:
            lines.append(line)
            line += self.token_bytes(token_id).count(b"\n")
        return lines

    def _encode_data(self, text: str) -> list[int]:
        if not text:
            return []
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RequestError(
                f"The text has a lone surrogate (U+{ord(text[error.start]):04X}), which no model can read."
            ) from error
        if self._missing and not self._missing.isdisjoint(data):
            byte = min(self._missing.intersection(data))
            raise RequestError(f"The text has a byte 0x{byte:02X} that this model has no token for; use another model.")
        ids: list[int] = []
        for part in _split(text, self._blank, self._facts.blanks) if self._facts.blanks else [text]:
            ids.extend([part] if isinstance(part, int) else self._run(part))
        if self._facts.doubted and b"".join(map(self.token_bytes, ids)) != data:
            raise RequestError(
                "The model's tokenizer does not give this text back as it is (it has no token for some character, or "
                "rewrites text); use another model."
            )
        return ids

    def _run(self, text: str) -> list[int]:
        if not self._facts.doubted:
            return list(self._bpe.encode(text, add_special_tokens=False).ids)
        try:
            return list(quiet_call(lambda: self._bpe.encode(text, add_special_tokens=False).ids))
        except PanicError as error:
            raise RequestError(f"The model's tokenizer fails over this text ({error}); use another model.") from error

    def _split_markers(self, text: str) -> Iterator[str | int]:
        """Plain stretches of `text`, and ids of the special tokens between them."""
        return _split(text, self._marker, self._facts.special)

    def _look_up(self, token_id: int) -> bytes:
        special = self._special_text.get(token_id) or self._blank_text.get(token_id)
        if special is not None:
            return special.encode("utf-8")
        if not 0 <= token_id < max(self._facts.vocab_size, self._facts.rows):
            raise RequestError(f"There is no token {token_id}: the vocabulary has {self._facts.vocab_size}.")
        spelling = self._bpe.id_to_token(token_id)
        if spelling is None:
            if self._facts.rows:
                return b""
            raise ModelFileError(f"The tokenizer has no entry {token_id}; run `redraft models verify`.")
        if self._facts.spaced:
            return spaced_bytes(spelling)
        data = spelt_bytes(spelling)
        return spelling.encode("utf-8") if data is None else data


def load_tokenizer(metadata: Mapping[str, object], cache_folder: Path | None = None) -> Tokenizer:
    """The tokenizer of a GGUF file, from `cache_folder` where it is kept, else built and put there.

    `metadata` has the file's keys (tokenizer.ggml.*); the large lists are touched only when it must be built. The
    folder belongs to one model file (name it by the file's SHA-256). Raises UnsupportedModelError, ModelFileError.
    """
    pre = check_supported(metadata)
    cached = None if cache_folder is None else _from_cache(cache_folder, pre)
    if cached is not None:
        return cached
    bpe = build_bpe(metadata)
    facts = _facts(metadata, pre)
    if cache_folder is not None:
        # A cache that cannot be written costs a second at the next start and nothing else.
        with contextlib.suppress(OSError):
            write_cache(cache_folder, asdict(facts), _with_short_merges(bpe))
    return Tokenizer(bpe, facts)


def _from_cache(folder: Path, pre: str) -> Tokenizer | None:
    """The kept tokenizer; None when there is none that this version can use."""
    cached = read_cache(folder)
    if cached is None:
        return None
    kept, tokenizer_json = cached
    try:
        values = {field.name: kept[field.name] for field in fields(TokenizerFacts)}
        # JSON has no tuples.
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        facts = TokenizerFacts(**values)  # type: ignore[arg-type]
        bpe = tokenizers.Tokenizer.from_str(tokenizer_json)
    except Exception:  # the library raises bare Exception; whatever is wrong, building it again is the cure
        return None
    return Tokenizer(bpe, facts) if facts.pre == pre else None


def _with_short_merges(bpe: tokenizers.Tokenizer) -> str:
    """The library's JSON with merges as "a b" instead of pairs: half the size, and read in three quarters the time."""
    tree = json.loads(bpe.to_str())
    tree["model"]["merges"] = [" ".join(pair) for pair in tree["model"]["merges"]]
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"))


def _facts(metadata: Mapping[str, object], pre: str) -> TokenizerFacts:
    """What the file says of its tokens. Raises ModelFileError for facts that contradict each other."""
    tokens = [str(token) for token in entries(metadata, "tokenizer.ggml.tokens")]
    types = entries(metadata, "tokenizer.ggml.token_type")
    if len(types) != len(tokens):
        raise ModelFileError(f"The model file has {len(tokens)} tokens but {len(types)} token types; it is damaged.")
    special = {
        text: index
        for index, (text, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in (CONTROL, USER_DEFINED) and text
    }
    eos_id = _token_id(metadata, "eos", len(tokens))
    if eos_id is None:
        raise ModelFileError("The model file does not say which token ends a reply (tokenizer.ggml.eos_token_id).")
    stops = {eos_id, *(special[text] for text in STOP_TEXTS if text in special)}
    end_of_turn = _token_id(metadata, "eot", len(tokens))
    if end_of_turn is not None:
        stops.add(end_of_turn)
    spelt = set(tokens)
    return TokenizerFacts(
        pre=pre,
        vocab_size=len(tokens),
        special=special,
        missing_bytes=tuple(byte for byte, character in enumerate(CHARACTER_OF_BYTE) if character not in spelt),
        bos_id=_token_id(metadata, "bos", len(tokens)),
        eos_id=eos_id,
        add_bos=metadata.get("tokenizer.ggml.add_bos_token") is True,
        tokens_sha256=hashlib.sha256(json.dumps([tokens, special]).encode()).hexdigest(),
        stop_ids=tuple(sorted(stops)),
    )


def _token_id(metadata: Mapping[str, object], name: str, vocab_size: int) -> int | None:
    """The id under tokenizer.ggml.<name>_token_id; None when the file has none."""
    value = metadata.get(f"tokenizer.ggml.{name}_token_id")
    if value is None:
        return None
    if not isinstance(value, int) or not 0 <= value < vocab_size:
        raise ModelFileError(f"The model file's {name} token {value!r} is not in its vocabulary; it is damaged.")
    return int(value)


def _alternatives(
    texts: Collection[str], eats_left: Collection[str] = (), eats_right: Collection[str] = ()
) -> re.Pattern[str]:
    """A pattern that finds any of `texts`, the longest first, as its last group."""
    longest_first = sorted(texts, key=len, reverse=True)
    sides = (
        (r"\s*" if text in eats_left else "", text, r"\s*" if text in eats_right else "") for text in longest_first
    )
    return re.compile("|".join(f"{left}({re.escape(text)}){right}" for left, text, right in sides) or r"(?!)")


def _split(text: str, pattern: re.Pattern[str], ids: Mapping[str, int]) -> Iterator[str | int]:
    """Stretches of `text` between what `pattern` finds, and the ids of what it finds."""
    start = 0
    for match in pattern.finditer(text):
        if match.start() > start:
            yield text[start : match.start()]
        yield ids[match[match.lastindex or 0]]
        start = match.end()
    if start < len(text):
        yield text[start:]


def _tail_start(text: str) -> int:
    """Where the last part of `text` that can matter begins.

    A word never crosses from a line feed to a character that is no white space (see the splits in bpe.py), so a cut
    there leaves the tokens after it as they are.
    """
    position = len(text) - TAIL_CHARACTERS
    while position > 0:
        newline = text.rfind("\n", 0, position)
        if newline < 0:
            break
        if not text[newline + 1].isspace():
            return newline + 1
        position = newline
    return 0
