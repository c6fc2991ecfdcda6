"""The model as the decode loop sees it: a protocol that tokens go into and greedy choices come out of.

Knows nothing of drafting or of text. Invariant of every implementation: the choice after a token depends on the tokens
before it and on nothing else, neither on how many rows a pass had nor on what was drafted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # numpy: 0.1 s that the light records around this protocol must not pay
    import numpy as np
    import numpy.typing as npt

    from editor_engine.models.sampling import Sampling, Scored


@dataclass(frozen=True)
class ModelInfo:
    """Facts of a loaded model."""

    name: str
    architecture: str
    sha256: str
    """Of the model file."""
    vocab_size: int
    context_length: int
    """Most tokens the KV cache can hold."""
    device: str
    threads: int
    isa: str
    contract_version: int
    """Version of the arithmetic (exactness contract); enters every token hash."""
    backend: str = "native"
    """Whose arithmetic it is: `native` or `transformers`."""
    guarantee: str = "exact"
    """`exact`: the tokens are those of plain decoding, whatever was drafted; `not guaranteed`: rows may decide. Of an
    engine also `exact when greedy`: drawn tokens keep the distribution only."""
    weights_bytes: int = 0
    """Memory of the weights; 0: not said."""
    cache_bytes_per_token: int = 0
    """Memory the KV cache takes for a token; 0: not said."""
    loaded_as: str = ""
    """`EngineConfig.loaded_as` of the load."""


@dataclass(frozen=True)
class CacheSnapshot:
    """A copy of the beginning of a model's KV cache; only the model knows what the bytes mean."""

    sha256: str
    """Of the model file."""
    contract_version: int
    """Of the arithmetic that filled the cache."""
    length: int
    """Tokens."""
    data: memoryview
    """`TargetModel.cache_bytes(length)` bytes; nobody may write to them."""


class TargetModel(Protocol):
    """A causal model with one KV cache."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def length(self) -> int:
        """Tokens in the KV cache."""

    @property
    def rows(self) -> int:
        """Most rows of one pass."""

    def forward(self, tokens: Sequence[int], *, head_rows: int) -> list[int]:
        """Append `tokens` (1 to `rows` of them) to the cache; the greedy next id after each of the last `head_rows`.

        Raises CancelledError after `interrupt`, with the cache as it was before the call; NumericsError on NaN or
        infinity; ContextOverflowError when the cache has no room; OutOfMemoryError.
        """

    def sample(self, tokens: Sequence[int], *, head_rows: int, sampling: "Sampling") -> "list[Scored]":
        """`forward` with the full logits scored: chosen by `sampling`, keyed by each token's own position.

        At temperature 0 the tokens are those of `forward`.
        """

    def logits(self, tokens: Sequence[int], *, head_rows: int) -> "npt.NDArray[np.float32]":
        """`forward` that returns logits instead of their greatest: float32 [head_rows, vocabulary]."""

    def rerun_counts(self) -> tuple[int, int]:
        """(positions decided, positions run again in plain form for a near tie) since it was loaded; (0, 0) where rows
        never change a bit."""

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on."""

    def cache_bytes(self, length: int) -> int:
        """Bytes of a snapshot of `length` tokens. Raises RequestError for a length no cache can have."""

    def export_cache(self, length: int) -> CacheSnapshot:
        """A copy of the cache's first `length` tokens; the cache stays. Raises RequestError when it has fewer."""

    def import_cache(self, snapshot: CacheSnapshot) -> None:
        """Make the cache the snapshot's tokens, whatever was in it; what follows is as if they had just been decoded.

        Raises RequestError for a snapshot of another model or arithmetic, ContextOverflowError for one that does not
        fit; the cache is then as before the call.
        """

    def interrupt(self) -> None:
        """Make the running and the next `forward` raise CancelledError; callable from any thread."""

    def resume(self) -> None:
        """Undo `interrupt`."""
