"""The native model as the decode loop sees it: `TargetModel` over the C++ forward pass.

Knows nothing of files, drafting or text. Invariant: it adds nothing to the arithmetic; what it returns is what the core
computed, and a call that raises leaves the cache as it was.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from editor_engine.errors import RequestError
from editor_engine.kernels import MAX_ROWS, Model
from editor_engine.models.sampling import Sampling, Scored, choose
from editor_engine.models.target import CacheSnapshot, ModelInfo

_RELEASE_TOKENS = 256  # a looked-up row of the embedding brings some 64 kB of the file into memory


class NativeModel:
    """One loaded model and its KV cache."""

    def __init__(self, core: Model, info: ModelInfo, release: Callable[[], None] = lambda: None) -> None:
        """`release` gives back the memory of what was read of the model's file; it is called now and then."""
        self._core = core
        self._info = info
        self._release = release
        self._looked_up = 0

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
        self._count(len(tokens))
        return self._core.forward(tokens, head_rows)

    def logits(self, tokens: Sequence[int], *, head_rows: int) -> npt.NDArray[np.float32]:
        """`forward` that returns logits instead of their greatest (`TargetModel`)."""
        self._count(len(tokens))
        return self._core.forward_logits(tokens, head_rows)[1]

    def sample(self, tokens: Sequence[int], *, head_rows: int, sampling: Sampling) -> list[Scored]:
        """`forward` with the full logits scored (`TargetModel`)."""
        first = self.length + len(tokens) - head_rows + 1
        logits = self.logits(tokens, head_rows=head_rows)
        return [choose(row, sampling, first + index) for index, row in enumerate(logits)]

    def _count(self, tokens: int) -> None:
        """Every so many tokens, the rows of the embedding that were looked up need not stay in memory."""
        self._looked_up += tokens
        if self._looked_up > _RELEASE_TOKENS:
            self._looked_up = tokens
            self._release()

    def rerun_counts(self) -> tuple[int, int]:
        """Nothing is ever run again (`TargetModel`): rows do not change a bit."""
        return 0, 0

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on. Raises RequestError when there are fewer."""
        self._core.truncate(length)

    def cache_bytes(self, length: int) -> int:
        """Bytes of a snapshot of `length` tokens (`TargetModel`)."""
        return self._core.cache_bytes(length)

    def export_cache(self, length: int) -> CacheSnapshot:
        """A copy of the cache's first `length` tokens (`TargetModel`)."""
        copy = self._core.export_cache(length)
        return CacheSnapshot(self._info.sha256, self._info.contract_version, length, copy.data)

    def import_cache(self, snapshot: CacheSnapshot) -> None:
        """Make the cache the snapshot's tokens (`TargetModel`)."""
        if (snapshot.sha256, snapshot.contract_version) != (self._info.sha256, self._info.contract_version):
            raise RequestError("A cache copied from another model, or of another arithmetic, cannot be put back.")
        self._core.import_cache(snapshot.length, np.asarray(snapshot.data))

    def interrupt(self) -> None:
        """Make the running and the next `forward` raise CancelledError; callable from any thread."""
        self._core.interrupt()

    def resume(self) -> None:
        """Undo `interrupt`."""
        self._core.resume()
