"""One pass of a transformers model over a cache that is whole before it and after it, whatever happens in between.

Knows torch modules and their hooks; nothing of choices, drafts or requests. Invariant: a pass that raises (cancelled,
out of memory, not a number) leaves the cache with the tokens it had; what comes out are finite logits of the last rows.
"""

import inspect
import threading
from collections.abc import Sequence
from typing import Any

import torch

from editor_engine.errors import CancelledError, NumericsError, OutOfMemoryError, UnsupportedModelError
from editor_engine.models.hf.cache import RewindCache

_NO_MEMORY = ("not enough memory", "can't allocate memory", "cannot allocate memory", "out of memory", "alloc_failed")
"""How torch's allocators say it, in lower case; on a CPU they have no exception of their own."""

_HEAD_ROWS = 16
"""Rows the head takes at once on a CPU: more read its weights less often, fewer can be cancelled sooner."""


class Network:
    """A loaded transformers model and its cache."""

    def __init__(self, module: Any, cache: RewindCache, device: torch.device) -> None:
        """`module`: a PreTrainedModel with a language head. `device`: where its embedding is."""
        self.cache = cache
        self.module = module
        self.device = device
        self._interrupted = threading.Event()
        self._takes = _parameters(module)
        self._cache_name = next((name for name in ("cache", "past_key_values") if name in self._takes), None)
        if self._cache_name is None:
            raise UnsupportedModelError(f"A {type(module).__name__} takes no KV cache, so it cannot be rewound.")
        self.layers = decoder_layers(module)
        for part in module.modules():
            # Layers alone are too far apart: one of a 7B model takes longer on a CPU than a cancel may.
            if isinstance(part, torch.nn.Linear) or any(part is layer for layer in self.layers):
                part.register_forward_pre_hook(self._poll)
        if device.type == "cpu":
            self._slice_head()

    def _slice_head(self) -> None:
        """On a CPU the head of 64 rows takes longer than a cancel may: 9 billion multiply-adds for 0.5B."""
        head = self.module.get_output_embeddings()
        if head is None:
            return
        whole = head.forward

        def forward(states: torch.Tensor) -> torch.Tensor:
            if states.shape[-2] <= _HEAD_ROWS:
                return whole(states)  # type: ignore[no-any-return]
            parts = []
            for part in torch.split(states, _HEAD_ROWS, dim=-2):
                self._poll()
                parts.append(whole(part))
            return torch.cat(parts, dim=-2)

        head.forward = forward

    @property
    def embedded(self) -> int:
        """Ids the model can read."""
        return int(self.module.get_input_embeddings().weight.shape[0])

    def interrupt(self) -> None:
        """Make the running and the next pass raise CancelledError; callable from any thread."""
        self._interrupted.set()

    def resume(self) -> None:
        """Undo `interrupt`."""
        self._interrupted.clear()

    def run(self, tokens: Sequence[int], head_rows: int) -> torch.Tensor:
        """Append `tokens` to the cache; float32 logits [head_rows, vocabulary] of the last rows.

        Raises CancelledError, NumericsError, OutOfMemoryError.
        """
        before = self.cache.length
        try:
            rows = self._rows(tokens, head_rows)
            # NaN comes through both; to look at every number took a twentieth of a pass of nf4 on a CPU.
            if not torch.isfinite(torch.stack((rows.amin(), rows.amax()))).all():
                raise NumericsError(self._where(tokens, before))
        except BaseException as error:
            self.cache.set_length(before)
            if no_memory(error):
                raise OutOfMemoryError(self._short_of(len(tokens), before)) from error
            raise
        return rows if head_rows else rows[:0]

    def _rows(self, tokens: Sequence[int], head_rows: int) -> torch.Tensor:
        self._poll()
        with torch.inference_mode():
            ids = torch.tensor([list(tokens)], device=self.device)
            start = self.cache.length
            given: dict[str, Any] = {"input_ids": ids, self._cache_name or "": self.cache.native, "use_cache": True}
            if "position_ids" in self._takes:
                given["position_ids"] = torch.arange(start, start + len(tokens), device=self.device)[None]
            if "logits_to_keep" in self._takes:
                given["logits_to_keep"] = max(head_rows, 1)  # 0 would mean all of them
            rows: torch.Tensor = self.module(**given).logits[0]
            return rows[rows.shape[0] - max(head_rows, 1) :].float()

    def _poll(self, *_: object) -> None:
        if self._interrupted.is_set():
            raise CancelledError("The request was cancelled.")

    def _where(self, tokens: Sequence[int], before: int) -> str:
        """Run the pass again to find the first layer whose output is not a number."""
        self.cache.set_length(before)
        found: list[int] = []

        def look(number: int) -> Any:
            def hook(module: object, given: object, output: Any) -> None:
                states = output[0] if isinstance(output, tuple) else output
                if not found and not torch.isfinite(states).all():
                    found.append(number)

            return hook

        handles = [layer.register_forward_hook(look(number)) for number, layer in enumerate(self.layers)]
        try:
            self._rows(tokens, 1)
        finally:
            for handle in handles:
                handle.remove()
        place = f"layer {found[0]}" if found else "the logits"
        return (
            f"A NaN or an infinity came out of {place}; try another --dtype (float32 has the widest range of values)."
        )

    def _short_of(self, rows: int, before: int) -> str:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return (
            f"Memory ran out in a pass of {rows} tokens behind {before} in the cache ({self.device}); "
            "take a smaller context or model, or close other programs."
        )


def no_memory(error: BaseException) -> bool:
    """True for what torch raises where an allocation failed."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _NO_MEMORY)


def _parameters(module: Any) -> frozenset[str]:
    """Names that the model's forward takes."""
    return frozenset(inspect.signature(module.forward).parameters)


def decoder_layers(module: Any) -> list[torch.nn.Module]:
    """The decoder's layers in order: the list of modules that is as long as the configuration says.

    Raises UnsupportedModelError when there is none.
    """
    count = module.config.get_text_config(decoder=True).num_hidden_layers
    for part in module.modules():
        if isinstance(part, torch.nn.ModuleList) and len(part) == count:
            return list(part)
    raise UnsupportedModelError(f"The layers of a {type(module).__name__} are not where they are expected.")
