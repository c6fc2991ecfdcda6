"""A KV cache that can be rewound to any earlier token, for every kind of attention layer transformers has.

A layer that slides keeps all its tokens here too and shows the model only its window, so that forgetting tokens brings
back those the window had left. Knows nothing of choices or drafts. Invariant: what a layer returns for a token depends
on the tokens before it, not on what was appended and forgotten in between; a layer that cannot promise that (a state
that is overwritten from token to token) is refused by name.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import Cache, DynamicCache
from transformers.cache_utils import DummyLayer, DynamicLayer, DynamicSlidingWindowLayer

from editor_engine.errors import UnsupportedModelError

_LEAST_ROOM = 256
"""Tokens a layer makes room for at first."""


class RewindLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one layer in buffers that grow; `length` of them count."""

    def __init__(self, window: int | None, most: int) -> None:
        """`window`: tokens a sliding layer sees, None for all. `most`: tokens there will ever be."""
        super().__init__()
        self.is_sliding = window is not None
        self.length = 0
        self._window = window
        self._most = most
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None  # keys, values: [1, heads, room, size]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append [1, heads, rows, size] and return all the layer may see, oldest first."""
        first = self._first_seen()
        end = self.length + key_states.shape[-2]
        keys, values = self._with_room(end, (key_states, value_states))
        keys[:, :, self.length : end] = key_states
        values[:, :, self.length : end] = value_states
        self.length = end
        self.is_initialized = True
        return keys[:, :, first:end], values[:, :, first:end]

    def _first_seen(self) -> int:
        """First position that the next token sees."""
        return 0 if self._window is None else max(0, self.length - self._window + 1)

    def _with_room(self, end: int, like: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        old = self._buffers
        if old is not None and old[0].shape[-2] >= end:
            return old
        room = max(end, min(self._most, max(_LEAST_ROOM, end + end // 4)))
        grown = [
            torch.empty((*part.shape[:-2], room, part.shape[-1]), dtype=part.dtype, device=part.device) for part in like
        ]
        if old is not None:
            for new, part in zip(grown, old, strict=True):
                new[:, :, : self.length] = part[:, :, : self.length]
        self._buffers = (grown[0], grown[1])
        return self._buffers

    def reserve(self, length: int) -> None:
        """Make room for `length` tokens; only what this may do can run out of memory."""
        if self._buffers is not None:
            self._with_room(length, self._buffers)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(tokens seen, position of the first of them) once `query_length` more are there."""
        first = self._first_seen()
        return self.length + query_length - first, first

    def get_seq_length(self) -> int:
        """Tokens in the layer."""
        return self.length

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last `-tokens_to_remove` tokens."""
        self.length -= abs(tokens_to_remove)

    def reset(self) -> None:
        """Forget all."""
        self.length = 0

    def parts(self, length: int) -> list[torch.Tensor]:
        """Views of the first `length` keys and values; writing to them writes to the layer."""
        assert self._buffers is not None
        return [part[:, :, :length] for part in self._buffers]


class RewindCache:
    """All layers, and the object that transformers takes as its cache."""

    def __init__(self, layers: list[RewindLayer | DummyLayer]) -> None:
        self.native = Cache(layers=layers)
        self._layers = [layer for layer in layers if isinstance(layer, RewindLayer)]

    @classmethod
    def of(cls, config: Any, most: int) -> "RewindCache":
        """The cache for a model's configuration with room for `most` tokens.

        Raises UnsupportedModelError naming the type of a layer that cannot be rewound.
        """
        try:
            kinds = DynamicCache(config=config).layers
        except KeyError as error:
            raise UnsupportedModelError(
                f"The model keeps a state of the kind {error.args[0]}, which cannot be rewound after a draft."
            ) from error
        layers: list[RewindLayer | DummyLayer] = []
        for kind in kinds:
            if type(kind) is DynamicSlidingWindowLayer:
                layers.append(RewindLayer(kind.sliding_window, most))
            elif type(kind) is DynamicLayer:
                layers.append(RewindLayer(None, most))
            elif type(kind) is DummyLayer:
                layers.append(kind)
            else:
                raise UnsupportedModelError(
                    f"The model keeps its state in a {type(kind).__name__}, which cannot be rewound after a draft."
                )
        if not any(isinstance(layer, RewindLayer) for layer in layers):
            raise UnsupportedModelError("The model has no attention layer, so it has no cache that can be rewound.")
        return cls(layers)

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return self._layers[0].length

    def set_length(self, length: int) -> None:
        """Forget the tokens from `length` on, or count again those that are still in the buffers behind it."""
        for layer in self._layers:
            layer.length = length

    @property
    def bytes_per_token(self) -> int:
        """Of keys and values; known once a pass was run."""
        return sum(part.nbytes for layer in self._layers for part in layer.parts(1))

    def copy_out(self, length: int, into: npt.NDArray[np.uint8]) -> None:
        """Write the first `length` tokens to `length * bytes_per_token` bytes."""
        at = 0
        for layer in self._layers:
            for part in layer.parts(length):
                data = part.contiguous().view(torch.uint8).cpu().numpy().reshape(-1)
                into[at : at + data.size] = data
                at += data.size

    @torch.inference_mode()
    def copy_in(self, length: int, data: npt.NDArray[np.uint8]) -> None:
        """Become the `length` tokens that `copy_out` wrote. Where memory runs out, nothing has changed."""
        for layer in self._layers:
            layer.reserve(length)
        at = 0
        for layer in self._layers:
            for part in layer.parts(length):
                size = part.nbytes
                bits = torch.from_numpy(data[at : at + size].copy()).view(part.dtype)
                part.copy_(bits.reshape(part.shape))
                at += size
        self.set_length(length)
