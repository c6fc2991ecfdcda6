"""From a checked folder to a model that runs: packages, device, arithmetic, memory, weights, and a try of its cache.

Knows the order of a load; how each step is done is its own module's. Invariant: nothing large is allocated before what
was asked for is known to be possible here and to fit; a model that is handed out has had its cache rewound once and
gave the same bits again.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from editor_engine.config import EngineConfig, default_threads
from editor_engine.errors import EngineError, ModelFileError, OutOfMemoryError, UnsupportedModelError
from editor_engine.gpus import Gpu
from editor_engine.machine import available_bytes
from editor_engine.memory import CPU, MemoryPlan, refuse_if_short, size_words
from editor_engine.models.context import context_of
from editor_engine.models.hf import packages
from editor_engine.models.hf.checkpoint import Checkpoint
from editor_engine.models.hf.layers import layers_of
from editor_engine.models.target import ModelInfo

if TYPE_CHECKING:  # torch: seconds, and missing packages are refused before it
    from editor_engine.models.hf.arithmetic import Arithmetic
    from editor_engine.models.hf.devices import Cuda, Place
    from editor_engine.models.hf.model import HfModel
    from editor_engine.models.hf.network import Network
    from editor_engine.models.needs import Machine

log = logging.getLogger(__name__)

CONTRACT_VERSION = 0
"""There is no contract on the order of additions: it is the libraries' own."""


def load_hf(
    checkpoint: Checkpoint, config: EngineConfig, available: Callable[[], int | None] = available_bytes
) -> tuple["HfModel", tuple[str, ...]]:
    """(model, notes for the user). `available` says how many bytes of memory may be taken (None: unknown).

    Raises ModelFileError, UnsupportedModelError, OutOfMemoryError, RequestError.
    """
    started = time.perf_counter()
    context = context_of(checkpoint, config.context_length)
    packed = config.hf.quantise is not None or checkpoint.config.get("quantization_config") is not None
    packages.require(packed)
    packages.load(packed)
    packages.silence()

    import torch

    from editor_engine.models.hf.arithmetic import check_attention, check_options, choose_arithmetic
    from editor_engine.models.hf.cache import RewindCache
    from editor_engine.models.hf.devices import choose_place, see_cuda
    from editor_engine.models.hf.guard import Guard
    from editor_engine.models.hf.model import HfModel

    check_options(config.hf)
    threads = config.threads or default_threads()
    torch.set_num_threads(threads)
    layers = layers_of(checkpoint)
    cuda = see_cuda()
    choose_place(config.hf, layers, cuda, "")  # a device that is not there is refused before its memory is looked at
    too_small = _refuse_if_short(checkpoint, config, context, _machine(cuda, available))
    place, notes = choose_place(config.hf, layers, cuda, too_small)
    arithmetic = choose_arithmetic(checkpoint, config.hf, place.device)
    check_attention(config.hf, arithmetic, place.device)

    with packages.hushed():
        _refuse_outline(checkpoint, config, context)
        module = _module(checkpoint, config, arithmetic, place)
        limit, limit_notes = _rope_limit(module, context)
        cache = RewindCache.of(module.config, limit)
        network, attention = _network(module, cache, place), str(module.config._attn_implementation)
        vocabulary = _tried(network, checkpoint, config)
    info = ModelInfo(
        name=checkpoint.name,
        architecture=checkpoint.architecture,
        sha256=checkpoint.sha256,
        vocab_size=min(vocabulary, network.embedded),
        context_length=limit,
        device=place.words,
        threads=threads,
        isa=arithmetic.words(attention),
        contract_version=CONTRACT_VERSION,
        backend="transformers",
        guarantee="not guaranteed",
        weights_bytes=int(module.get_memory_footprint()),
        cache_bytes_per_token=cache.bytes_per_token,
        loaded_as=config.loaded_as,
    )
    log.info("loaded %s in %.2f s", checkpoint.folder, time.perf_counter() - started)
    said = (*notes, *limit_notes, *_attention_notes(config, attention))
    return HfModel(network, info, Guard.of(arithmetic.rounding)), said


def _machine(cuda: "Cuda", available: Callable[[], int | None]) -> "Machine":
    """What torch and the system say is free."""
    import torch

    from editor_engine.models.needs import Machine

    names = [str(torch.cuda.get_device_name(number)) for number in range(cuda.count)]
    return Machine(
        available(),
        tuple(Gpu(number, name, *torch.cuda.mem_get_info(number)[::-1]) for number, name in enumerate(names)),
    )


def _refuse_if_short(checkpoint: Checkpoint, config: EngineConfig, context: int, machine: "Machine") -> str:
    """Raise OutOfMemoryError for a plan that does not fit; why `auto` leaves a graphics processor alone, or nothing."""
    from editor_engine.models.needs import folder_needs

    needs = folder_needs(checkpoint, config.hf, context, machine)
    asked = config.context_length is not None
    refuse_if_short(MemoryPlan(needs, context, asked, config.prefix_bytes, machine.free(), config.max_memory))
    is_choice = config.hf.device == "auto" and config.hf.gpu_layers is None
    if not is_choice or not machine.gpus or needs[0].place != CPU:
        return ""
    (whole,) = folder_needs(checkpoint, replace(config.hf, device=machine.gpus[0].place), context, machine)
    return (
        f"The graphics processor has {size_words(machine.gpus[0].free or 0)} free and the model needs "
        f"{size_words(whole.bytes(context), up=True)} with a context of {context} tokens, so it runs on the CPU; "
        "--gpu-layers puts a part of it there, --context-length shortens the context."
    )


def _refuse_outline(checkpoint: Checkpoint, config: EngineConfig, context: int) -> None:
    """Look at the model without its weights. Raises UnsupportedModelError where its cache cannot be rewound, and
    ModelFileError where far more is described than the weights are: transformers would take memory for the rest."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from editor_engine.models.hf.cache import RewindCache

    trusted = checkpoint.remote_code and config.hf.remote_code
    try:
        settings = AutoConfig.from_pretrained(str(checkpoint.folder), local_files_only=True, trust_remote_code=trusted)
        RewindCache.of(settings, context)
        with torch.device("meta"):
            outline = AutoModelForCausalLM.from_config(
                settings, attn_implementation=_attention(config), trust_remote_code=trusted
            )
    except Exception as error:  # whatever transformers finds wrong with the configuration
        raise _refusal(checkpoint, config, error) from error
    described = sum(parameter.numel() for parameter in outline.parameters())
    stored = sum(
        count * (2 if dtype == "U8" else 1) for dtype, count in checkpoint.parameters.items()
    )  # 4 bits, packed
    if described > 2 * stored:  # twice: a head that is the embedding is stored once
        raise ModelFileError(
            f"The configuration of {checkpoint.name} describes {described} numbers and its weights have {stored}; it "
            "is damaged, or of another architecture than its configuration says."
        )


def _attention(config: EngineConfig) -> str | None:
    """As transformers is told: None leaves it to the model."""
    return None if config.hf.attention == "auto" else config.hf.attention


def _module(checkpoint: Checkpoint, config: EngineConfig, arithmetic: "Arithmetic", place: "Place") -> Any:
    """The transformers model, with every weight from the folder. Raises the errors of `load_hf`."""
    import torch
    from transformers import AutoModelForCausalLM

    from editor_engine.models.hf.arithmetic import quantisation_config
    from editor_engine.models.hf.network import no_memory

    try:
        module, report = AutoModelForCausalLM.from_pretrained(
            str(checkpoint.folder),
            dtype=getattr(torch, arithmetic.dtype),
            device_map={"": CPU if place.split else place.device},
            quantization_config=quantisation_config(arithmetic),
            attn_implementation=_attention(config),
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=checkpoint.remote_code and config.hf.remote_code,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are in the report, with names
        )
    except Exception as error:  # whatever transformers, a library below it or the model's own code has to say
        if no_memory(error):
            raise OutOfMemoryError(
                f"Memory ran out while {checkpoint.name} was loaded; take a smaller model."
            ) from error
        raise _refusal(checkpoint, config, error) from error
    _refuse_incomplete(checkpoint, report)
    module.eval()
    return module


def _refusal(checkpoint: Checkpoint, config: EngineConfig, error: Exception, cannot: str = "load") -> EngineError:
    if isinstance(error, EngineError):
        return error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    first = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]  # a heading says nothing alone
    asked = config.hf.attention
    if asked != "auto" and "attention" in first.lower():
        return UnsupportedModelError(f"{checkpoint.name} does not run with {asked} attention; leave it to `auto`.")
    packed = f" packed as {config.hf.quantise}" if config.hf.quantise else ""
    return UnsupportedModelError(f"transformers cannot {cannot} {checkpoint.name}{packed}: {first.rstrip('.')}.")


def _refuse_incomplete(checkpoint: Checkpoint, report: Any) -> None:
    """transformers fills what a checkpoint lacks with random numbers."""
    missing = sorted(report.get("missing_keys", ()))
    if missing:
        raise ModelFileError(
            f"{checkpoint.name} lacks {len(missing)} of its tensors, {missing[0]} first; it is damaged, or of another "
            "architecture than its configuration says."
        )
    for name, stored, expected in sorted(report.get("mismatched_keys", ()), key=str):
        raise ModelFileError(
            f"{checkpoint.name} is damaged: {name} has the shape {list(stored)}, and the configuration says "
            f"{list(expected)}."
        )


def _rope_limit(module: Any, context: int) -> tuple[int, tuple[str, ...]]:
    """Tokens up to which positions are encoded alike in every pass.

    Two ways of stretching a context change the angles of a whole pass by its last position, so a row would see another
    context with a draft behind it than without.
    """
    limit = context
    for part in module.modules():
        kinds = getattr(part, "rope_type", None)
        for kind, settings in _rope_settings(kinds, getattr(getattr(part, "config", None), "rope_parameters", None)):
            if kind in ("dynamic", "longrope"):
                original = settings.get("original_max_position_embeddings") or getattr(
                    part.config, "max_position_embeddings", limit
                )
                limit = min(limit, int(original))
    if limit == context:
        return limit, ()
    return limit, (
        f"The context is {limit} tokens: beyond that this model encodes positions by the length of a pass, and drafts "
        "would change what it sees.",
    )


def _rope_settings(kinds: Any, settings: Any) -> list[tuple[str, Any]]:
    """(type, parameters) of a module, for each type of layer where they differ."""
    if isinstance(kinds, dict):
        return [(kind, (settings or {}).get(name) or {}) for name, kind in kinds.items()]
    return [(kinds, settings or {})] if isinstance(kinds, str) else []


def _network(module: Any, cache: Any, place: "Place") -> "Network":
    import torch

    from editor_engine.models.hf.devices import split
    from editor_engine.models.hf.network import Network

    network = Network(module, cache, torch.device(CPU if place.split else place.device))
    if place.split:
        split(network.layers, place)
    return network


def _tried(network: "Network", checkpoint: Checkpoint, config: EngineConfig) -> int:
    try:
        return try_out(network, checkpoint.name)
    except Exception as error:  # a kernel that does not know these shapes, or the model's own code
        raise _refusal(checkpoint, config, error, "run") from error


def try_out(network: "Network", name: str) -> int:
    """Rewind the cache over other tokens and see the same bits again; the number of logits.

    It finds a state that is not in the cache. What the packages warn of once is said now, where nobody hears it.
    Raises UnsupportedModelError, NumericsError, OutOfMemoryError.
    """
    first, second, third, last = (token % network.embedded for token in (1, 2, 3, 5))

    def after(tokens: Sequence[int]) -> Any:
        network.cache.set_length(0)
        for at in range(0, len(tokens), 2):
            network.run(tokens[at : at + 2], 1)
        return network.run([last], 1)

    once = after([first, second])
    after([first, second, third])
    network.cache.set_length(2)
    again = network.run([last], 1)
    network.cache.set_length(0)
    if not (once == again).all():
        raise UnsupportedModelError(
            f"{name} keeps something of tokens that were taken back, so drafts would change what it writes."
        )
    return int(once.shape[-1])


def _attention_notes(config: EngineConfig, attention: str) -> tuple[str, ...]:
    if config.hf.attention in ("auto", attention):
        return ()
    return (f"The model runs with {attention} attention, not with {config.hf.attention}.",)
