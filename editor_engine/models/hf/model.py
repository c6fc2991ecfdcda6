"""A transformers model as the decode loop sees it: `TargetModel` with the margin guard.

Knows passes and choices, nothing of files, text or drafting. Invariant: a call that raises leaves the cache with the
tokens it had. Where the guard replays (float32), choices are those of a fresh engine that decodes plainly, as far as
noise stays below the guard's bound: that is checked (`--prove`), not promised, and the badge says so.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from editor_engine.errors import ContextOverflowError, OutOfMemoryError, RequestError
from editor_engine.models.hf.choices import Choice, Judge, greedy, scored
from editor_engine.models.hf.forms import Forms
from editor_engine.models.hf.guard import Guard, decided, next_near_tie
from editor_engine.models.hf.network import Network, no_memory
from editor_engine.models.sampling import Sampling, Scored
from editor_engine.models.target import CacheSnapshot, ModelInfo

ROWS = 64
"""Most rows of a pass; also how a prompt is cut."""

_HEADER = 3 * 4
"""Bytes of a snapshot for each token beside keys and values: its id and its pass, as int32."""


@dataclass
class Reruns:
    """What the guard did since the model was loaded."""

    positions: int = 0
    """Choices that a decode loop could take."""
    rerun: int = 0
    """Near ties among them that were decided again in plain form."""


class HfModel:
    """One loaded model and its KV cache."""

    def __init__(self, network: Network, info: ModelInfo, guard: Guard) -> None:
        self.network = network
        self._info = info
        self.guard = guard
        self._tokens: list[int] = []
        self._forms = Forms(ROWS)
        self._print = zlib.crc32(f"{info.isa} {info.device} torch {torch.__version__}".encode())
        self.reruns = Reruns()

    @property
    def info(self) -> ModelInfo:
        """Facts of the loaded model."""
        return self._info

    @property
    def length(self) -> int:
        """Tokens in the KV cache."""
        return len(self._tokens)

    @property
    def rows(self) -> int:
        """Most rows of one pass."""
        return ROWS

    def forward(self, tokens: Sequence[int], *, head_rows: int) -> list[int]:
        """Append `tokens` to the cache; the greedy next id after each of the last `head_rows` (`TargetModel`).

        A choice behind one that differs from the token after it is the pass's own: no loop takes it.
        Raises CancelledError, NumericsError, ContextOverflowError, OutOfMemoryError, RequestError.
        """
        return [choice.scored.token for choice in self._decide(tokens, head_rows, greedy(self.guard))]

    def sample(self, tokens: Sequence[int], *, head_rows: int, sampling: Sampling) -> list[Scored]:
        """`forward` with the full logits scored (`TargetModel`)."""
        return [choice.scored for choice in self._decide(tokens, head_rows, scored(self.guard, sampling))]

    def logits(self, tokens: Sequence[int], *, head_rows: int) -> npt.NDArray[np.float32]:
        """`forward` that returns the pass's own logits: float32 [head_rows, vocabulary]. Nothing is run again."""
        rows: npt.NDArray[np.float32] = self._pass(tokens, head_rows).cpu().numpy()
        return rows

    def rerun_counts(self) -> tuple[int, int]:
        """(positions decided, positions run again in plain form for a near tie) since it was loaded."""
        return self.reruns.positions, self.reruns.rerun

    def _decide(self, tokens: Sequence[int], head_rows: int, judge: Judge) -> list[Choice]:
        before = self.length
        try:
            logits = self._pass(tokens, head_rows)
            first = self.length - head_rows  # position of the first row that gives a choice
            choices = judge(logits, first + 1)
            following = tokens[len(tokens) - head_rows + 1 :]
            near = [choice.near for choice in choices]
            taken = [choice.scored.token for choice in choices]
            rerun = 0
            index = next_near_tie(following, taken, near)
            while index is not None:
                again = self._plain_logits(first + index)
                if again is not None:
                    (choices[index],) = judge(again, first + index + 1)
                    taken[index] = choices[index].scored.token
                    rerun += 1
                near[index] = False
                index = next_near_tie(following, taken, near, index)
        except BaseException:
            self._cut(before)
            raise
        self.reruns.positions += decided(following, taken)
        self.reruns.rerun += rerun
        return choices

    def _pass(self, tokens: Sequence[int], head_rows: int) -> torch.Tensor:
        self._check(tokens, head_rows)
        logits = self.network.run(tokens, head_rows)
        self._tokens += tokens
        self._forms.append(len(tokens), head_rows)
        return logits

    def _plain_logits(self, position: int) -> torch.Tensor | None:
        """Logits [1, vocabulary] behind the token at `position`, in plain form; None when they were so already.

        The cache keeps its tokens. What is behind `position` stays as it was computed.
        """
        whole = self.length
        cache = self.network.cache
        try:
            if not self.guard.replay:
                if self._forms.alone(position):
                    return None
                cache.set_length(position)
                return self.network.run(self._tokens[position : position + 1], 1)
            start = self._forms.plain_length()
            if start > position:
                return None
            self._forms.disown(start)
            logits = None
            for span in self._forms.plain_spans(start, position + 1):
                cache.set_length(span.start)
                logits = self.network.run(self._tokens[span.start : span.end], 1)
                self._forms.replayed(span)
            return logits
        finally:
            cache.set_length(whole)

    def _check(self, tokens: Sequence[int], head_rows: int) -> None:
        if not 1 <= len(tokens) <= ROWS or not 0 <= head_rows <= len(tokens):
            raise RequestError(f"A pass takes 1 to {ROWS} tokens; {len(tokens)} were given, with {head_rows} choices.")
        if self.length + len(tokens) > self._info.context_length:
            raise ContextOverflowError(
                f"The cache holds {self._info.context_length} tokens; {self.length} are in it and {len(tokens)} more "
                "do not fit."
            )
        embedded = self.network.embedded
        for token in tokens:
            if not 0 <= token < embedded:
                raise RequestError(f"The model embeds {embedded} tokens and has no token {token}.")

    def _cut(self, length: int) -> None:
        self.network.cache.set_length(length)
        self._forms.truncate(length)
        del self._tokens[length:]

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on. Raises RequestError when there are fewer."""
        if not 0 <= length <= self.length:
            raise RequestError(f"The cache has {self.length} tokens and cannot be cut to {length}.")
        self._cut(length)

    def cache_bytes(self, length: int) -> int:
        """Bytes of a snapshot of `length` tokens (`TargetModel`)."""
        if not 0 <= length <= self._info.context_length:
            raise RequestError(f"The cache holds 0 to {self._info.context_length} tokens, so never {length}.")
        return 8 + length * (_HEADER + self._info.cache_bytes_per_token)

    def export_cache(self, length: int) -> CacheSnapshot:
        """A copy of the cache's first `length` tokens (`TargetModel`)."""
        if length > self.length:
            raise RequestError(f"The cache has {self.length} tokens; a copy of {length} was asked for.")
        data = np.empty(self.cache_bytes(length), np.uint8)
        data[:8] = np.array([self._print, self._forms.prompt], np.uint32).view(np.uint8)
        head = 8 + length * _HEADER
        entries = [(token, *span) for token, span in zip(self._tokens, self._forms.dump(), strict=True)][:length]
        data[8:head] = np.array(entries, np.int32).reshape(-1).view(np.uint8)
        try:
            self.network.cache.copy_out(length, data[head:])
        except RuntimeError as error:
            raise (MemoryError() if no_memory(error) else error) from error
        return CacheSnapshot(self._info.sha256, self._info.contract_version, length, data.data.toreadonly())

    def import_cache(self, snapshot: CacheSnapshot) -> None:
        """Make the cache the snapshot's tokens (`TargetModel`)."""
        length = snapshot.length
        if length > self._info.context_length:
            raise ContextOverflowError(f"The copy has {length} tokens; the cache holds {self._info.context_length}.")
        data = np.asarray(snapshot.data)
        same = (snapshot.sha256, snapshot.contract_version) == (self._info.sha256, self._info.contract_version)
        if not same or data.nbytes != self.cache_bytes(length) or int(data[:4].view(np.uint32)[0]) != self._print:
            raise RequestError("A cache copied from another model, or of another arithmetic, cannot be put back.")
        head = 8 + length * _HEADER
        try:
            self.network.cache.copy_in(length, data[head:])
        except RuntimeError as error:
            if no_memory(error):
                raise OutOfMemoryError(f"There is no memory for a cache of {length} tokens.") from error
            raise
        entries = data[8:head].view(np.int32).reshape(-1, 3).tolist()
        self._tokens = [token for token, _, _ in entries]
        self._forms.load([(start, end) for _, start, end in entries], min(int(data[4:8].view(np.uint32)[0]), length))

    def interrupt(self) -> None:
        """Make the running and the next `forward` raise CancelledError; callable from any thread."""
        self.network.interrupt()

    def resume(self) -> None:
        """Undo `interrupt`."""
        self.network.resume()
