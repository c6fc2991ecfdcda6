"""From a path to a model that runs and the text that goes with it: a GGUF file for the native kernels, a folder for
transformers.

Knows the two kinds of path and nothing of what is in them. Invariant: what an engine, a draft model or a benchmark
loads is loaded here, so the same path gives the same model everywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from editor_engine.config import EngineConfig, model_cache_dir
from editor_engine.models.target import TargetModel
from editor_engine.text.tokenizer import Tokenizer, load_tokenizer

OnPacked = Callable[[int, int], None]
"""Told (done, total) while weights are packed."""


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


def load(config: EngineConfig, on_packed: OnPacked = lambda done, total: None) -> Loaded:
    """Load what is at `config.model_path`.

    Raises ModelMissingError, ModelFileError, UnsupportedModelError, OutOfMemoryError or RequestError.
    """
    return _load_folder(config) if config.model_path.is_dir() else _load_file(config, on_packed)


def _load_file(config: EngineConfig, on_packed: OnPacked) -> Loaded:
    from editor_engine.models.native.load import load_native  # the extension and numpy: 0.15 s

    loaded = load_native(config, on_packed=on_packed)
    tokenizer = load_tokenizer(loaded.metadata, loaded.cache_folder)
    template = loaded.metadata.get("tokenizer.chat_template")
    template = template if isinstance(template, str) else None
    return Loaded(loaded.model, tokenizer, template, loaded.cache_folder, loaded.notes)


def _load_folder(config: EngineConfig) -> Loaded:
    from editor_engine.models.hf.checkpoint import open_folder
    from editor_engine.text.folder_tokenizer import load_folder_tokenizer

    checkpoint = open_folder(config.model_path, remote_code=config.hf.remote_code)
    text = load_folder_tokenizer(checkpoint.folder, rows=checkpoint.rows)  # first: it may refuse, and takes no memory

    from editor_engine.models.hf.load import load_hf  # torch and transformers: seconds, once the folder is worth it

    model, notes = load_hf(checkpoint, config)
    return Loaded(model, text.tokenizer, text.template, model_cache_dir() / model.info.sha256, notes)
