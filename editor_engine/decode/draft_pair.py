"""A draft model beside the target: its KV cache, what its passes take, and what was learned of the two together.

Lives as long as the engine. Knows tokens, seconds and files; whether to ask it is decided in `model_drafter.py` with
the figures of `draft/pair_gain.py`. Invariants: its cache holds exactly `_cached`; a call that raises leaves it as it
was; a lost, damaged or unwritable memory means nothing was learned yet, never an error.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from editor_engine.atomic_file import write_atomically
from editor_engine.decode.cost_memory import CostMemory
from editor_engine.draft.pair_gain import PairGain
from editor_engine.errors import EngineError
from editor_engine.foreign_json import read_kept
from editor_engine.models.target import ModelInfo, TargetModel

_UNKNOWN_SHARE = 1 / 3
"""Seconds of a draft pass over those of a plain step, where neither was timed and the weights are not known."""
_FOLLOWS = 1 / 4
"""How far one reading moves the seconds a token of it takes."""


class Use(Enum):
    """When the draft model is asked."""

    MEASURED = "measured"
    """While its gain is positive."""
    ALWAYS = "always"
    """Wherever the rest of the chain has no draft: to measure it. What that teaches is used and kept by no edit: asked
    for what could be copied, it is right more often than elsewhere."""
    NEVER = "never"


class DraftPair:
    """One draft model for one target."""

    def __init__(
        self,
        model: TargetModel,
        target: ModelInfo,
        known_ids: int,
        *,
        folder: Path | None = None,
        target_folder: Path | None = None,
        clock: Callable[[], float],
    ) -> None:
        """`known_ids`: ids below it mean the same to both models; others are never drafted. `folder` belongs to the
        draft model's file, `target_folder` to the target's: what was learned is kept there."""
        self.model = model
        self.known_ids = known_ids
        self.use = Use.MEASURED
        self._gain, self._measuring = PairGain(), PairGain()
        self._clock = clock
        self._costs = CostMemory(model.info, folder)
        self._read_token_s: float | None = None
        self._cached: list[int] = []
        self._share = model.info.weights_bytes / target.weights_bytes if target.weights_bytes else _UNKNOWN_SHARE
        self._path = None if target_folder is None else target_folder / _file_name(model.info, target)
        self._restore()

    @property
    def gain(self) -> PairGain:
        """What was learned of the two in the use it is put to."""
        return self._measuring if self.use is Use.ALWAYS else self._gain

    def rewind(self, tokens: Sequence[int], known: int) -> int:
        """Forget what is not a beginning of `tokens`, and its last token; returns how many of them are held.

        The first `known` of them are known to be held.
        """
        most = min(len(self._cached), len(tokens) - 1)
        held = min(known, most)
        while held < most and self._cached[held] == tokens[held]:
            held += 1
        if held < len(self._cached):
            self.model.truncate(held)
            del self._cached[held:]
        return held

    def read(self, tokens: Sequence[int]) -> float:
        """Append tokens to the cache without looking at what comes next; returns the seconds that took."""
        started = self._clock()
        for start in range(0, len(tokens), self.model.rows):
            rows = tokens[start : start + self.model.rows]
            self.model.forward(rows, head_rows=0)
            self._cached.extend(rows)
        seconds = self._clock() - started
        if tokens and seconds > 0.0:
            found = seconds / len(tokens)
            had = self._read_token_s
            self._read_token_s = found if had is None else had + _FOLLOWS * (found - had)
        return seconds

    def logits(self, tokens: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append 1 to `model.rows` tokens; the logits after the last of them, of the ids both models know."""
        started, before = self._clock(), len(self._cached)
        rows = self.model.logits(tokens, head_rows=1)
        self._cached.extend(tokens)
        self._costs.cost.observe(len(tokens), before, self._clock() - started)
        known: npt.NDArray[np.float32] = rows[0][: self.known_ids]
        return known

    def pass_seconds(self, context: int, plain_s: float) -> float:
        """Seconds of a pass over one token; before the first one by the sizes of both models' weights."""
        return self._costs.cost.step_seconds(context) or plain_s * self._share

    def reading_seconds(self, count: int, context: int, plain_s: float) -> float:
        """Seconds to read `count` tokens."""
        if self._read_token_s is not None:
            return count * self._read_token_s
        rows = self.model.rows
        costs = self._costs.cost.costs(context)
        return count * self.pass_seconds(context, plain_s) * costs[min(rows, len(costs) - 1)] / rows

    @property
    def cache_bytes(self) -> int:
        """Of the KV cache, as full as it is."""
        return self.model.cache_bytes(len(self._cached))

    def forget(self) -> None:
        """After an error: begin with an empty cache."""
        self._cached.clear()
        with contextlib.suppress(EngineError):
            self.model.truncate(0)

    def save(self) -> None:
        """Write what was learned, whole or not at all."""
        self._costs.save()
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, json.dumps(self._gain.snapshot()).encode())

    def _restore(self) -> None:
        if self._path is None:
            return
        # Missing, or not such a snapshot.
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, OverflowError):
            self._gain.restore(read_kept(self._path))


def _file_name(draft: ModelInfo, target: ModelInfo) -> str:
    """What was measured holds for these two models, as they run here."""
    runs = [(info.sha256, info.contract_version, info.threads, info.isa, info.device) for info in (draft, target)]
    return f"pair-{hashlib.sha256(repr(runs).encode()).hexdigest()[:16]}.json"
