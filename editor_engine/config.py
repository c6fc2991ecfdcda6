"""Where the engine keeps things and how it is asked to run. Light: no numpy, no C++.

The folders follow XDG on Linux (`XDG_DATA_HOME`, `XDG_CACHE_HOME`); nothing is created here.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs


def data_dir() -> Path:
    """Folder of the weights' parent: data/redraft."""
    return Path(platformdirs.user_data_dir("redraft"))


def models_dir() -> Path:
    """Folder of the weights: data/redraft/models."""
    return data_dir() / "models"


def model_cache_dir() -> Path:
    """Folder of what is rebuilt when lost (packed weights, tokenizers): cache/redraft/models."""
    return Path(platformdirs.user_cache_dir("redraft")) / "models"


def socket_path() -> Path:
    """Where `redraft serve` listens unless it is told otherwise: XDG_RUNTIME_DIR/redraft, or a folder of this user's
    under the temporary directory. Whoever connects or listens there checks whose the folder is."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "redraft" if runtime else Path(tempfile.gettempdir()) / f"redraft-{os.geteuid()}"
    return folder / "serve.sock"


def default_threads() -> int:
    """Processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class EngineConfig:
    """How to load a model; what changes the numbers is fixed here, at load, and never after."""

    model_path: Path
    """The GGUF file."""
    threads: int = 0
    """Worker threads; 0 takes every processor this process may use. Never changes a bit of the output."""
    context_length: int | None = None
    """Most tokens in the KV cache; None takes the model's own limit, at most 32768."""
    prefix_bytes: int = 0
    """Memory for copies of the KV cache of other conversations, so that those that take turns are not prefilled anew;
    0 keeps none. Never changes a bit of the output."""
    isa: str | None = None
    """Kernel variant by name (`scalar`, `avx2`); None takes the best this processor has."""
