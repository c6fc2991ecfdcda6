"""Our reading of GGUF blocks against the independent package `gguf`: equal in fp32, bit for bit."""

import numpy as np
import pytest

from editor_engine.quant.dequantise import dequantise
from tests.support.tiny_gguf import LINEAR_TYPES, random_blocks


@pytest.mark.parametrize("kind", [*LINEAR_TYPES, "F16", "F32"])
def test_every_weight_is_what_the_gguf_package_reads(kind: str) -> None:
    gguf = pytest.importorskip("gguf")
    raw = np.frombuffer(random_blocks(np.random.default_rng(7), kind, 24, 512), np.uint8)
    theirs = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind]).reshape(24, 512)
    ours = dequantise(kind, raw, (24, 512))
    assert ours.dtype == np.float32
    assert np.array_equal(ours.view(np.uint32), theirs.astype(np.float32).view(np.uint32))
    assert len(np.unique(ours)) > 100


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ValueError):
        dequantise("Q8_0", np.zeros(33, np.uint8), (1, 32))
    with pytest.raises(ValueError):
        dequantise("Q8_0", np.zeros(34, np.uint8), (2, 32))
