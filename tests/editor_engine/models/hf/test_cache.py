"""The cache against transformers' own, and back to any earlier token; what cannot go back is refused by name."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer  # noqa: E402

from editor_engine.errors import UnsupportedModelError  # noqa: E402
from editor_engine.models.hf.cache import RewindCache, RewindLayer  # noqa: E402

WINDOW = 6


def states(count: int, seed: int) -> Any:
    return torch.randn((1, 2, count, 4), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_layer_shows_what_transformers_own_shows(window: int | None) -> None:
    ours = RewindLayer(window, 1000)
    theirs = DynamicLayer() if window is None else DynamicSlidingWindowLayer(window)
    for step, rows in enumerate((3, 1, 1, 2, 1, 4, 1, 300, 1, 64)):
        assert ours.get_mask_sizes(rows) == theirs.get_mask_sizes(rows)
        assert ours.get_seq_length() == theirs.get_seq_length()
        keys, values = states(rows, step), states(rows, 100 + step)
        for mine, other in zip(ours.update(keys, values), theirs.update(keys, values), strict=True):
            assert torch.equal(mine, other)


@pytest.mark.parametrize("window", [None, WINDOW])
@pytest.mark.parametrize("length", [0, 1, 5, 6, 7, 12, 19])
def test_a_layer_that_was_cut_goes_on_like_a_fresh_one(window: int | None, length: int) -> None:
    keys, values = states(20, 1), states(20, 2)
    cut, fresh = RewindLayer(window, 1000), RewindLayer(window, 1000)
    cut.update(keys, values)
    cut.crop(length - 20)
    if length:
        fresh.update(keys[:, :, :length], values[:, :, :length])
    more = states(3, 3), states(3, 4)
    assert cut.get_mask_sizes(3) == fresh.get_mask_sizes(3)
    for mine, other in zip(cut.update(*more), fresh.update(*more), strict=True):
        assert torch.equal(mine, other)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_bytes_go_out_and_in_again(dtype: str) -> None:
    keys, values = states(30, 1).to(getattr(torch, dtype)), states(30, 2).to(getattr(torch, dtype))
    cache, other = (RewindCache([RewindLayer(None, 900), RewindLayer(WINDOW, 900)]) for _ in range(2))
    for number in (0, 1):
        cache.native.update(keys, values, number)
        other.native.update(values[:, :, :1], keys[:, :, :1], number)
    data = np.zeros(20 * cache.bytes_per_token, np.uint8)
    cache.copy_out(20, data)
    other.copy_in(20, data)
    assert other.length == 20
    back = np.zeros_like(data)
    other.copy_out(20, back)
    assert np.array_equal(data, back)
    more = states(2, 9).to(keys.dtype)
    cache.set_length(20)
    for number in (0, 1):
        for mine, theirs in zip(
            other.native.update(more, more, number), cache.native.update(more, more, number), strict=True
        ):
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ("MambaConfig", "LinearAttention|Mamba|rewound"),
        ("JambaConfig", "LinearAttention"),
        ("Qwen3NextConfig", "LinearAttention"),
    ],
)
def test_states_that_are_overwritten_are_refused_by_name(config: str, name: str) -> None:
    with pytest.raises(UnsupportedModelError, match=name):
        RewindCache.of(getattr(transformers, config)(), 100)


def test_convolutions_are_refused_where_there_are_any() -> None:
    config = transformers.Lfm2Config(num_hidden_layers=2, layer_types=["conv", "full_attention"])
    with pytest.raises(UnsupportedModelError, match="LinearAttentionLayer"):
        RewindCache.of(config, 100)


def test_layers_that_slide_and_layers_that_do_not_are_told_apart() -> None:
    config = transformers.Gemma3TextConfig(num_hidden_layers=6, sliding_window=9)
    assert RewindCache.of(config, 100).native.is_sliding == [True] * 5 + [False]
