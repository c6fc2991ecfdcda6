"""Python face of the native kernels: packing weights, single operations, the pass of a llama-family model.

Knows nothing of files or text. Invariant: what it computes follows the arithmetic contract (NOTES.md) to the last bit
on every variant, thread count and number of rows; what a caller passes wrongly is an `EngineError`, never a crash.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from editor_engine.kernels import _native
from editor_engine.kernels._native import CONTRACT_VERSION, LAYOUT_VERSION, MAX_ROWS

__all__ = [
    "CONTRACT_VERSION",
    "LAYOUT_VERSION",
    "MAX_ROWS",
    "PACKABLE_TYPES",
    "Model",
    "ModelShape",
    "PackedTensor",
    "RawTensor",
    "dequantise",
    "finite",
    "pack",
    "packed_bytes",
    "unpack",
    "variant_notes",
    "variants",
]

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

PACKABLE_TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
"""GGUF types that linear layers may have: the packable ones of contract.h, by name."""


@dataclass(frozen=True)
class PackedTensor:
    """A matrix of a linear layer in the packed layout."""

    type: str
    """GGUF type name, one of PACKABLE_TYPES."""
    n: int
    """Outputs."""
    k: int
    """Inputs."""
    data: Bytes
    """`packed_bytes(type, n, k)` bytes; may be a read-only map."""


@dataclass(frozen=True)
class RawTensor:
    """A matrix in GGUF's own bytes; what an embedding is read from."""

    type: str
    """GGUF type name: one of PACKABLE_TYPES, F16 or F32."""
    n: int
    """Rows."""
    k: int
    """Values of a row."""
    data: Bytes
    """The tensor's bytes in the file; may be a read-only map."""


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a llama-family model."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    rms_eps: float
    rope_base: float
    rope_halves: bool
    """True rotates (i, i + head_dim/2), as `qwen2` files need; False (2i, 2i + 1), as `llama` files need."""
    rope_factors: Floats | None
    """head_dim/2 divisors of the frequencies (`rope_freqs.weight`); None for ones."""
    context: int
    """Most tokens the KV cache holds; memory is taken as tokens come."""


def variants() -> list[str]:
    """Kernel variants that run here and passed their self-test, best first; `scalar` is always among them."""
    return _native.variants()


def variant_notes() -> list[str]:
    """One sentence per variant that the processor has but the self-test refused; normally empty."""
    return _native.variant_notes()


def packed_bytes(type_name: str, n: int, k: int) -> int:
    """Bytes of an n x k matrix in the packed layout.

    Raises UnsupportedModelError for a type without kernels, ModelFileError for k not in whole blocks.
    """
    return _native.packed_bytes(type_name, n, k)


def pack(raw: RawTensor, *, threads: int = 1, out: Bytes | None = None) -> PackedTensor:
    """Repack a matrix for the kernels; loses nothing. `out` takes the bytes, a new array when None.

    Raises UnsupportedModelError for a type without kernels, ModelFileError for bytes that do not fit the shape or a
    block scale that is NaN or infinite.
    """
    size = packed_bytes(raw.type, raw.n, raw.k)
    if out is None:
        out = np.empty(size, dtype=np.uint8)
    _native.pack_into(raw.type, raw.data, raw.n, raw.k, out, threads)
    return PackedTensor(raw.type, raw.n, raw.k, out)


def unpack(packed: PackedTensor) -> Floats:
    """The [n, k] values GGUF defines, bit for bit. Slow: for tests and reference twins."""
    return _native.unpack(packed.type, packed.data, packed.n, packed.k)


def dequantise(raw: RawTensor) -> Floats:
    """The [n, k] values GGUF defines, read from the file's own bytes. Slow: for tests and reference twins."""
    return _native.dequantise(raw.type, raw.data, raw.n, raw.k)


def finite(raw: RawTensor) -> bool:
    """No block scale, or value of a float matrix, is NaN or infinite.

    Raises ModelFileError for bytes that do not fit the shape.
    """
    return _native.finite(raw.type, raw.data, raw.n, raw.k)


class Model:
    """A loaded model with one KV cache; a pass runs on native threads with the interpreter lock released."""

    def __init__(
        self,
        shape: ModelShape,
        tensors: Mapping[str, PackedTensor | RawTensor | Floats],
        *,
        threads: int,
        isa: str | None = None,
    ) -> None:
        """Borrow `tensors` (kept alive, not copied), by their GGUF names.

        `token_embd.weight` is a RawTensor; `output.weight` and the linear layers PackedTensors; norms and the optional
        biases float32 vectors. A tied head is the packed embedding under `output.weight`. `isa` None takes the best.

        Raises ModelFileError naming a tensor that is missing or has the wrong size, UnsupportedModelError,
        OutOfMemoryError, RequestError for a variant this machine cannot use.
        """
        plain: dict[str, tuple[str, Bytes] | Floats] = {}
        for name, tensor in tensors.items():
            plain[name] = tensor if isinstance(tensor, np.ndarray) else (tensor.type, tensor.data)
        factors = None if shape.rope_factors is None else [float(f) for f in shape.rope_factors]
        self._native = _native.Model(
            layers=shape.layers,
            hidden=shape.hidden,
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            ffn=shape.ffn,
            vocab=shape.vocab,
            rms_eps=shape.rms_eps,
            rope_base=shape.rope_base,
            rope_halves=shape.rope_halves,
            rope_factors=factors,
            context=shape.context,
            tensors=plain,
            threads=threads,
            isa=isa or "",
        )

    @property
    def length(self) -> int:
        """Tokens in the KV cache."""
        return self._native.length

    @property
    def isa(self) -> str:
        """Variant in use."""
        return self._native.isa

    def forward(self, tokens: Sequence[int], head_rows: int) -> list[int]:
        """Append 1 to MAX_ROWS tokens; the greedy next id after each of the last `head_rows` (0 computes no head).

        Raises CancelledError, NumericsError naming the layer, ContextOverflowError, RequestError; the cache is then as
        before the call.
        """
        return self._native.forward(list(tokens), head_rows)

    def forward_logits(self, tokens: Sequence[int], head_rows: int) -> tuple[list[int], Floats]:
        """As `forward`, with the float32 logits [head_rows, vocab] beside the ids."""
        return self._native.forward_logits(list(tokens), head_rows)

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on. Raises RequestError beyond the cache."""
        self._native.truncate(length)

    def cache_bytes(self, length: int) -> int:
        """Bytes of a copy of `length` tokens of the cache. Raises RequestError for a length no cache can have."""
        return self._native.cache_bytes(length)

    def export_cache(self, length: int) -> Bytes:
        """A copy of the cache's first `length` tokens, all layers. Raises RequestError when there are fewer."""
        out = np.empty(self.cache_bytes(length), dtype=np.uint8)
        self._native.export_cache(length, out)
        return out

    def import_cache(self, length: int, copy: Bytes) -> None:
        """Make the cache the `length` tokens of an `export_cache` of a model with the same weights.

        Raises RequestError for bytes of another size, ContextOverflowError; the cache is then as before the call.
        """
        self._native.import_cache(length, copy)

    def interrupt(self) -> None:
        """Make the running and every later pass raise CancelledError, until `resume`; from any thread."""
        self._native.interrupt()

    def resume(self) -> None:
        """Undo `interrupt`; waits (milliseconds) for a pass that is being stopped."""
        self._native.resume()
