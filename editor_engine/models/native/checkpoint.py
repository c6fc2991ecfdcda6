"""The tensors of a model file, checked against what its configuration asks for.

Knows names and shapes, nothing of packing or arithmetic. Invariant: a checkpoint that was made has every tensor the
forward pass reads, of the right shape and a type it runs, and none it would ignore.
"""

from dataclasses import dataclass

from editor_engine.errors import ModelFileError, UnsupportedModelError
from editor_engine.kernels import PACKABLE_TYPES
from editor_engine.models.native.config import NativeConfig, read_config
from editor_engine.quant.gguf import GgufFile, GgufTensor

LINEAR_TYPES = frozenset(PACKABLE_TYPES)
"""Types a linear layer may have."""

EMBEDDING_TYPES = LINEAR_TYPES | {"F16", "F32"}
"""Types the token embedding may have; a head tied to it needs one of `LINEAR_TYPES`."""

EMBEDDING = "token_embd.weight"
HEAD = "output.weight"
ROPE_FACTORS = "rope_freqs.weight"


@dataclass(frozen=True)
class Checkpoint:
    """A model file and what it is made of."""

    file: GgufFile
    config: NativeConfig
    vocab_size: int
    """Rows of the embedding and of the head."""
    linears: tuple[str, ...]
    """Names of all matrices that are multiplied with, in the order of the pass; a tied head is EMBEDDING, last."""
    vectors: tuple[str, ...]
    """Names of norms, biases and, where there, ROPE_FACTORS; all F32."""
    tied: bool
    """The head is the embedding."""

    @property
    def weights_bytes(self) -> int:
        """Of all matrices."""
        return sum(self.file.tensors[name].nbytes for name in {*self.linears, EMBEDDING})

    @property
    def biased(self) -> bool:
        """q, k and v have biases."""
        return "blk.0.attn_q.bias" in self.vectors


def open_checkpoint(file: GgufFile) -> Checkpoint:
    """Reads the configuration and checks the tensor table. Raises ModelFileError, UnsupportedModelError."""
    config = read_config(file.metadata)
    embedding = file.tensors.get(EMBEDDING)
    if embedding is None:
        raise ModelFileError(f"{file.path.name} is damaged: it lacks the tensor {EMBEDDING}.")
    if config.layers > len(file.tensors):  # before anything is built per layer
        raise ModelFileError(f"{file.path.name} is damaged: it lacks the tensors of its {config.layers} layers.")
    vocab = embedding.shape[0]
    tokens = file.array_length("tokenizer.ggml.tokens")
    if tokens is not None and tokens > vocab:
        raise ModelFileError(f"{file.path.name} is damaged: it names {tokens} tokens and embeds {vocab}.")
    tied = HEAD not in file.tensors
    matrices, vectors = _expected(config, vocab, tied)
    biases = _bias_names(config)
    there = [name for name in biases if name in file.tensors]
    if config.biased or there:
        vectors |= biases
    if ROPE_FACTORS in file.tensors:
        vectors[ROPE_FACTORS] = (config.head_dim // 2,)
    expected = matrices | vectors
    for name, shape in expected.items():
        _check(file, name, shape)
    for name in file.tensors:
        if name not in expected:
            raise UnsupportedModelError(f"{file.path.name} has the tensor {name}, which this engine does not apply.")
    if config.vocab_size not in (None, vocab):
        raise ModelFileError(f"{file.path.name} is damaged: it promises {config.vocab_size} tokens and embeds {vocab}.")
    linears = tuple(name for name in matrices if name != EMBEDDING) + ((EMBEDDING,) if tied else ())
    for name in linears:
        _check_type(file.path.name, file.tensors[name], LINEAR_TYPES)
    _check_type(file.path.name, embedding, EMBEDDING_TYPES)
    for name in vectors:
        _check_type(file.path.name, file.tensors[name], frozenset({"F32"}))
    return Checkpoint(file, config, vocab, linears, tuple(vectors), tied)


def _expected(
    config: NativeConfig, vocab: int, tied: bool
) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Names and shapes ([N, K] or [N]) of the matrices and the vectors every model has."""
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    matrices: dict[str, tuple[int, ...]] = {EMBEDDING: (vocab, config.hidden)}
    vectors: dict[str, tuple[int, ...]] = {"output_norm.weight": (config.hidden,)}
    for layer in range(config.layers):
        blk = f"blk.{layer}."
        vectors |= {f"{blk}attn_norm.weight": (config.hidden,), f"{blk}ffn_norm.weight": (config.hidden,)}
        matrices |= {
            f"{blk}attn_q.weight": (q, config.hidden),
            f"{blk}attn_k.weight": (kv, config.hidden),
            f"{blk}attn_v.weight": (kv, config.hidden),
            f"{blk}attn_output.weight": (config.hidden, q),
            f"{blk}ffn_gate.weight": (config.ffn, config.hidden),
            f"{blk}ffn_up.weight": (config.ffn, config.hidden),
            f"{blk}ffn_down.weight": (config.hidden, config.ffn),
        }
    if not tied:
        matrices[HEAD] = (vocab, config.hidden)
    return matrices, vectors


def _bias_names(config: NativeConfig) -> dict[str, tuple[int, ...]]:
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    return {
        f"blk.{layer}.attn_{part}.bias": (width,)
        for layer in range(config.layers)
        for part, width in (("q", q), ("k", kv), ("v", kv))
    }


def _check(file: GgufFile, name: str, shape: tuple[int, ...]) -> None:
    tensor = file.tensors.get(name)
    if tensor is None:
        raise ModelFileError(f"{file.path.name} is damaged: it lacks the tensor {name}.")
    if tensor.shape != shape:
        raise ModelFileError(
            f"{file.path.name} is damaged: the tensor {name} has the shape {list(tensor.shape)}, not {list(shape)}."
        )


def _check_type(file_name: str, tensor: GgufTensor, allowed: frozenset[str]) -> None:
    if tensor.type_name not in allowed:
        raise UnsupportedModelError(
            f"{file_name} has {tensor.name} as {tensor.type_name}; this engine runs {', '.join(sorted(allowed))} there."
        )
