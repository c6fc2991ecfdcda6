"""From a path to a model that runs and the text that goes with it: a GGUF file for the native kernels, a folder for
transformers.

Knows the two kinds of path and nothing of what is in them. Invariant: what an engine, a draft model or a benchmark
loads is loaded here, so the same path gives the same model everywhere.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from editor_engine.config import EngineConfig, default_threads, model_cache_dir
from editor_engine.decode.draft_pair import DraftPair
from editor_engine.errors import OptionError, UnsupportedModelError
from editor_engine.memory import size_words
from editor_engine.models.target import TargetModel
from editor_engine.text.chat_template import refuse_long
from editor_engine.text.tokenizer import Tokenizer, load_tokenizer
from editor_engine.text.vocabulary import refuse_other_vocabulary

OnPacked = Callable[[int, int], None]
"""Told (done, total) while weights are packed."""

THREADS_EACH = 8
"""Most threads for each processor: with 32 an edit took 4.5 times as long as with one, with 512 it did not end."""


@dataclass(frozen=True)
class Loaded:
    """A model, its tokenizer and its chat template."""

    model: TargetModel
    tokenizer: Tokenizer
    template: str | None
    """None: the model cannot be given instructions; it may still draft."""
    cache_folder: Path
    """Where things derived from these weights are kept; may not exist, may not be writable."""
    notes: tuple[str, ...]
    """Sentences for the user: what works, but slower or other than wished."""


def refuse_or_note(config: EngineConfig) -> tuple[str, ...]:
    """What a user should know of a load before it is done: both models of it, as a whole.

    Raises OptionError for more threads than the processors could ever serve, OutOfMemoryError for a load that does not
    fit, before anything of it is allocated, and what reading the headers of its files raises.
    """
    processors = default_threads()
    if config.threads > THREADS_EACH * processors:
        raise OptionError(
            f"{config.threads} threads on {_counted(processors)} would wait for each other most of the time; at most "
            f"{THREADS_EACH * processors} are started here, and --threads 0 takes one for each processor."
        )
    # numpy and what reads both kinds of files: 0.1 s that who only imports an engine need not pay.
    from editor_engine.models.needs import refuse_what_does_not_fit
    from editor_engine.store.smaller import smaller_models

    refuse_what_does_not_fit(config, others=smaller_models)
    notes = []
    if config.threads > processors:
        notes.append(
            f"{config.threads} threads share {_counted(processors)} and wait for each other, which is slower than one "
            "for each; --threads 0 takes as many as there are."
        )
    if config.idle:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in config.idle)
        notes.append(
            f"{config.model_path.name} is a GGUF file, which our own kernels run on the CPU; "
            f"without effect there: {names}."
        )
    return tuple(notes)


def _counted(processors: int) -> str:
    return f"{processors} processor{'s' if processors != 1 else ''}"


def load(config: EngineConfig, on_packed: OnPacked = lambda done, total: None, *, instructed: bool = False) -> Loaded:
    """Load what is at `config.model_path`; `instructed` refuses what has no chat template, a folder before it takes
    memory.

    Raises ModelMissingError, ModelFileError, UnsupportedModelError, OutOfMemoryError or RequestError.
    """
    if config.model_path.is_dir():
        return _load_folder(config, instructed)
    return _load_file(config, on_packed, instructed)


def load_pair(
    config: EngineConfig, target: Loaded, on_packed: OnPacked = lambda done, total: None
) -> tuple[DraftPair | None, tuple[str, ...]]:
    """The draft model at `config.draft_path` beside its target, and notes of its load; None without a path.

    Its cache is made for its own context: it drafts up to there. Raises what `load` raises, UnsupportedModelError for
    a vocabulary that is not the target's.
    """
    if config.draft_path is None:
        return None, ()
    from editor_engine.models.needs import draft_config  # numpy, as in `refuse_or_note`

    loaded = load(draft_config(config.draft_path, config), on_packed)
    target_name, name = target.model.info.name, loaded.model.info.name
    known = refuse_other_vocabulary(target_name, target.tokenizer, name, loaded.tokenizer)
    pair = DraftPair(
        loaded.model,
        target.model.info,
        min(known, target.model.info.vocab_size, loaded.model.info.vocab_size),
        folder=loaded.cache_folder,
        target_folder=target.cache_folder,
        clock=time.perf_counter,
    )
    sizes = [size_words(info.weights_bytes, up=True) for info in (loaded.model.info, target.model.info)]
    note = f"{name} drafts for {target_name} while that pays ({sizes[0]} of weights beside {sizes[1]})."
    return pair, (*loaded.notes, note)


def _refuse_mute(template: str | None, instructed: bool) -> None:
    if not instructed:
        return
    if template is None:
        raise UnsupportedModelError("The model has no chat template, so it cannot be given instructions.")
    refuse_long(template)


def _load_file(config: EngineConfig, on_packed: OnPacked, instructed: bool) -> Loaded:
    from editor_engine.models.native.load import load_native  # the extension and numpy: 0.15 s

    loaded = load_native(config, on_packed=on_packed)
    tokenizer = load_tokenizer(loaded.metadata, loaded.cache_folder)
    template = loaded.metadata.get("tokenizer.chat_template")
    template = template if isinstance(template, str) else None
    _refuse_mute(template, instructed)
    return Loaded(loaded.model, tokenizer, template, loaded.cache_folder, loaded.notes)


def _load_folder(config: EngineConfig, instructed: bool) -> Loaded:
    from editor_engine.models.hf.checkpoint import open_folder
    from editor_engine.text.folder_tokenizer import load_folder_tokenizer

    checkpoint = open_folder(config.model_path, remote_code=config.hf.remote_code)
    text = load_folder_tokenizer(checkpoint.folder, rows=checkpoint.rows)  # first: it may refuse, and takes no memory
    _refuse_mute(text.template, instructed)

    from editor_engine.models.hf.load import load_hf  # torch and transformers: seconds, once the folder is worth it

    model, notes = load_hf(checkpoint, config)
    return Loaded(model, text.tokenizer, text.template, model_cache_dir() / model.info.sha256, notes)
