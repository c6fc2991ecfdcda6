"""Loads a model for measuring: the bare target, its tokenizer, and the engine over both, all sharing one cache.

Invariant: only what `Engine.load` does, taken apart, since a benchmark drives the parts one by one.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from editor_engine import kernels
from editor_engine.config import EngineConfig, model_cache_dir
from editor_engine.decode.cost_memory import costs_file, read_costs
from editor_engine.decode.draft_pair import DraftPair
from editor_engine.draft.pass_cost import PassCost
from editor_engine.engine import Engine
from editor_engine.errors import RequestError, UnsupportedModelError
from editor_engine.loading import load, load_pair, refuse_or_note
from editor_engine.models.needs import made_for
from editor_engine.models.target import TargetModel
from editor_engine.quant.file_hash import file_sha256
from editor_engine.quant.gguf import GgufFile
from editor_engine.text.tokenizer import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class BenchModel:
    """A loaded model in parts."""

    model: TargetModel
    tokenizer: Tokenizer
    template: str
    """Chat template; empty when the file has none."""
    notes: tuple[str, ...]
    """What the load has to say."""
    cache_folder: Path
    """The model file's own: what passes cost is remembered there."""
    pair: DraftPair | None = None
    """The draft model, where one was named."""

    def engine(self) -> Engine:
        """An engine over this very model. Raises UnsupportedModelError when the file has no chat template."""
        if not self.template:
            raise UnsupportedModelError("The model file has no chat template, so it cannot be given instructions.")
        return Engine(self.model, self.tokenizer, self.template, notes=self.notes, cache_folder=self.cache_folder)


def load_parts(config: EngineConfig) -> BenchModel:
    """Load a GGUF file or a folder, with a context that is cut to what the model was made for.

    Raises what `Engine.load` raises.
    """
    wanted = config.context_length
    most = made_for(config.model_path, config)
    config = replace(config, context_length=None if wanted is None else min(wanted, most))
    notes = refuse_or_note(config)
    loaded = load(config)
    pair, pair_notes = load_pair(config, loaded)
    return BenchModel(
        loaded.model,
        loaded.tokenizer,
        loaded.template or "",
        (*notes, *loaded.notes, *pair_notes),
        loaded.cache_folder,
        pair,
    )


def chosen_isa(isa: str | None) -> str:
    """`isa`, or the best kernel variant here. Raises RequestError for one that does not run here."""
    here = kernels.variants()
    if isa is not None and isa not in here:
        raise RequestError(f"The kernel variant {isa!r} does not run here; {', '.join(here)} do.")
    return isa or here[0]


def load_file_tokenizer(path: Path) -> tuple[Tokenizer, str]:
    """(tokenizer, SHA-256 of the file) without loading any weights. Raises ModelMissingError and ModelFileError."""
    file = GgufFile(path)
    sha256 = file_sha256(file.path, file.status, file.stretches(), model_cache_dir() / "hashes")
    return load_tokenizer(file.metadata, model_cache_dir() / sha256), sha256


def measured_curve(sha256: str, threads: int, isa: str) -> Callable[[], PassCost]:
    """What passes of a model file took on this machine under these conditions, a fresh copy at each call.

    Read once, so that a replay does not change while something else is measured. Raises RequestError when nothing was.
    """
    table = PassCost.shipped(isa)
    cost = read_costs(costs_file(model_cache_dir() / sha256, kernels.CONTRACT_VERSION, threads, isa, table), table)
    if cost is None:
        raise RequestError(
            f"Nothing was measured yet for this model with {threads} threads and the kernel variant {isa}; "
            "`redraft bench edit` with the same options does it, and so does any edit."
        )
    return partial(deepcopy, cost)
