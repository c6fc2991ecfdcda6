"""Where the engine keeps things and how it is asked to run. Light: no numpy, no C++.

The folders follow XDG on Linux (`XDG_DATA_HOME`, `XDG_CACHE_HOME`); nothing is created here.
"""

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

ENGINE_THREAD = "engine in this process"
"""The name of a thread that an engine is loaded and runs on begins so."""


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
class HfOptions:
    """How a folder with a Hugging Face checkpoint is loaded; of no meaning to a GGUF file."""

    dtype: str = "auto"
    """Of the weights and the arithmetic, one of DTYPES; `auto` takes what the checkpoint and the device do well."""
    quantise: str | None = None
    """One of QUANTISATIONS, by bitsandbytes; None loads the weights as they are."""
    compute_dtype: str = "auto"
    """What quantised weights are multiplied in, one of DTYPES; of no meaning without `quantise`."""
    double_quant: bool = False
    """Quantise the scales of nf4 and fp4 as well: less memory."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`."""
    gpu_layers: int | None = None
    """None puts all layers on the device; n the first n decoder layers there and the rest on the CPU."""
    attention: str = "auto"
    """One of ATTENTIONS."""
    remote_code: bool = False
    """Consent to run Python code that the checkpoint brings along."""


DTYPES = ("auto", "float32", "bfloat16", "float16")
QUANTISATIONS = ("nf4", "fp4", "int8")
ATTENTIONS = ("auto", "eager", "sdpa", "flash_attention_2")
DRAFT_RULES = ("same-ids", "rejection")


@dataclass(frozen=True)
class EngineConfig:
    """How to load a model; what changes the numbers is fixed here, at load, and never after."""

    model_path: Path
    """A GGUF file, or a folder with a Hugging Face checkpoint."""
    threads: int = 0
    """Worker threads; 0 takes every processor this process may use. Never changes a bit of the output."""
    context_length: int | None = None
    """Most tokens in the KV cache; None takes the model's own limit, at most 32768."""
    prefix_bytes: int = 0
    """Memory for copies of the KV cache of other conversations, so that those that take turns are not prefilled anew;
    0 keeps none. Never changes a bit of the output."""
    isa: str | None = None
    """Kernel variant by name (`kernels.variants()`); None takes the best this processor has."""
    draft_path: Path | None = None
    """The model that drafts where the file gives nothing to copy, as `model_path`; None drafts from the file only."""
    draft_rule: str = "same-ids"
    """How a sampled reply takes drafts of `draft_path`, one of DRAFT_RULES: only what it would have chosen itself, or
    by the rejection rule, which keeps the distribution and not the tokens of a seed."""
    max_memory: int | None = None
    """Most bytes the load may take with everything it grows into (weights, draft model, cache, copies of it); None:
    what is free."""
    hf: HfOptions = HfOptions()

    @property
    def idle(self) -> tuple[str, ...]:
        """Options of checkpoints that were set and have no effect, because nothing here is one."""
        if any(path is not None and path.is_dir() for path in (self.model_path, self.draft_path)):
            return ()
        standard = asdict(HfOptions())
        return tuple(name for name, value in asdict(self.hf).items() if value != standard[name])

    @property
    def loaded_as(self) -> str:
        """What of this is other than by itself and decides what the engine is to its clients; empty: nothing.

        Threads, kernels and memory are not in it: whatever they are, the tokens are the same.
        """
        ours = {"context_length": self.context_length, "draft_path": self.draft_path, "draft_rule": self.draft_rule}
        defaults = EngineConfig(self.model_path)
        changed = {name: str(value) for name, value in ours.items() if value != getattr(defaults, name)}
        standard = asdict(defaults.hf)
        changed |= {name: str(value) for name, value in asdict(self.hf).items() if value != standard[name]}
        return json.dumps(changed) if changed else ""
