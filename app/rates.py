"""How fast a model was here the last time, so that the next edit can say how long it will take.

One small JSON file in the cache folder; a lost or damaged one means "unknown", never an error.
"""

import contextlib
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from app.engine_client import EngineDescription
from editor_engine.atomic_file import write_atomically
from editor_engine.events import Stats
from editor_engine.foreign_json import read_kept

if TYPE_CHECKING:
    from app.editing.prompt import Budget

_REMEMBERED = 200
"""A reply of a few lines says little of a whole file's: it may have nothing to copy."""


@dataclass(frozen=True)
class Rates:
    """Tokens per second lately; the more tokens an edit had, the more it counts."""

    prefill_tok_s: float
    decode_tok_s: float

    def seconds(self, budget: "Budget") -> float:
        """Expected time of an edit with nothing cached whose reply is as long as its source."""
        return budget.prompt / self.prefill_tok_s + budget.expected / self.decode_tok_s


def _path() -> Path:
    return Path(platformdirs.user_cache_dir("redraft")) / "rates.json"


def _key(engine: EngineDescription) -> str:
    # A server that names no file has its model's name; what it runs on may change behind it.
    return f"{engine.sha256 or engine.model_id}/{engine.where or engine.reached}/{engine.threads}"


def last_rates(engine: EngineDescription) -> Rates | None:
    """What was measured lately for this model, device and thread count; None when nothing was."""
    with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
        found = read_kept(_path())[_key(engine)]
        rates = Rates(float(found["prefill_tok_s"]), float(found["decode_tok_s"]))
        if all(math.isfinite(rate) and rate > 0 for rate in (rates.prefill_tok_s, rates.decode_tok_s)):
            return rates
    return None


def _moved(had: float, found: float, tokens: int | None) -> float:
    """The rate after `tokens` more at the rate `found`, as if what was had came from `_REMEMBERED` tokens."""
    weight = 1.0 if tokens is None else tokens / (tokens + _REMEMBERED)
    return 1.0 / ((1.0 - weight) / had + weight / found)


def remember_rates(engine: EngineDescription, stats: Stats) -> None:
    """Learn from an edit, if it measured both rates. A cache that cannot be written is no loss."""
    if not stats.prefill_tok_s or not stats.decode_tok_s:
        return
    had = last_rates(engine)
    rates = Rates(stats.prefill_tok_s, stats.decode_tok_s)
    if had is not None:
        read = None if stats.prompt_tokens is None else stats.prompt_tokens - (stats.cached_tokens or 0)
        rates = Rates(
            _moved(had.prefill_tok_s, rates.prefill_tok_s, read),
            _moved(had.decode_tok_s, rates.decode_tok_s, stats.output_tokens),
        )
    table = read_kept(_path())
    table[_key(engine)] = asdict(rates)
    path = _path()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(table).encode())
