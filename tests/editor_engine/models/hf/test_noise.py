"""What the guard's shares rest on: how far a lead moves with the number of rows, measured on every tiny family."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("transformers")

from editor_engine.models.hf.guard import NOISE_SHARES
from editor_engine.models.hf.model import HfModel
from tests.support.hf_runs import scores
from tests.support.tiny_checkpoints import ARCHITECTURES

TOKENS = [1 + (13 * index * index + 5 * index) % 300 for index in range(96)]  # 0 pads, and embeds as zeros


def moved(plain: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> Iterator[float]:
    """Share of the row's magnitude by which the lead of plain's best over its second moves."""
    for row, again in zip(plain, other, strict=True):
        second, best = np.argpartition(row, -2)[-2:]
        lead, after = float(row[best]) - float(row[second]), float(again[best]) - float(again[second])
        yield abs(lead - after) / float(np.abs(row).max())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("family", ARCHITECTURES)
def test_noise_stays_below_the_share(load: Callable[..., HfModel], family: str, dtype: str) -> None:
    model = load(family, dtype, dtype=dtype)
    plain, most = scores(model, TOKENS, chunk=1), 0.0
    for chunk in (2, 5, 16, 64):
        model.truncate(0)
        most = max(most, *moved(plain, scores(model, TOKENS, chunk)))
    print(f"{family} {dtype}: {most:.2e} of {NOISE_SHARES[dtype]:.0e}")  # shown with -rP
    assert most < NOISE_SHARES[dtype]
