"""A target model without weights: the next token is any function of the tokens before it.

Keeps the rules of `TargetModel` strictly, so that a loop which breaks them fails here.
"""

import zlib
from array import array
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from editor_engine.errors import CancelledError, ContextOverflowError, RequestError
from editor_engine.models.sampling import Sampling, Scored
from editor_engine.models.target import CacheSnapshot, ModelInfo

NextToken = Callable[[Sequence[int]], int]
LogitsOf = Callable[[Sequence[int]], npt.NDArray[np.float32]]

SURE = 9.0
"""Logit of the next token; every other has 0."""


def pseudo_random(vocab_size: int) -> NextToken:
    """A fixed function of the last three tokens, so that repeats occur and matches are worth something."""

    def choose(tokens: Sequence[int]) -> int:
        return zlib.crc32(repr(tuple(tokens[-3:])).encode()) % vocab_size

    return choose


def random_logits(vocab_size: int, seed: int, spread: float = 1.5) -> LogitsOf:
    """Logits that are a fixed function of the last two tokens."""

    @cache
    def row(last: tuple[int, ...]) -> npt.NDArray[np.float32]:
        return np.random.default_rng([seed, *last]).normal(0.0, spread, vocab_size).astype(np.float32)

    return lambda tokens: row(tuple(tokens[-2:]))


def greatest(logits_of: LogitsOf) -> NextToken:
    """The greedy choice."""
    return lambda tokens: int(logits_of(tokens).argmax())


def script(prompt_length: int, reply: Sequence[int]) -> NextToken:
    """The reply, token by token, whatever is in the cache; its last token for ever after."""

    def choose(tokens: Sequence[int]) -> int:
        return reply[min(max(len(tokens) - prompt_length, 0), len(reply) - 1)]

    return choose


class FakeModel:
    """A `TargetModel` over a Python list."""

    def __init__(
        self,
        next_token: NextToken,
        *,
        vocab_size: int = 64,
        rows: int = 8,
        context: int = 4096,
        logits_of: LogitsOf | None = None,
    ) -> None:
        """`logits_of` agrees with `next_token`; without it the next token has all but certainty."""
        self.cache: list[int] = []
        self.passes: list[int] = []
        """Rows of each pass."""
        self.before_pass: Callable[[], None] = lambda: None
        self._next = next_token
        self._logits_of = logits_of
        self._rows = rows
        self._interrupted = False
        self._info = ModelInfo("fake", "fake", "0" * 64, vocab_size, context, "cpu", 1, "scalar", 1)

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def length(self) -> int:
        return len(self.cache)

    @property
    def rows(self) -> int:
        return self._rows

    def forward(self, tokens: Sequence[int], *, head_rows: int) -> list[int]:
        assert 1 <= len(tokens) <= self._rows
        assert 0 <= head_rows <= len(tokens)
        assert all(0 <= token < self._info.vocab_size for token in tokens)
        assert len(self.cache) + len(tokens) <= self._info.context_length
        self.before_pass()
        if self._interrupted:
            raise CancelledError("The request was cancelled.")
        self.passes.append(len(tokens))
        choices = []
        for token in tokens:
            self.cache.append(token)
            choices.append(self._next(self.cache))
        return choices[len(choices) - head_rows :]

    def sample(self, tokens: Sequence[int], *, head_rows: int, sampling: Sampling) -> list[Scored]:
        choices = self.forward(tokens, head_rows=head_rows)
        return [Scored(choice, -float(choice)) for choice in choices]

    def logits(self, tokens: Sequence[int], *, head_rows: int) -> npt.NDArray[np.float32]:
        choices = self.forward(tokens, head_rows=head_rows)
        if self._logits_of is not None:
            ends = range(len(self.cache) - head_rows + 1, len(self.cache) + 1)
            return np.stack([self._logits_of(self.cache[:end]) for end in ends])
        rows = np.zeros((head_rows, self._info.vocab_size), np.float32)
        rows[range(head_rows), choices] = SURE
        return rows

    def rerun_counts(self) -> tuple[int, int]:
        return 0, 0

    def truncate(self, length: int) -> None:
        assert 0 <= length <= len(self.cache)
        del self.cache[length:]

    def cache_bytes(self, length: int) -> int:
        return 4 * length

    def export_cache(self, length: int) -> CacheSnapshot:
        if not 0 <= length <= len(self.cache):
            raise RequestError("The cache has fewer tokens.")
        data = memoryview(array("i", self.cache[:length]).tobytes())
        return CacheSnapshot(self._info.sha256, self._info.contract_version, length, data)

    def import_cache(self, snapshot: CacheSnapshot) -> None:
        if snapshot.sha256 != self._info.sha256:
            raise RequestError("The snapshot is another model's.")
        if snapshot.length > self._info.context_length:
            raise ContextOverflowError("The snapshot does not fit.")
        self.cache = array("i", bytes(snapshot.data)).tolist()

    def interrupt(self) -> None:
        self._interrupted = True

    def resume(self) -> None:
        self._interrupted = False
