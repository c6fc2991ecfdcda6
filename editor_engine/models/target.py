"""The model as the decode loop sees it: a protocol that tokens go into and greedy choices come out of.

Knows nothing of drafting or of text. Invariant of every implementation: the choice after a token depends on the tokens
before it and on nothing else, neither on how many rows a pass had nor on what was drafted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # numpy: 0.1 s that the light records around this protocol must not pay
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

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on."""

    def interrupt(self) -> None:
        """Make the running and the next `forward` raise CancelledError; callable from any thread."""

    def resume(self) -> None:
        """Undo `interrupt`."""
