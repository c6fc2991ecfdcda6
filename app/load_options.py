"""How a model is loaded, as a user may say it: one record, and one table for options, settings file and environment.

Knows words and kinds; finds no model and loads none. Invariant: an option that is in the record is in the table, and so
has a flag, and but for consent a key and a variable; what nobody said is as the engine has it by itself.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from app.sizes import WANTED, read_size
from app.value_kinds import NONE, Reader, one_of, or_none, switch, text, whole
from editor_engine.config import ATTENTIONS, DRAFT_RULES, DTYPES, QUANTISATIONS, EngineConfig, HfOptions

Given = Mapping[str, object]
"""Name of an option in the table to what a command was given for it; what was not given is not there."""

_HF = frozenset(part.name for part in fields(HfOptions))


@dataclass(frozen=True)
class LoadOptions:
    """What to load and how."""

    model: str | None = None
    """Catalogue id, path of a GGUF file, path or hub id of a checkpoint; None chooses one for this machine."""
    threads: int = 0
    """Worker threads; 0 takes every processor."""
    context_length: int | None = None
    """Most tokens that prompt and reply share; None takes the engine's own limit."""
    max_memory: int | None = None
    """Bytes that everything of the load may take; None: what is free."""
    draft_model: str | None = None
    """As `model`; None drafts from the file only."""
    draft_rule: str = "same-ids"
    """One of DRAFT_RULES."""
    hf: HfOptions = field(default_factory=HfOptions)

    def over(self, given: Given) -> "LoadOptions":
        """These options with those of a command over them; NONE takes one back."""
        given = {name: None if value == NONE and self.clears(name) else value for name, value in given.items()}
        own = {name: value for name, value in given.items() if name not in _HF}
        hf = {name: value for name, value in given.items() if name in _HF}
        return replace(self, **own, hf=replace(self.hf, **hf))  # type: ignore[arg-type]  # readers saw to the types

    @staticmethod
    def clears(name: str) -> bool:
        """The option may be taken back: by itself it has no value."""
        return name != "model" and LoadOptions().value(name) is None

    def value(self, name: str) -> object:
        """Of an option of the table."""
        return getattr(self.hf if name in _HF else self, name)

    def config(self, model_path: Path, draft_path: Path | None) -> EngineConfig:
        """For the engine; the paths are where the two models were found."""
        return EngineConfig(
            model_path,
            threads=self.threads,
            context_length=self.context_length,
            draft_path=draft_path,
            draft_rule=self.draft_rule,
            max_memory=self.max_memory,
            hf=self.hf,
        )

    def to_json(self) -> str:
        """For another process of this version."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "LoadOptions":
        """What `to_json` gave."""
        found = json.loads(text)
        return LoadOptions(**{**found, "hf": HfOptions(**found["hf"])})


@dataclass(frozen=True)
class LoadOption:
    """One option: how it is called and what it may be."""

    name: str
    """Field of LoadOptions or of its HfOptions."""
    read: Reader
    wanted: str
    """What it may be, as a clause."""
    metavar: str
    """In help; empty: a flag, which takes no value."""
    help: str
    example: object = None
    """A value to show where there is none by default."""
    is_setting: bool = True
    """May be kept in the settings file. Consent to run a stranger's code is given each time."""

    @property
    def takes(self) -> Reader:
        """What may be said for it: a value, or NONE where it may be taken back."""
        return or_none(self.read) if LoadOptions.clears(self.name) else self.read

    @property
    def wishes(self) -> str:
        """What may be said, as a clause."""
        return f"{self.wanted}, or {NONE}" if LoadOptions.clears(self.name) else self.wanted

    @property
    def flag(self) -> str:
        """On the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def opposite(self) -> str:
        """Of a flag: what takes it back."""
        return f"--no-{self.name.replace('_', '-')}"

    @property
    def key(self) -> str:
        """In the settings file."""
        return self.name if self.name in ("model", "threads") else f"load.{self.name}"

    @property
    def variable(self) -> str:
        """In the environment."""
        return f"REDRAFT_{self.name.upper()}"


def _choice(name: str, words: tuple[str, ...], about: str, example: str | None = None) -> LoadOption:
    return LoadOption(name, one_of(*words), f"one of {', '.join(words)}", "KIND", about, example)


def _device(value: object) -> object | None:
    if value in ("auto", "cpu", "cuda"):
        return value
    number = value.removeprefix("cuda:") if isinstance(value, str) and value.startswith("cuda:") else ""
    return value if number.isascii() and number.isdigit() and len(number) < 4 else None


_MODEL = "a model id, the path of a .gguf file, or the folder or hub id of a Hugging Face checkpoint"

LOAD_OPTIONS = (
    LoadOption("model", text, _MODEL, "MODEL", "Catalogue id, .gguf file, or folder or hub id of a checkpoint."),
    LoadOption(
        "threads", whole(0, 1024), "a whole number from 0 to 1024", "N", "Worker threads; 0 takes every processor."
    ),
    LoadOption("draft_model", text, _MODEL, "MODEL", "A smaller model of the same vocabulary, to draft new text."),
    _choice("draft_rule", DRAFT_RULES, "How sampled text takes its drafts: same-ids or rejection."),
    LoadOption(
        "context_length",
        whole(1, 1 << 24),
        f"a whole number of tokens from 1 to {1 << 24}",
        "N",
        "Tokens that prompt and reply share, at most.",
        example=16384,
    ),
    LoadOption("max_memory", read_size, WANTED, "SIZE", "Most memory for weights and caches.", example="6GB"),
    _choice("dtype", DTYPES, "Checkpoints: type of the weights, such as bfloat16."),
    _choice("quantise", QUANTISATIONS, "Checkpoints: nf4, fp4 or int8 weights.", example="nf4"),
    _choice("compute_dtype", DTYPES, "Checkpoints: type that quantised weights compute in."),
    LoadOption(
        "double_quant", switch, "true or false", "", "Checkpoints: quantise the scales of nf4 and fp4 weights, too."
    ),
    LoadOption("device", _device, "auto, cpu, cuda or cuda:N", "NAME", "Checkpoints: auto, cpu, cuda or cuda:N."),
    LoadOption(
        "gpu_layers",
        whole(0, 1024),
        "a whole number from 0 to 1024",
        "N",
        "Checkpoints: the first N layers go to the GPU, the others stay on the CPU.",
        example=20,
    ),
    _choice("attention", ATTENTIONS, "Checkpoints: auto, eager, sdpa or flash_attention_2."),
    LoadOption(
        "remote_code",
        switch,
        "true or false",
        "",
        "Checkpoints: run the Python code that the folder brings along.",
        is_setting=False,
    ),
)


def command_words(given: Given) -> list[str]:
    """What was given, as a command line of this program wants it."""
    words: list[str] = []
    for option in LOAD_OPTIONS:
        value = given.get(option.name)
        if value is not None and option.metavar:
            words += [option.flag, str(value)]
        elif value is not None:
            words.append(option.flag if value else option.opposite)
    return words
