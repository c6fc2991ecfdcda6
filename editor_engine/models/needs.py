"""What a model takes of memory, by the headers of its files and the options of its load: looked at, never loaded.

Knows both kinds of models and which of them goes where; the arithmetic is `editor_engine.memory`. No torch. Invariant:
what is planned here is what the load of the same options allocates, and a load is refused by its plan before anything
large is allocated.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from editor_engine.config import EngineConfig, HfOptions
from editor_engine.gpus import Gpu, see_gpus
from editor_engine.machine import available_bytes
from editor_engine.memory import CPU, WORKSPACE_BYTES, Choice, MemoryPlan, Need, refuse_if_short
from editor_engine.models.context import context_of
from editor_engine.models.hf.checkpoint import Checkpoint, open_folder
from editor_engine.models.hf.layers import layers_of, layers_there
from editor_engine.models.hf.sizes import ITEM_BYTES, chosen_dtype, stored_dtype, weights_bytes
from editor_engine.models.hf.sizes import WORKSPACE_BYTES as HF_WORKSPACE_BYTES
from editor_engine.models.native.checkpoint import Checkpoint as NativeCheckpoint
from editor_engine.models.native.checkpoint import open_checkpoint
from editor_engine.quant.gguf import GgufFile

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")


@dataclass(frozen=True)
class Machine:
    """What can be taken here."""

    cpu_free: int | None
    """Bytes; None: not said."""
    gpus: tuple[Gpu, ...] = ()

    def after(self, needs: Sequence[Need], tokens: int) -> "Machine":
        """What is left once these have been loaded."""
        taken = {place: sum(need.bytes(tokens) for need in needs if need.place == place) for place in self.free()}
        gpus = tuple(replace(gpu, free=_less(gpu.free, taken[gpu.place])) for gpu in self.gpus)
        return Machine(_less(self.cpu_free, taken[CPU]), gpus)

    def free(self) -> dict[str, int | None]:
        """By place."""
        return {CPU: self.cpu_free, **{gpu.place: gpu.free for gpu in self.gpus}}


def _less(free: int | None, taken: int) -> int | None:
    return None if free is None else max(0, free - taken)


def this_machine(config: EngineConfig) -> Machine:
    """The machine as far as a load of `config` has to do with it: only folders go to a graphics processor."""
    folders = any(path is not None and path.is_dir() for path in (config.model_path, config.draft_path))
    return Machine(available_bytes(), see_gpus() if folders and config.hf.device != CPU else ())


def plan_load(config: EngineConfig, machine: Machine) -> MemoryPlan:
    """The plan of a load. Raises what reading the headers raises, and OptionError for an impossible context."""
    needs, context = _needs(config.model_path, config, machine)
    if config.draft_path is not None:
        drafts = draft_needs(config.draft_path, config, machine.after(needs, context))
        needs += tuple(_beside(need, needs) for need in drafts)
    return MemoryPlan(
        needs,
        context,
        asked=config.context_length is not None,
        copies=config.prefix_bytes,
        free=machine.free(),
        cap=config.max_memory,
    )


def _beside(need: Need, others: Sequence[Need]) -> Need:
    """Where another model has brought the libraries already, only activations are left."""
    here = any(other.place == need.place and other.workspace >= need.workspace for other in others)
    return replace(need, workspace=min(need.workspace, WORKSPACE_BYTES)) if here else need


def draft_needs(path: Path, config: EngineConfig, machine: Machine) -> tuple[Need, ...]:
    """What a draft model takes."""
    needs, limit = _needs(path, draft_config(path, config), machine)
    return tuple(replace(need, drafts=True, most_tokens=limit) for need in needs)


def draft_config(path: Path, config: EngineConfig) -> EngineConfig:
    """How the draft model at `path` is loaded beside the model of `config`: its cache is made for its own context, and
    of layers for a graphics processor it gives no more than it has."""
    hf = config.hf
    if hf.gpu_layers is not None and path.is_dir():
        layers = layers_of(open_folder(path, remote_code=hf.remote_code))
        hf = replace(hf, gpu_layers=min(hf.gpu_layers, layers))
    return replace(config, model_path=path, draft_path=None, context_length=None, hf=hf)


def refuse_what_does_not_fit(
    config: EngineConfig,
    machine: Machine | None = None,
    others: Callable[[MemoryPlan], Iterator[Choice]] = lambda plan: iter(()),
) -> MemoryPlan:
    """The plan of a load that fits; `others` are further choices for one that does not. Raises OutOfMemoryError and
    what `plan_load` raises."""
    machine = machine or this_machine(config)
    plan = plan_load(config, machine)
    refuse_if_short(plan, lambda: (*choices(config, machine), *others(plan)))
    return plan


def choices(config: EngineConfig, machine: Machine) -> Iterator[Choice]:
    """Other options for the same models: a folder can be loaded with smaller weights."""
    if not config.model_path.is_dir() or config.hf.quantise is not None:
        return
    stored = stored_dtype(open_folder(config.model_path, remote_code=config.hf.remote_code))
    smaller = [("4-bit weights (--quantise nf4)", replace(config.hf, quantise="nf4"))]
    if config.hf.dtype == "auto" and stored != "float32":
        smaller.insert(0, (f"weights as they are stored (--dtype {stored})", replace(config.hf, dtype=stored)))
    for words, options in smaller:
        yield Choice(words, plan_load(replace(config, hf=options), machine))


def made_for(path: Path, config: EngineConfig) -> int:
    """Tokens of context that a model was made for. Raises what reading the headers raises."""
    if path.is_dir():
        return open_folder(path, remote_code=config.hf.remote_code).context_length
    return open_checkpoint(GgufFile(path)).config.context_length


def _needs(path: Path, config: EngineConfig, machine: Machine) -> tuple[tuple[Need, ...], int]:
    """(what a model takes, tokens its cache may grow to)."""
    if not path.is_dir():
        native = open_checkpoint(GgufFile(path))
        return (native_need(native),), context_of(native.config, config.context_length)
    folder = open_folder(path, remote_code=config.hf.remote_code)
    context = context_of(folder, config.context_length)
    return folder_needs(folder, config.hf, context, machine), context


def native_need(checkpoint: NativeCheckpoint) -> Need:
    """Of a GGUF file, which runs on the CPU."""
    return Need(checkpoint.config.name, checkpoint.weights_bytes, checkpoint.config.kv_bytes_per_token)


def folder_needs(checkpoint: Checkpoint, options: HfOptions, context: int, machine: Machine) -> tuple[Need, ...]:
    """Of a folder, on the device of the options; `auto` is a graphics processor that has room for all of it.

    Raises OptionError for layers that it does not have.
    """
    wanted = layers_there(options, layers_of(checkpoint))
    if wanted == 0:
        return _on(checkpoint, options, CPU)
    if options.device == "auto":
        if not machine.gpus:
            return _on(checkpoint, options, CPU)
        needs = _on(checkpoint, options, machine.gpus[0].place)
        whole = MemoryPlan(needs, context, asked=True, free=machine.free())
        return needs if wanted is not None or whole.fits else _on(checkpoint, options, CPU)
    return _on(checkpoint, options, "cuda:0" if options.device == "cuda" else options.device)


def _on(checkpoint: Checkpoint, options: HfOptions, place: str) -> tuple[Need, ...]:
    dtype = chosen_dtype(checkpoint, options, place.partition(":")[0])
    cache = (checkpoint.kv_elements_per_token or 0) * ITEM_BYTES[dtype]
    whole = weights_bytes(checkpoint, options, dtype)
    if place == CPU:
        return (Need(checkpoint.name, whole, cache, HF_WORKSPACE_BYTES),)
    numbers = {name: int(found[1]) for name in checkpoint.tensors if (found := _LAYER.search(name))}
    layers = layers_of(checkpoint)
    if options.gpu_layers is None or options.gpu_layers >= layers:
        return (Need(checkpoint.name, whole, cache, HF_WORKSPACE_BYTES, place),)
    first = {name: checkpoint.tensors[name] for name, number in numbers.items() if number < options.gpu_layers}
    weights = weights_bytes(replace(checkpoint, tensors=first), options, dtype)
    cached = cache * options.gpu_layers // layers
    return (
        Need(checkpoint.name, weights, cached, HF_WORKSPACE_BYTES, place),
        Need(checkpoint.name, whole - weights, cache - cached, HF_WORKSPACE_BYTES),
    )
