"""What a GGUF file's metadata says of a model, as one frozen record, or a clear refusal.

Knows the two families the native forward runs (`qwen2`, `llama`) and nothing of tensors. Invariant: a setting that
would change the arithmetic is either in the record or the file is refused; an unknown setting of the architecture is
such a setting.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from editor_engine.errors import ModelFileError, UnsupportedModelError

_DEFAULT_ROPE_BASE = 10000.0  # where the file has none, as the GGUF specification says

# Settings under "<architecture>." that are read here.
_READ = frozenset(
    {
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "attention.value_length",
        "attention.layer_norm_rms_epsilon",
        "rope.freq_base",
        "rope.dimension_count",
        "rope.scaling.type",
        "vocab_size",
    }
)
# Settings that change nothing in the one state each may have.
_HARMLESS: Mapping[str, object] = {
    "expert_count": 0,
    "expert_used_count": 0,
    "rope.scale_linear": 1.0,
    "rope.scaling.factor": 1.0,
    "attention.causal": True,
    "attention.sliding_window": 0,
    "pooling_type": 0,
}


@dataclass(frozen=True)
class NativeConfig:
    """Sizes and constants of a model the native forward can run."""

    name: str
    """As the file names itself; the architecture where it does not."""
    architecture: str
    """`qwen2` or `llama`."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    """Divides `heads`."""
    head_dim: int
    """A multiple of 8."""
    ffn: int
    context_length: int
    """The model's own limit, tokens."""
    rms_eps: float
    rope_base: float
    rope_pairs: bool
    """True: rotates inputs 2i and 2i+1 of a head (`llama`); False: i and i + head_dim/2 (`qwen2`)."""
    biased: bool | None
    """Biases on q, k and v: True must be there (`qwen2`), None may be there (`llama`)."""
    vocab_size: int | None
    """None where the metadata does not say; the embedding has it."""

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of KV cache one token takes: fp16 keys and values of all layers."""
        return self.layers * self.kv_heads * self.head_dim * 2 * 2


def read_config(metadata: Mapping[str, object]) -> NativeConfig:
    """The record of a file with `metadata`. Raises UnsupportedModelError, and ModelFileError on nonsense."""
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise ModelFileError("The model file does not name its architecture (general.architecture).")
    if architecture not in ("qwen2", "llama"):
        raise UnsupportedModelError(
            f"The model is of the architecture {architecture!r}; this engine runs qwen2 and llama."
        )
    settings = _Settings(architecture, metadata)
    settings.refuse_what_is_not_applied()
    heads, hidden = settings.count("attention.head_count"), settings.count("embedding_length")
    kv_heads = settings.count("attention.head_count_kv", heads)
    head_dim = settings.count("attention.key_length", hidden // heads)
    if "attention.key_length" not in settings and hidden % heads:
        raise ModelFileError(f"The model file gives {heads} heads to {hidden} inputs, which do not divide.")
    if settings.count("attention.value_length", head_dim) != head_dim:
        raise UnsupportedModelError("The model has keys and values of unequal lengths, which this engine does not run.")
    if heads % kv_heads:
        raise ModelFileError(f"The model file shares {kv_heads} key heads among {heads} heads, which do not divide.")
    if head_dim % 8:
        raise UnsupportedModelError(f"The model has heads of {head_dim}; this engine runs multiples of 8.")
    if settings.count("rope.dimension_count", head_dim) != head_dim:
        raise UnsupportedModelError("The model rotates only part of each head, which this engine does not run.")
    name = metadata.get("general.name")
    return NativeConfig(
        name=name if isinstance(name, str) and name else architecture,
        architecture=architecture,
        layers=settings.count("block_count"),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn=settings.count("feed_forward_length"),
        context_length=settings.count("context_length"),
        rms_eps=settings.positive("attention.layer_norm_rms_epsilon"),
        rope_base=settings.positive("rope.freq_base", _DEFAULT_ROPE_BASE),
        rope_pairs=architecture == "llama",
        biased=True if architecture == "qwen2" else None,
        vocab_size=settings.count("vocab_size") if "vocab_size" in settings else None,
    )


class _Settings:
    """Typed access to the settings of one architecture."""

    def __init__(self, architecture: str, metadata: Mapping[str, object]) -> None:
        self._prefix = architecture + "."
        self._metadata = metadata

    def __contains__(self, key: str) -> bool:
        return self._prefix + key in self._metadata

    def refuse_what_is_not_applied(self) -> None:
        split = self._metadata.get("split.count", 1)
        if split not in (0, 1):
            raise UnsupportedModelError(f"The file is one of {split} parts of a split model; merge the parts first.")
        scaling = self._metadata.get(self._prefix + "rope.scaling.type", "none")
        if scaling != "none":
            raise UnsupportedModelError(
                f"The model stretches its context by rope scaling ({scaling!r}), which this engine does not run."
            )
        for full in self._metadata:
            key = full.removeprefix(self._prefix)
            if key == full or key in _READ:
                continue  # values outside the prefix are not looked at: token lists are long
            value = self._metadata[full]
            if key in _HARMLESS and value == _HARMLESS[key]:
                continue
            shown = f" = {value!r}" if isinstance(value, int | float | str) else ""
            raise UnsupportedModelError(f"The model has the setting {full}{shown}, which this engine does not apply.")

    def count(self, key: str, default: int | None = None) -> int:
        """A number of at least 1 and at most 2^31 - 1."""
        value = self._metadata.get(self._prefix + key, default)
        if value is None:
            raise ModelFileError(f"The model file lacks the setting {self._prefix}{key}.")
        if isinstance(value, list):
            raise UnsupportedModelError(f"The model has a {self._prefix}{key} per layer; this engine runs one for all.")
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**31:
            raise ModelFileError(f"The model file has the setting {self._prefix}{key} = {value!r}, which cannot be.")
        return value

    def positive(self, key: str, default: float | None = None) -> float:
        """A finite number above 0."""
        value = self._metadata.get(self._prefix + key, default)
        if value is None:
            raise ModelFileError(f"The model file lacks the setting {self._prefix}{key}.")
        if not isinstance(value, float) or not math.isfinite(value) or value <= 0:
            raise ModelFileError(f"The model file has the setting {self._prefix}{key} = {value!r}, which cannot be.")
        return value
