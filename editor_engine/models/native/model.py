"""The native model as the decode loop sees it: `TargetModel` over the C++ forward pass.

Knows nothing of files, drafting or text. Invariant: it adds nothing to the arithmetic; what it returns is what the core
computed, and a call that raises leaves the cache as it was.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from editor_engine.kernels import MAX_ROWS, Model
from editor_engine.models.sampling import Sampling, Scored, choose
from editor_engine.models.target import ModelInfo


class NativeModel:
    """One loaded model and its KV cache."""

    def __init__(self, core: Model, info: ModelInfo) -> None:
        self._core = core
        self._info = info

    @property
    def info(self) -> ModelInfo:
        """Facts of the loaded model."""
        return self._info

    @property
    def length(self) -> int:
        """Tokens in the KV cache."""
        return self._core.length

    @property
    def rows(self) -> int:
        """Most rows of one pass."""
        return MAX_ROWS

    def forward(self, tokens: Sequence[int], *, head_rows: int) -> list[int]:
        """Append `tokens` to the cache; the greedy next id after each of the last `head_rows` (`TargetModel`).

        Raises CancelledError, NumericsError, ContextOverflowError, OutOfMemoryError, RequestError.
        """
        return self._core.forward(tokens, head_rows)

    def score(self, tokens: Sequence[int], *, head_rows: int) -> npt.NDArray[np.float32]:
        """`forward` that returns logits instead of their greatest: float32 [head_rows, vocabulary]."""
        return self._core.forward_logits(tokens, head_rows)[1]

    def sample(self, tokens: Sequence[int], *, head_rows: int, sampling: Sampling) -> list[Scored]:
        """`forward` with the full logits scored (`TargetModel`)."""
        first = self.length + len(tokens) - head_rows + 1
        logits = self.score(tokens, head_rows=head_rows)
        return [choose(row, sampling, first + index) for index, row in enumerate(logits)]

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on. Raises RequestError when there are fewer."""
        self._core.truncate(length)

    def interrupt(self) -> None:
        """Make the running and the next `forward` raise CancelledError; callable from any thread."""
        self._core.interrupt()

    def resume(self) -> None:
        """Undo `interrupt`."""
        self._core.resume()
