"""Tokenizer and chat template of a folder with a Hugging Face checkpoint, from tokenizer.json and what is beside it.

Knows that file's parts and needs no transformers. What a part would do to text that is not the text's own is left out
(Unicode normalisation, a space put first, special tokens in data) or refused by name. Invariant: the tokenizer is one
whose encodings spell the text back, as for a GGUF file; special tokens come from the template alone.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from editor_engine.errors import ModelFileError, ModelMissingError, RequestError, UnsupportedModelError
from editor_engine.foreign_json import read_bytes, read_object, read_object_if_there, shown
from editor_engine.text.byte_alphabet import CHARACTER_OF_BYTE, SPACE
from editor_engine.text.quiet_call import quiet_call
from editor_engine.text.stop_ids import CONFIG, GENERATION_CONFIG, end_ids, is_id
from editor_engine.text.tokenizer import STOP_TEXTS, Tokenizer, TokenizerFacts

TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"

_TABLE_LIMIT = 256 << 20
_TEMPLATE_LIMIT = 4 << 20
_PROBE = "def f(x):\n\treturn  x[1]\r\n"
_CONVERT = "from transformers import AutoTokenizer as T; T.from_pretrained('{0}').save_pretrained('{0}')"


@dataclass(frozen=True)
class FolderText:
    """What a folder says of text."""

    tokenizer: Tokenizer
    template: str | None
    """Chat template; None for a model that was not made to be given instructions."""


def load_folder_tokenizer(folder: Path, *, rows: int = 0) -> FolderText:
    """Tokenizer and template of `folder`; `rows` of the model's embedding, 0 where nobody knows.

    Raises ModelMissingError, ModelFileError for what is damaged, UnsupportedModelError for what is not run here.
    """
    try:
        tables = read_object(folder / TOKENIZER, _TABLE_LIMIT)
    except ModelMissingError as error:
        raise _no_tables(folder) from error
    settings = read_object_if_there(folder / TOKENIZER_CONFIG)
    ends = end_ids(read_object_if_there(folder / CONFIG), read_object_if_there(folder / GENERATION_CONFIG))
    parts = _Parts(tables)
    facts = parts.facts(settings, ends, rows)
    if rows and facts.vocab_size > rows:
        raise UnsupportedModelError(
            f"{folder.name} has {facts.vocab_size} tokens and an embedding of {rows} rows, so some tokens mean nothing "
            "to the model; its embedding must be resized (resize_token_embeddings) and saved again."
        )
    tokenizer = Tokenizer(parts.bpe(), facts)
    try:
        tokenizer.encode(_PROBE)
    except RequestError as error:
        raise UnsupportedModelError(
            f"The tokenizer of {folder.name} does not give a line of code back as it was, so it cannot edit files."
        ) from error
    return FolderText(tokenizer, _template(folder, settings))


def _no_tables(folder: Path) -> ModelMissingError | UnsupportedModelError:
    for name in ("tokenizer.model", "vocab.json"):
        if (folder / name).exists():
            return UnsupportedModelError(
                f"{folder} has its tokenizer as {name} only, and this engine reads {TOKENIZER}; "
                f'`python -c "{_CONVERT.format(folder)}"` writes one.'
            )
    return ModelMissingError(f"{folder} has no {TOKENIZER}.")


class _Parts:
    """The parts of a tokenizer.json, checked, and made to leave text alone."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._tables = tables
        model = tables.get("model")
        if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict | list):
            raise ModelFileError(f"{TOKENIZER} is damaged: it has no vocabulary.")
        kind = model.get("type", "BPE" if isinstance(model["vocab"], dict) else "Unigram")
        if kind == "BPE" and not isinstance(model["vocab"], dict):
            raise ModelFileError(f"{TOKENIZER} is damaged: its vocabulary is a list, which BPE has none of.")
        if kind != "BPE":
            raise UnsupportedModelError(f"The model's tokenizer is of kind {shown(kind)}; this engine runs BPE only.")
        for affix in ("continuing_subword_prefix", "end_of_word_suffix"):
            # A text would not come back as it was; and the library panics over merges shorter than the first.
            if model.get(affix):
                raise UnsupportedModelError(
                    f"The model's tokenizer marks parts of words ({affix} is {shown(model[affix])}), so files would "
                    "not come back as they are; use another model."
                )
        self._model: dict[str, Any] = model
        self._vocabulary: dict[str, Any] = model["vocab"]
        if not all(is_id(index) for index in self._vocabulary.values()):
            raise ModelFileError(f"{TOKENIZER} is damaged: an entry of the vocabulary has no number.")
        splits = list(_flat(tables.get("pre_tokenizer"), "pretokenizers"))
        kinds = {split.get("type") for split in splits}
        self.spaced = model.get("byte_fallback") is True or "Metaspace" in kinds
        if not self.spaced and "ByteLevel" not in kinds:
            raise UnsupportedModelError(
                "The model's tokenizer is neither byte-level BPE nor one that falls back to bytes; these are run here."
            )
        self._added = _added(tables.get("added_tokens"))

    def bpe(self) -> tokenizers.Tokenizer:
        """The bare BPE: no added tokens, nothing put before or after, nothing cut."""
        tables = {
            **self._tables,
            "model": {**self._model, "dropout": None},
            "normalizer": _joined(
                [part for part in _flat(self._tables.get("normalizer"), "normalizers") if _kept(part)]
            ),
            "pre_tokenizer": _without_first_space(self._tables.get("pre_tokenizer")),
            "post_processor": None,
            "truncation": None,
            "padding": None,
            "added_tokens": [],
        }
        try:
            return quiet_call(lambda: tokenizers.Tokenizer.from_str(json.dumps(tables)))
        except Exception as error:  # the library raises bare Exception for tables that do not fit together
            raise ModelFileError(f"{TOKENIZER} is damaged: {error}.") from error

    def facts(self, settings: Mapping[str, Any], ends: Sequence[int], rows: int) -> TokenizerFacts:
        """What is known beside the tables. Raises ModelFileError for tokens that are named and not there."""
        special: dict[str, int] = {}
        blanks: dict[str, int] = {}
        sides: dict[str, list[str]] = {"lstrip": [], "rstrip": []}
        for token in self._added:
            content, index = token["content"], token["id"]
            if token.get("special") is not True and not content.replace(SPACE, " ").strip():
                # Vocabulary rather than a marker; runs of SPACE are made by merges.
                blanks.update({content: index} if SPACE not in content else {})
                continue
            special[content] = index
            for side, texts in sides.items():
                if token.get(side) is True:
                    texts.append(content)
        size = 1 + max([*self._vocabulary.values(), *special.values(), *blanks.values()], default=-1)
        bos, eos = self._named(settings, "bos_token", special), self._named(settings, "eos_token", special)
        stops = {*ends, *(special[text] for text in STOP_TEXTS if text in special)} | (
            {eos} if eos is not None else set()
        )
        if not stops:
            raise ModelFileError(
                f"Neither {CONFIG}, {GENERATION_CONFIG} nor {TOKENIZER_CONFIG} says which token ends a reply."
            )
        if max(stops) >= max(size, rows):
            raise ModelFileError(f"Replies end with the token {max(stops)}, and the vocabulary has {size}.")
        spelt = set() if self.spaced else set(CHARACTER_OF_BYTE) - set(self._vocabulary)
        return TokenizerFacts(
            pre=TOKENIZER,
            vocab_size=size,
            special=special,
            missing_bytes=tuple(byte for byte, character in enumerate(CHARACTER_OF_BYTE) if character in spelt),
            bos_id=bos,
            eos_id=min(stops) if eos is None else eos,
            add_bos=False,  # templates for transformers write it themselves
            stop_ids=tuple(sorted(stops)),
            spaced=self.spaced,
            blanks=blanks,
            eats_left=tuple(sides["lstrip"]),
            eats_right=tuple(sides["rstrip"]),
            rows=max(rows, size),
            doubted=True,
        )

    def _named(self, settings: Mapping[str, Any], key: str, special: Mapping[str, int]) -> int | None:
        """The id of the token that tokenizer_config.json names under `key`; None where it names none."""
        value = settings.get(key)
        text = value.get("content") if isinstance(value, dict) else value
        if text is None:
            return None
        index = special.get(text, self._vocabulary.get(text)) if isinstance(text, str) else None
        if not isinstance(index, int):
            raise ModelFileError(f"{TOKENIZER_CONFIG} is damaged: its {key} {shown(text)} is not in the vocabulary.")
        return index


def _added(value: object) -> list[dict[str, Any]]:
    """Entries of `added_tokens`. Raises ModelFileError."""
    if value is None:
        return []
    if isinstance(value, list) and all(
        isinstance(token, dict)
        and isinstance(token.get("content"), str)
        and token["content"]
        and is_id(token.get("id"))
        for token in value
    ):
        return value
    raise ModelFileError(f"{TOKENIZER} is damaged: an added token has no text or no number.")


def _flat(part: object, inside: str) -> Iterator[dict[str, Any]]:
    """The steps of a part that is nothing, one step, or a sequence of them, whose steps lie under `inside`."""
    if part is None:
        return
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise ModelFileError(f"{TOKENIZER} is damaged: {shown(part)} is no step of a tokenizer.")
    if part.get("type") != "Sequence":
        yield part
        return
    steps = part.get(inside)
    if not isinstance(steps, list):
        raise ModelFileError(f"{TOKENIZER} is damaged: a sequence of steps has none.")
    for step in steps:
        yield from _flat(step, inside)


def _joined(steps: list[dict[str, Any]]) -> dict[str, Any] | None:
    return {"type": "Sequence", "normalizers": steps} if steps else None


def _kept(step: dict[str, Any]) -> bool:
    """Whether a step of the normaliser stays. Raises UnsupportedModelError for one that would alter text.

    NFC is left out, as for GGUF files: a file's bytes must survive. A space put before the text is not the text's.
    """
    if step.get("type") in ("NFC", "Prepend"):
        return False
    if step.get("type") == "Replace" and step.get("pattern") == {"String": " "} and step.get("content") == SPACE:
        return True
    raise UnsupportedModelError(
        f"The model's tokenizer rewrites text before it reads it ({shown(step.get('type'))}), so files would not come "
        "back as they are; use another model."
    )


def _without_first_space(part: Any) -> Any:
    """A pre-tokenizer that puts no space before the text."""
    if not isinstance(part, dict):
        return part
    if part.get("type") == "Sequence" and isinstance(part.get("pretokenizers"), list):
        return {**part, "pretokenizers": [_without_first_space(step) for step in part["pretokenizers"]]}
    if part.get("type") == "Metaspace":
        kept = {key: value for key, value in part.items() if key != "add_prefix_space"}
        return {**kept, "prepend_scheme": "never"}
    return {**part, "add_prefix_space": False} if "add_prefix_space" in part else part


def _template(folder: Path, settings: Mapping[str, Any]) -> str | None:
    """The chat template: a file of its own, else a setting, whose list of named ones has a `default`."""
    alone = folder / "chat_template.jinja"
    if alone.exists():
        try:
            return read_bytes(alone, _TEMPLATE_LIMIT).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ModelFileError(f"{alone.name} is damaged: it is not UTF-8.") from error
    value = read_object_if_there(folder / "chat_template.json").get("chat_template", settings.get("chat_template"))
    if isinstance(value, list):
        named = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, dict)}
        value = named.get("default")
    if value is None:
        return None
    if not isinstance(value, str):
        raise ModelFileError(f"{TOKENIZER_CONFIG} is damaged: its chat template is no text.")
    return value
