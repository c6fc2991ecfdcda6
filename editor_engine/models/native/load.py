"""From a GGUF file to a model that runs: check, hash, pack (once) and hand the tensors to the kernels.

Knows the order of a load and nothing of arithmetic. Invariant: nothing large is allocated before the file is known
to be one this engine runs and to fit; what went other than planned, but not wrong, is in the notes.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from editor_engine import kernels
from editor_engine.config import EngineConfig, default_threads, model_cache_dir
from editor_engine.errors import ModelFileError
from editor_engine.machine import available_bytes
from editor_engine.memory import CPU, MemoryPlan, refuse_if_short
from editor_engine.models.context import context_of
from editor_engine.models.native.checkpoint import EMBEDDING, HEAD, ROPE_FACTORS, Checkpoint, open_checkpoint
from editor_engine.models.native.model import NativeModel
from editor_engine.models.needs import native_need
from editor_engine.models.target import ModelInfo
from editor_engine.quant.file_hash import file_sha256
from editor_engine.quant.gguf import GgufFile
from editor_engine.quant.packed_cache import Matrix, Packed, packed_weights
from editor_engine.store.smaller import smaller_models

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadedModel:
    """A model that runs, and what else its file and this load have to say."""

    model: NativeModel
    metadata: Mapping[str, object]
    """Of the file: the tokenizer and the chat template are in it."""
    cache_folder: Path
    """Where things derived from this file are kept; may not exist, may not be writable."""
    notes: tuple[str, ...]
    """Sentences for the user: what works, but slower or other than wished."""


def load_native(
    config: EngineConfig,
    available: Callable[[], int | None] = available_bytes,
    on_packed: Callable[[int, int], None] = lambda done, total: None,
) -> LoadedModel:
    """Load the GGUF file of `config`; `available` says how many bytes of memory may be taken (None: unknown).

    `on_packed` is told (matrices packed, matrices) when they are not in the cache yet, which takes seconds.

    Raises ModelMissingError, ModelFileError, UnsupportedModelError, OutOfMemoryError, RequestError.
    """
    started = time.perf_counter()
    file = GgufFile(config.model_path)
    checkpoint = open_checkpoint(file)
    _check_vectors(checkpoint)
    context = context_of(checkpoint.config, config.context_length)
    need = native_need(checkpoint)
    asked = config.context_length is not None
    plan = MemoryPlan((need,), context, asked, config.prefix_bytes, {CPU: available()}, config.max_memory)
    refuse_if_short(plan, lambda: smaller_models(plan))

    threads = config.threads or default_threads()
    sha256 = file_sha256(file.path, file.status, file.stretches(), model_cache_dir() / "hashes")
    folder = model_cache_dir() / sha256
    packed = _packed(checkpoint, folder, sha256, threads, on_packed)
    core = kernels.Model(
        _shape(checkpoint, context), _tensors(checkpoint, packed.tensors), threads=threads, isa=config.isa
    )
    info = ModelInfo(
        name=checkpoint.config.name,
        architecture=checkpoint.config.architecture,
        sha256=sha256,
        vocab_size=checkpoint.vocab_size,
        context_length=context,
        device="cpu",
        threads=threads,
        isa=core.isa,
        contract_version=kernels.CONTRACT_VERSION,
        weights_bytes=need.weights,
        cache_bytes_per_token=need.cache_per_token,
        loaded_as=config.loaded_as,
    )
    log.info("loaded %s in %.2f s", file.path, time.perf_counter() - started)
    notes = ([packed.note] if packed.note else []) + kernels.variant_notes()
    return LoadedModel(NativeModel(core, info, file.release), file.metadata, folder, tuple(notes))


def _packed(
    checkpoint: Checkpoint, folder: Path, sha256: str, threads: int, on_packed: Callable[[int, int], None]
) -> Packed:
    """The matrices that are multiplied with, from the cache in `folder` or packed now. Raises ModelFileError."""
    matrices = [_matrix(checkpoint, name) for name in checkpoint.linears]
    numbers = {matrix.name: number for number, matrix in enumerate(matrices, start=1)}

    def pack(matrix: Matrix) -> npt.NDArray[np.uint8]:
        if numbers[matrix.name] == 1 and not checkpoint.tied:  # else it is packed itself
            _check_embedding(checkpoint)
        data = _pack(matrix, threads)
        checkpoint.file.release()  # or the file would be in memory beside what is packed
        on_packed(numbers[matrix.name], len(matrices))
        return data

    return packed_weights(folder, sha256, kernels.LAYOUT_VERSION, matrices, pack)


def _matrix(checkpoint: Checkpoint, name: str) -> Matrix:
    tensor = checkpoint.file.tensors[name]
    outputs, inputs = tensor.shape
    return Matrix(name, tensor.type_name, outputs, inputs, checkpoint.file.raw(name))


def _check_vectors(checkpoint: Checkpoint) -> None:
    """Norms, biases and rope factors are numbers; the factors, which divide, are positive."""
    for name in checkpoint.vectors:
        vector = checkpoint.file.vector(name)
        if not np.isfinite(vector).all():
            raise ModelFileError(f"The tensor {name} is damaged: a value is NaN or infinite.")
        if name == ROPE_FACTORS and not (vector > 0).all():
            raise ModelFileError(f"The tensor {name} is damaged: a factor is zero or negative.")


def _check_embedding(checkpoint: Checkpoint) -> None:
    """As packing checks the other matrices, once for a file."""
    matrix = _matrix(checkpoint, EMBEDDING)
    if not kernels.finite(kernels.RawTensor(matrix.type_name, matrix.outputs, matrix.inputs, matrix.raw)):
        raise ModelFileError(f"The tensor {EMBEDDING} is damaged: a block scale or a value is NaN or infinite.")


def _pack(matrix: Matrix, threads: int) -> npt.NDArray[np.uint8]:
    raw = kernels.RawTensor(matrix.type_name, matrix.outputs, matrix.inputs, matrix.raw)
    try:
        return kernels.pack(raw, threads=threads).data
    except ModelFileError as error:
        raise ModelFileError(f"The tensor {matrix.name} is damaged: {error}.") from error


def _shape(checkpoint: Checkpoint, context: int) -> kernels.ModelShape:
    config = checkpoint.config
    return kernels.ModelShape(
        layers=config.layers,
        hidden=config.hidden,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        ffn=config.ffn,
        vocab=checkpoint.vocab_size,
        rms_eps=config.rms_eps,
        rope_base=config.rope_base,
        rope_halves=not config.rope_pairs,
        rope_factors=checkpoint.file.vector(ROPE_FACTORS) if ROPE_FACTORS in checkpoint.vectors else None,
        context=context,
    )


def _tensors(
    checkpoint: Checkpoint, packed: Mapping[str, npt.NDArray[np.uint8]]
) -> dict[str, kernels.PackedTensor | kernels.RawTensor | npt.NDArray[np.float32]]:
    """Everything the kernels read, by GGUF name."""
    file = checkpoint.file
    tensors: dict[str, kernels.PackedTensor | kernels.RawTensor | npt.NDArray[np.float32]] = {}
    for name, data in packed.items():
        matrix = _matrix(checkpoint, name)
        tensors[name] = kernels.PackedTensor(matrix.type_name, matrix.outputs, matrix.inputs, data)
    tensors[HEAD] = tensors[EMBEDDING if checkpoint.tied else HEAD]
    embedding = _matrix(checkpoint, EMBEDDING)
    tensors[EMBEDDING] = kernels.RawTensor(embedding.type_name, embedding.outputs, embedding.inputs, embedding.raw)
    tensors.update({name: file.vector(name) for name in checkpoint.vectors if name != ROPE_FACTORS})
    return tensors
